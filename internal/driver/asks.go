package driver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"

	"github.com/coven-run/coven/internal/gate"
	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/internal/text/strictjson"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/provider"
)

// Host performs the actions that an agent CLI requests, after the gate has allowed them.
type Host interface {
	// ReadFile returns up to limit lines of a text file, starting at line. Zero means from the
	// first line and without a limit. If the file does not exist, the error is fs.ErrNotExist.
	ReadFile(path string, line, limit int) (string, error)
	WriteFile(path, content string) error
	// RunCommand runs a shell command, writes its output and waits for it.
	RunCommand(ctx context.Context, command string, output io.Writer) (process.Exit, error)
	// Hide removes secrets from text.
	Hide(text string) string
}

const (
	// maxAsks limits the unanswered requests of an agent CLI.
	maxAsks = 64
	// cancelGrace limits how long the agent CLI may take to cancel its work.
	cancelGrace = 2 * time.Second
	// serverGrace limits how long a server CLI may run after its last result.
	serverGrace = time.Second
	// hangGrace limits how long another CLI may run after its last result without output.
	hangGrace = 20 * time.Second
)

// asks answers the requests of an agent CLI.
type asks struct {
	run       *run
	ctx       context.Context // done when the agent is being stopped, or has ended
	cancel    context.CancelFunc
	queue     chan provider.Asked // requests that the gate must decide
	known     map[string]bool     // IDs of all requests
	terminals *terminals
	work      sync.WaitGroup

	mu      sync.Mutex
	open    int    // number of requests without an answer
	cancels []byte // input that cancels the CLI's work; may be empty
}

func newAsks(r *run) *asks {
	a := &asks{run: r, queue: make(chan provider.Asked, maxAsks), known: map[string]bool{}}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	a.terminals = newTerminals(a.ctx)
	return a
}

// accept accepts a request. It stops an agent with too many unanswered requests.
func (a *asks) accept(e provider.Asked) {
	if a.known[e.ID] {
		a.run.warn("the agent CLI made two requests with the ID %.40q; only the first is answered", e.ID)
		return
	}
	a.known[e.ID] = true
	if owed, _ := a.run.owed.open(); !owed {
		return // the CLI has returned its result
	}
	a.mu.Lock()
	a.open++
	tooMany := a.open > maxAsks
	a.mu.Unlock()
	switch {
	case tooMany:
		a.run.child.Stop(errAsks)
	case needsGate(e):
		a.queue <- e // never blocks: queue has room for maxAsks
	default:
		a.work.Go(func() { a.reply(a.answer(e)) })
	}
}

// needsGate reports whether the gate must decide about a request.
func needsGate(e provider.Asked) bool {
	if _, free := e.Action.(provider.UseTerminal); free {
		return false // the gate allowed the terminal's command
	}
	return e.Action != nil || len(e.Calls) > 0
}

// serve answers the requests that need the gate, in order, until the agent ends.
func (a *asks) serve(done <-chan struct{}) {
	defer a.work.Wait()
	defer a.terminals.close()
	defer a.cancel()
	for {
		select {
		case <-done:
			return
		case e := <-a.queue:
			a.reply(a.answer(e))
		}
	}
}

// reply sends the answer to a request.
func (a *asks) reply(answer provider.Answer) {
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.open--
	}()
	r := a.run
	answerer, ok := r.job.Provider.(provider.Answerer)
	if !ok {
		r.child.Stop(fmt.Errorf("%w: its provider cannot answer", errAnswer))
		return
	}
	answer.Request = r.request
	reply, err := answerer.Answer(context.WithoutCancel(a.ctx), answer)
	if err != nil {
		if r.request.Resume && errors.Is(err, pluginerr.ErrUnsupported) {
			r.noResume = err
		}
		r.child.Stop(fmt.Errorf("%w: %w", errAnswer, err))
		return
	}
	if len(reply.Cancel) > 0 {
		a.mu.Lock()
		a.cancels = reply.Cancel
		a.mu.Unlock()
	}
	if err := r.send(reply.Input); err != nil && !r.owed.done() {
		r.child.Stop(fmt.Errorf("send an answer to the agent: %w", err))
	}
}

// stop cancels pending decisions and waits, and returns the input that cancels the CLI's work.
func (a *asks) stop() []byte {
	a.cancel()
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.cancels
}

// answer decides about a request and performs it.
func (a *asks) answer(e provider.Asked) provider.Answer {
	answer := provider.Answer{Asked: e}
	action, err := a.decide(e)
	if err == nil {
		err = a.do(action, &answer)
	}
	switch {
	case a.ctx.Err() != nil:
		answer.Cancelled = true
	case err != nil:
		answer.Reason, answer.NotFound = err.Error(), errors.Is(err, fs.ErrNotExist)
	default:
		answer.Allowed = true
	}
	return answer
}

