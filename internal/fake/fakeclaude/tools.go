package fakeclaude

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// builtin returns the built-in tools of this CLI in the order in which it lists them.
func builtin() []string {
	return []string{"Bash", "Edit", "Glob", "Grep", "NotebookEdit", "Read", "Write"}
}

// toolbox runs calls.
type toolbox struct {
	enabled []string // the built-in tools in --tools
	servers servers
	gate    *gate
	files   *files
	ungated atomic.Bool // a fault: skip the gate once
}

func (t *toolbox) names() []string {
	names := []string{}
	for _, name := range builtin() {
		if slices.Contains(t.enabled, name) {
			names = append(names, name)
		}
	}
	for _, name := range t.servers.names() {
		if name != t.gate.prompt { // the model does not see the permission tool
			names = append(names, name)
		}
	}
	return names
}

// run runs the calls of one answer. Adjacent read-only calls run concurrently,
// the others one by one. It passes each available outcome to done immediately, one at a
// time; an error of done ends the run.
func (t *toolbox) run(ctx context.Context, calls []call, done func(outcome) error) error {
	for len(calls) > 0 {
		count := 1
		for t.readOnly(calls[0]) && count < len(calls) && t.readOnly(calls[count]) {
			count++
		}
		if err := t.batch(ctx, calls[:count], done); err != nil {
			return err
		}
		calls = calls[count:]
	}
	return nil
}

// readOnly reports whether the call may run concurrently with others.
func (t *toolbox) readOnly(c call) bool { return c.readOnly() || t.servers.readOnly(c.name) }

// batch runs calls concurrently. As in the real CLI, requests to servers are sent in the order of the
// calls.
func (t *toolbox) batch(ctx context.Context, calls []call, done func(outcome) error) error {
	outcomes := make(chan outcome, len(calls))
	var approved []func()
	for _, c := range calls {
		if _, _, remote := t.servers.find(c.name); !remote || len(calls) == 1 {
			go func() { outcomes <- t.one(ctx, c) }()
			continue
		}
		input, answer := t.ask(ctx, c)
		if answer != nil {
			outcomes <- *answer
			continue
		}
		approved = append(approved, func() {
			sent, over := make(chan struct{}), make(chan struct{})
			go func() {
				outcomes <- t.execute(withSent(ctx, sync.OnceFunc(func() { close(sent) })), c, input)
				close(over)
			}()
			select {
			case <-sent:
			case <-over:
			}
		})
	}
	for _, start := range approved {
		start()
	}
	var errs []error
	for range calls {
		errs = append(errs, done(<-outcomes))
	}
	return errors.Join(errs...)
}

// one checks, asks for and runs one call.
func (t *toolbox) one(ctx context.Context, c call) outcome {
	input, answer := t.ask(ctx, c)
	if answer != nil {
		return *answer
	}
	return t.execute(ctx, c, input)
}

// ask checks a call and asks for permission. It returns the input to run, or the outcome.
func (t *toolbox) ask(ctx context.Context, c call) (object, *outcome) {
	if refusal := t.refusal(c); refusal != "" {
		out := refused(c, refusal)
		return nil, &out
	}
	if t.gate.asks(c) && !t.skipGate() {
		return t.gate.decide(ctx, c)
	}
	return c.askedInput(t.gate.cwd, t.gate.home), nil
}

// refusal returns the reason to refuse a call without asking for permission, or "".
func (t *toolbox) refusal(c call) string {
	if !slices.Contains(t.names(), c.name) {
		text := "Error: No such tool available: " + c.name
		if slices.Contains(builtin(), c.name) {
			text += ". " + c.name + " exists but is not enabled in this context. Use one of the available tools instead."
		}
		return text
	}
	if strings.HasPrefix(c.name, "mcp__") {
		return ""
	}
	if issue := c.invalid(); issue != "" {
		return issue
	}
	return t.files.objection(c)
}

// skipGate returns true once if the fault is set.
func (t *toolbox) skipGate() bool { return t.ungated.CompareAndSwap(true, false) }

func (t *toolbox) execute(ctx context.Context, c call, input object) outcome {
	switch c.name {
	case "Bash":
		return t.files.bash(ctx, c, input)
	case "Read":
		return t.files.read(c, input)
	case "Write":
		return t.files.write(c, input)
	case "Edit":
		return t.files.edit(c, input)
	case "NotebookEdit":
		return t.files.notebookEdit(c, input)
	case "Glob":
		return t.files.glob(c, input)
	case "Grep":
		return t.files.grep(c, input)
	default:
		return t.remote(ctx, c, input)
	}
}

// remote calls a tool of an MCP server.
func (t *toolbox) remote(ctx context.Context, c call, input object) outcome {
	server, tool, _ := t.servers.find(c.name) // refusal has checked that it exists
	text, isError, err := server.call(ctx, tool, input)
	switch {
	case err != nil:
		return failed(c, err.Error())
	case isError:
		return failed(c, text)
	default:
		return succeeded(c, []object{textBlock(text)})
	}
}
