// Package fakeacp is a fake agent for tests that speaks the Agent Client Protocol. A script defines
// its behavior, so it needs no model. It can violate each rule of the protocol.
//
// It stores its session in the directory $FAKEACP_STATE: ID.jsonl contains the messages, which
// session/load repeats, and ID.log contains one line for each response from the client.
package fakeacp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"gopkg.in/yaml.v3"
)

// Main runs the agent on standard input and output. Its argument is the script. It returns the exit
// code.
func Main(args []string) int {
	if len(args) != 1 {
		fmt.Fprintln(os.Stderr, "usage: fakeacp SCRIPT")
		return 2
	}
	text, err := os.ReadFile(args[0])
	a := &agent{state: os.Getenv("FAKEACP_STATE"), out: os.Stdout, waiting: map[string]chan answer{}}
	if err == nil {
		err = yaml.Unmarshal(text, &a.script)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	a.serve(os.Stdin)
	if a.script.Stubborn {
		<-time.After(math.MaxInt64) // a select without cases would be a deadlock
	}
	return 0
}

// agent is the agent with its only session.
type agent struct {
	script  Script
	state   string // directory; empty to store nothing
	session string
	cwd     string
	servers []server // MCP servers from the client
	last    string   // the last response
	ended   bool     // the prompt has been answered
	quit    bool     // the turn ends, because a call was refused

	mu      sync.Mutex // held while writing a line
	out     io.Writer
	next    int // the next request ID
	waiting map[string]chan answer
	cancel  context.CancelFunc // cancels the prompt
}

// answer is the client's response to a request of the agent.
type answer struct {
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

func (r answer) text() string {
	if r.Error != nil {
		return "error " + string(r.Error)
	}
	return string(r.Result)
}

// message is a line from the client.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		SessionID string   `json:"sessionId"`
		Cwd       string   `json:"cwd"`
		Servers   []server `json:"mcpServers"`
		Value     string   `json:"value"`
		ModeID    string   `json:"modeId"`
		Prompt    []struct {
			Text string `json:"text"`
		} `json:"prompt"`
	} `json:"params"`
	answer
}

// serve handles the lines from the client until EOF.
func (a *agent) serve(in io.Reader) {
	lines := bufio.NewReader(in)
	var prompts sync.WaitGroup
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		var m message
		if json.Unmarshal(line, &m) != nil {
			continue
		}
		switch m.Method {
		case "":
			a.deliver(string(m.ID), m.answer)
		case "session/prompt":
			var ctx context.Context
			ctx, a.cancel = context.WithCancel(context.Background())
			prompts.Go(func() { a.prompt(ctx, m) })
		default:
			a.handle(m)
		}
	}
	if a.cancel != nil {
		a.cancel()
	}
	prompts.Wait()
}

// handle answers a request of the client.
func (a *agent) handle(m message) {
	switch m.Method {
	case "initialize":
		a.respond(m.ID, map[string]any{
			"protocolVersion":   max(a.script.Version, 1),
			"agentInfo":         map[string]any{"name": "fakeacp", "version": "1"},
			"agentCapabilities": map[string]any{"loadSession": a.script.Loads}, "authMethods": []any{},
		})
	case "session/new":
		a.session, a.cwd, a.servers = "ses_"+strconv.Itoa(os.Getpid()), m.Params.Cwd, m.Params.Servers
		a.respond(m.ID, map[string]any{"sessionId": a.session, "configOptions": a.options(), "modes": a.modes()})
	case "session/load":
		a.session, a.cwd, a.servers = m.Params.SessionID, m.Params.Cwd, m.Params.Servers
		if !a.replay() {
			a.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": map[string]any{"code": -32002, "message": "no session " + a.session}})
			return
		}
		a.respond(m.ID, map[string]any{"configOptions": a.options(), "modes": a.modes()})
	case "session/set_mode":
		a.note("mode " + m.Params.ModeID)
		a.respond(m.ID, map[string]any{})
	case "session/set_config_option":
		a.note("model " + m.Params.Value)
		a.respond(m.ID, map[string]any{"configOptions": a.options()})
	case "session/cancel":
		a.note("cancelled")
		if a.cancel != nil {
			a.cancel()
		}
	}
}

