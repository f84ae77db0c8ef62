package fakeclaude

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
)

// run is one process of the CLI.
type run struct {
	options options
	args    []string
	cwd     string
	home    string
	fault   Fault

	out     *output
	talk    *transcript
	servers servers
	tools   *toolbox
	api     *api
	inbox   *inbox

	stop atomic.Pointer[context.CancelFunc] // cancels the work on a message; nil between messages
	told atomic.Bool                        // a signal requested the end
	term atomic.Bool                        // the signal was TERM
	cost float64                            // of the whole process, in US dollars
}

// newRun opens the conversation. It reports an invalid conversation before any
// input is read.
func newRun(args []string, opts options) (*run, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find working directory: %w", err)
	}
	r := &run{options: opts, args: args, cwd: cwd, home: os.Getenv("HOME")}
	id, resumed := opts.values["resume"]
	if !resumed {
		id = opts.values["session-id"]
	}
	if id == "" {
		id = newUUID()
	}
	r.out = newOutput(id)
	if path := transcriptPath(r.home, cwd, id); resumed {
		r.talk, err = resumeTranscript(path, id)
	} else {
		r.talk, err = newTranscript(path, id)
	}
	if unknown := (errNoConversation{}); errors.As(err, &unknown) {
		r.out.event("result", (&tally{}).result("error_during_execution", object{"is_error": true, "num_turns": 0, "errors": []string{err.Error()}}))
	}
	return r, err
}

func (r *run) close() {
	r.servers.close()
	r.out.end()
	_ = r.talk.close() // every line was written completely
}

// main answers every message and returns the exit code.
func (r *run) main() int {
	r.watchSignals()
	r.inbox = newInbox(r.options.replay, r.out, r.talk.came)
	first, some := r.inbox.first()
	if err := r.prepare(first); err != nil {
		return complain(err)
	}
	code := 0
	for message := first; some; message, some = r.inbox.next() {
		if message.err != nil {
			return complain(message.err)
		}
		var err error
		if code, err = r.answer(message); err != nil {
			code = complain(err)
			break
		}
		if r.told.Load() {
			break
		}
	}
	if r.fault.ExitCode != nil {
		return *r.fault.ExitCode
	}
	return code
}

// prepare records the run, loads its fault and starts the servers.
func (r *run) prepare(first prompt) error {
	nth, err := keepRecord(r.home, r.cwd, r.args, first.line)
	if err != nil {
		return err
	}
	if r.fault, err = loadFault(r.home, first.line, nth); err != nil {
		return err
	}
	r.out.split, r.out.silent = r.fault.Split, r.fault.NoResult
	if r.servers, err = startServers(context.Background(), r.options.values["mcp-config"]); err != nil {
		return err
	}
	r.tools = &toolbox{
		enabled: r.options.tools, servers: r.servers, files: newFiles(r.cwd, r.home),
		gate: &gate{
			servers: r.servers, prompt: r.options.values["permission-prompt-tool"],
			ask: r.options.ask, cwd: r.cwd, home: r.home,
		},
	}
	r.tools.ungated.Store(r.fault.Ungated)
	r.api = &api{model: modelID(r.options.values["model"]), system: r.system(), tools: r.offered(), partial: r.options.partial, out: r.out}
	return nil
}

func (r *run) system() string {
	text := "You are a fake of Claude Code.\n\n# Environment\n - Primary working directory: " + r.cwd + "\n"
	if r.options.append != "" {
		text += "\n" + r.options.append
	}
	return text
}

// offered returns the tools for the request to the API.
func (r *run) offered() []object {
	tools := []object{}
	for _, name := range r.tools.names() {
		tools = append(tools, object{"name": name, "description": name, "input_schema": object{"type": "object"}})
	}
	if len(tools) > 0 {
		tools = slices.Insert(tools, len(tools)-1, object{
			"name": placeholder, "description": "never call this tool", "input_schema": object{"type": "object"}, "defer_loading": true,
		})
	}
	return tools
}

// placeholder is a tool that the real CLI offers in addition to its tools, and refuses
// when it is called.
const placeholder = "DeferredToolPlaceholder"

// answer processes one message to its end.
func (r *run) answer(message prompt) (int, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r.stop.Store(&cancel)
	defer r.stop.Store(nil)
	r.init()
	if done, err := r.misbehave(); done || err != nil {
		return 0, err
	}
	for _, block := range message.blocks {
		if err := r.talk.add("user", block); err != nil {
			return 0, err
		}
	}
	turn := &turn{run: r, opening: &message, tally: tally{turns: 1, model: r.api.model}}
	return turn.main(ctx)
}

func (r *run) init() {
	statuses := []object{}
	for name, server := range r.servers {
		statuses = append(statuses, object{"name": name, "status": server.status()})
	}
	r.out.event("system", object{
		"subtype": "init", "cwd": r.cwd, "tools": r.tools.names(), "mcp_servers": statuses, "model": r.api.model,
		"permissionMode": "default", "apiKeySource": "ANTHROPIC_API_KEY", "claude_code_version": Version,
		"slash_commands": []string{}, "agents": []string{}, "skills": []string{}, "plugins": []string{}, "output_style": "default",
	})
}