// decide returns the action to perform for a request, or an error if the gate refuses it.
func (a *asks) decide(e provider.Asked) (provider.Action, error) {
	for _, call := range e.Calls {
		if err := a.permit(call); err != nil {
			a.run.refuse(e.Calls, err)
			return nil, err
		}
	}
	a.run.allow(e.Calls)
	call, ok := callOf(e, a.run.job.Dir)
	if !ok {
		return e.Action, nil
	}
	v := a.ask(call)
	if !v.Allow {
		return nil, errors.New(v.Message)
	}
	return modified(e.Action, v.Input), nil
}

// permit asks the gate about a call that the CLI makes itself. The CLI cannot be given modified
// parameters, so a modified call is refused.
func (a *asks) permit(call provider.ToolCall) error {
	asked := gate.Call{ID: call.ID, Tool: call.Name, Input: call.Input}
	v := a.ask(asked)
	var refused error
	switch {
	case !v.Allow:
		refused = errors.New(v.Message)
	case v.Input != nil:
		refused = fmt.Errorf("the user modified the parameters; make the call again with %s", v.Input)
	}
	a.run.answered.add(asked, refused)
	return refused
}

// ask asks the gate. The agent's time limits are paused while a person is asked.
func (a *asks) ask(call gate.Call) gate.Verdict {
	return a.run.gate.Decide(gate.WithClocks(a.ctx, func() func() {
		a.run.child.Pause()
		return a.run.child.Resume
	}), call)
}

// callOf returns the call of a coven tool that is equivalent to a request.
func callOf(e provider.Asked, dir string) (call gate.Call, ok bool) {
	var arguments map[string]any
	switch do := e.Action.(type) {
	case provider.ReadFile:
		call.Tool, arguments = provider.CallRead, map[string]any{"path": do.Path}
	case provider.WriteFile:
		call.Tool, arguments = provider.CallWrite, map[string]any{"path": do.Path, "content": do.Content}
	case provider.RunCommand:
		call.Tool, arguments = provider.CallBash, map[string]any{"command": commandIn(do, dir)}
	default:
		return call, false
	}
	call.ID = "request " + e.ID
	call.Input, _ = json.Marshal(arguments) // strings can be encoded
	return call, true
}

// modified returns action with the parameters that a person changed. A nil input changes nothing.
func modified(action provider.Action, input json.RawMessage) provider.Action {
	in, err := strictjson.Object(input)
	if err != nil {
		return action
	}
	text := func(name string) string {
		value, _ := in[name].(string)
		return value
	}
	switch do := action.(type) {
	case provider.ReadFile:
		do.Path = text("path")
		return do
	case provider.WriteFile:
		return provider.WriteFile{Path: text("path"), Content: text("content")}
	case provider.RunCommand:
		do.Command, do.Dir = text("command"), "" // the command changes the directory itself
		return do
	}
	return action
}

// do performs the action of a request.
func (a *asks) do(action provider.Action, answer *provider.Answer) (err error) {
	host, asked := a.run.job.Host, answer.Asked
	if action != nil && host == nil {
		return errors.New("coven does nothing for this agent")
	}
	switch do := action.(type) {
	case provider.ReadFile:
		answer.Text, err = host.ReadFile(do.Path, do.Line, do.Limit)
	case provider.WriteFile:
		err = host.WriteFile(do.Path, do.Content)
	case provider.RunCommand:
		answer.Terminal.ID, err = a.terminals.start(host, commandIn(do, a.run.job.Dir), do.MaxOutput, func() { a.ended(asked) })
		if err == nil {
			return nil // ended is called when the command ends
		}
	case provider.UseTerminal:
		answer.Text, answer.Terminal, err = a.terminals.use(a.ctx, do)
		return err
	default:
		return nil
	}
	a.ended(asked)
	return err
}

// ended tells the gate that a request is complete.
func (a *asks) ended(e provider.Asked) { a.run.gate.Ended("request " + e.ID) }

// interrupt lets the CLI cancel its work, if it supports that. Later output is not recorded.
func (r *run) interrupt() {
	cancel := r.asks.stop()
	if len(cancel) == 0 {
		return
	}
	r.stop()
	go func() { _ = r.send(cancel) }() // returns at the latest when the child has ended
	timer := time.NewTimer(cancelGrace)
	defer timer.Stop()
	select {
	case <-r.resulted:
	case <-r.ended:
	case <-timer.C:
	}
}