// modes returns the modes of a session, or nil.
func (a *agent) modes() any {
	if a.script.Mode == "" {
		return nil
	}
	all := []any{map[string]any{"id": "default", "name": "Default"}, map[string]any{"id": a.script.Mode, "name": a.script.Mode}}
	return map[string]any{"currentModeId": a.script.Mode, "availableModes": all}
}

// options returns the option that selects the model.
func (a *agent) options() []any {
	if len(a.script.Models) == 0 {
		return []any{}
	}
	var all []any
	for _, m := range a.script.Models {
		all = append(all, map[string]any{"value": "id-" + m, "name": m})
	}
	return []any{map[string]any{"id": "model", "name": "Model", "category": "model", "type": "select", "currentValue": "id-" + a.script.Models[0], "options": all}}
}

// prompt performs the steps for a prompt and answers it.
func (a *agent) prompt(ctx context.Context, m message) {
	var text []string
	for _, p := range m.Params.Prompt {
		text = append(text, p.Text)
	}
	said := strings.Join(text, "\n")
	a.keep("user_message_chunk", said)
	reason := "end_turn"
	a.quit = false
	for _, s := range a.script.steps(said) {
		if a.quit {
			break
		}
		if ctx.Err() != nil {
			reason = "cancelled"
			break
		}
		a.do(ctx, m.ID, s)
	}
	if !a.ended {
		a.stop(m.ID, reason)
	}
}

// stop answers a prompt.
func (a *agent) stop(id json.RawMessage, reason string) {
	if ctx := a.script.Error; ctx != "" {
		a.send(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": -32603, "message": "Internal error", "data": map[string]any{"details": ctx}}})
		return
	}
	a.respond(id, map[string]any{"stopReason": reason, "usage": map[string]any{"inputTokens": 40, "outputTokens": 20, "totalTokens": 60}})
}

// call makes a request and returns the response. It returns a zero answer if the prompt is cancelled first.
func (a *agent) call(ctx context.Context, method string, params map[string]any) answer {
	a.mu.Lock()
	id := strconv.Itoa(a.next)
	a.next++
	got := make(chan answer, 1)
	a.waiting[id] = got
	a.mu.Unlock()
	params["sessionId"] = a.session
	a.send(map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(id), "method": method, "params": params})
	select {
	case r := <-got:
		a.last = r.text()
		a.note(method + " " + a.last)
		return r
	case <-ctx.Done():
		return answer{}
	}
}

// deliver delivers the response to a request.
func (a *agent) deliver(id string, r answer) {
	a.mu.Lock()
	got := a.waiting[id]
	delete(a.waiting, id)
	a.mu.Unlock()
	if got == nil {
		a.note("unexpected " + id + " " + r.text())
		return
	}
	got <- r
}

// update sends a notification about the session.
func (a *agent) update(kind string, fields map[string]any) {
	fields["sessionUpdate"] = kind
	a.send(map[string]any{"jsonrpc": "2.0", "method": "session/update", "params": map[string]any{"sessionId": a.session, "update": fields}})
}

// chunk sends a part of a text.
func (a *agent) chunk(kind, text string) {
	a.update(kind, map[string]any{"content": map[string]any{"type": "text", "text": text}})
}

func (a *agent) respond(id json.RawMessage, result any) {
	a.send(map[string]any{"jsonrpc": "2.0", "id": id, "result": result})
}

func (a *agent) send(value any) {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // the script consists of plain data
	}
	a.line(string(text))
}

func (a *agent) line(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, _ = io.WriteString(a.out, text+"\n") // the client may be gone
}
