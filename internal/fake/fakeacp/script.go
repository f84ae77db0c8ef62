package fakeacp

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"time"
)

// Script defines the agent's behavior.
type Script struct {
	Version       int            `yaml:"version"`  // protocol version; defaults to 1
	Loads         bool           `yaml:"loads"`    // whether it can load sessions
	Models        []string       `yaml:"models"`   // names; the first is the default
	Stubborn      bool           `yaml:"stubborn"` // whether it ignores the end of its input
	Error         string         `yaml:"error"`    // the error that ends each prompt
	Mode          string         `yaml:"mode"`     // the mode in which a session begins, if it has modes
	Quits         bool           `yaml:"quits"`    // whether it ends its turn at a refused call
	Conversations []Conversation `yaml:"conversations"`
}

// Conversation defines the agent's behavior for a prompt.
type Conversation struct {
	Match string `yaml:"match"` // substring of the prompt
	Steps []Step `yaml:"steps"`
}

// Step is one or more actions. In texts, ${CWD} is the directory of the session, and ${LAST} the
// last response.
type Step struct {
	Text    string            `yaml:"text"` // sent in two parts
	Thought string            `yaml:"thought"`
	Call    string            `yaml:"call"`   // ID of a tool call that is reported as started
	Done    string            `yaml:"done"`   // ID of a tool call that is reported as completed
	Ask     *Ask              `yaml:"ask"`    // for permission
	Method  string            `yaml:"method"` // of a request with Params; the agent waits for the response
	Params  map[string]any    `yaml:"params"`
	Nowait  bool              `yaml:"nowait"` // do not wait for the response
	Run     string            `yaml:"run"`    // a command that runs in a terminal until it ends
	Tool    *Tool             `yaml:"tool"`   // a call of a tool of the client's MCP servers; the result becomes the last response
	Raw     string            `yaml:"raw"`    // a raw line
	Long    int               `yaml:"long"`   // the length of a meaningless line
	Write   map[string]string `yaml:"write"`  // files that the agent writes directly
	Link    map[string]string `yaml:"link"`   // symbolic links to create, with their targets
	Fifo    string            `yaml:"fifo"`   // a pipe to create
	Await   string            `yaml:"await"`  // a file to wait for
	End     bool              `yaml:"end"`    // answer the prompt but continue with the steps
	Repeat  int               `yaml:"repeat"` // number of repetitions; defaults to 1
}

// Ask is a request for permission.
type Ask struct {
	ID      string         `yaml:"id"`
	Title   string         `yaml:"title"` // defaults to harmless
	Kind    string         `yaml:"kind"`
	Raw     map[string]any `yaml:"raw"`     // rawInput
	Options []string       `yaml:"options"` // kinds; nil for the default options
}

// steps returns the steps for a prompt.
func (s Script) steps(prompt string) []Step {
	for _, c := range s.Conversations {
		if strings.Contains(prompt, c.Match) {
			return c.Steps
		}
	}
	return nil
}

func (a *agent) do(ctx context.Context, prompt json.RawMessage, s Step) {
	for range max(s.Repeat, 1) {
		a.speak(s)
		a.request(ctx, s)
		a.touch(s)
		if s.Await != "" {
			a.await(ctx, a.fill(s.Await))
		}
		if s.End {
			a.stop(prompt, "end_turn")
			a.ended = true
		}
	}
}

// speak performs the actions that need no response.
func (a *agent) speak(s Step) {
	if s.Text != "" {
		text := a.fill(s.Text)
		a.keep("agent_message_chunk", text)
		a.chunk("agent_message_chunk", text[:len(text)/2])
		a.chunk("agent_message_chunk", text[len(text)/2:])
	}
	if s.Thought != "" {
		a.chunk("agent_thought_chunk", s.Thought)
	}
	if s.Call != "" {
		a.update("tool_call", map[string]any{"toolCallId": s.Call, "title": s.Call, "kind": "other", "status": "in_progress"})
	}
	if s.Done != "" {
		a.update("tool_call_update", map[string]any{"toolCallId": s.Done, "status": "completed"})
	}
	if s.Raw != "" {
		a.line(a.fill(s.Raw))
	}
	if s.Long > 0 {
		a.line(strings.Repeat("x", s.Long))
	}
}

// request performs the actions that make a request.
func (a *agent) request(ctx context.Context, s Step) {
	switch {
	case s.Ask != nil:
		options := []any{}
		for _, kind := range s.Ask.options() {
			options = append(options, map[string]any{"optionId": "id-" + kind, "name": kind, "kind": kind})
		}
		got := a.call(ctx, "session/request_permission", map[string]any{"options": options, "toolCall": map[string]any{
			"toolCallId": s.Ask.ID, "title": cmp.Or(s.Ask.Title, "harmless"), "kind": s.Ask.Kind, "rawInput": a.filled(s.Ask.Raw),
		}})
		if a.script.Quits && !strings.Contains(got.text(), "id-allow") {
			a.update("tool_call_update", map[string]any{"toolCallId": s.Ask.ID, "status": "failed"})
			a.quit = true
		}
	case s.Run != "":
		a.run(ctx, a.fill(s.Run))
	case s.Tool != nil:
		a.use(ctx, *s.Tool)
	case s.Method != "" && s.Nowait:
		go a.call(ctx, s.Method, a.filled(s.Params))
	case s.Method != "":
		a.call(ctx, s.Method, a.filled(s.Params))
	}
}

// run runs a command in a terminal. Its output becomes the last response.
func (a *agent) run(ctx context.Context, command string) {
	var made struct {
		TerminalID string `json:"terminalId"`
	}
	r := a.call(ctx, "terminal/create", map[string]any{"command": command})
	if json.Unmarshal(r.Result, &made) != nil || made.TerminalID == "" {
		return
	}
	terminal := func() map[string]any { return map[string]any{"terminalId": made.TerminalID} }
	a.call(ctx, "terminal/wait_for_exit", terminal())
	out := a.call(ctx, "terminal/output", terminal())
	a.call(ctx, "terminal/release", terminal())
	a.last = out.text()
}

func (k *Ask) options() []string {
	if k.Options == nil {
		return []string{"allow_always", "allow_once", "reject_once"}
	}
	return k.Options
}

// touch changes files directly. It logs errors, such as those from the sandbox.
func (a *agent) touch(s Step) {
	for file, content := range s.Write {
		if err := os.WriteFile(a.fill(file), []byte(content), 0o600); err != nil {
			a.note("write " + err.Error())
		}
	}
	for file, to := range s.Link {
		if err := os.Symlink(a.fill(to), a.fill(file)); err != nil {
			a.note("link " + err.Error())
		}
	}
	if s.Fifo != "" {
		if err := syscall.Mkfifo(a.fill(s.Fifo), 0o600); err != nil {
			a.note("fifo " + err.Error())
		}
	}
}

// await waits for a file.
func (a *agent) await(ctx context.Context, file string) {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		if _, err := os.Stat(file); err == nil {
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// fill replaces the variables in a text.
func (a *agent) fill(text string) string {
	return strings.NewReplacer("${CWD}", a.cwd, "${LAST}", a.last, "${SESSION}", a.session).Replace(text)
}

// filled replaces the variables in all texts of parameters.
func (a *agent) filled(params map[string]any) map[string]any {
	all := map[string]any{}
	for name, value := range params {
		if text, ok := value.(string); ok {
			value = a.fill(text)
		}
		all[name] = value
	}
	return all
}
