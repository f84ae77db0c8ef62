package driver

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/mcp"
	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/internal/tool"
)

// Door lets the commands of an agent that is no process of its own, as in coven's own loop, use coven's
// tools: with coven spawn. Like the gate of an agent CLI, it knows the agent by its processes.
type Door struct {
	job      Job
	listener *mcp.Listener
	withdraw []func()

	mu      sync.Mutex
	started chan struct{} // closed when child is set or will not be; nil: no command runs
	child   *process.Child
}

// Open opens the door of an agent. Of the job, only Own, More, Gate, Depth, Excuse and Emit count.
func (r *Runner) Open(ctx context.Context, job Job) (*Door, error) {
	d := &Door{job: job}
	listener, err := mcp.Listen(context.WithoutCancel(ctx), mcp.Options{
		Version: r.Version, Dir: r.Sockets, Decider: job.Gate, Admit: d.holds, Tools: d.paused(job.Offered()), Member: r.depthOf,
		Refused: func(err error) { _ = job.Emit(event.Warning, event.Text{Text: err.Error()}) }, // the caller gets no reason
		Excuse:  func(pid int) string { return r.excuse(job, pid) },
	})
	if err != nil {
		return nil, err
	}
	d.listener = listener
	r.running.Store(d, true)
	d.withdraw = append(d.withdraw, func() { r.running.Delete(d) })
	if r.Gates == "" {
		return d, nil
	}
	withdraw, err := listener.Announce(r.Gates)
	if err != nil {
		d.Close()
		return nil, err
	}
	d.withdraw = append(d.withdraw, func() { _ = withdraw() }) // the next process that finds it removes it
	return d, nil
}

// Close closes the door. No command runs any more.
func (d *Door) Close() {
	for _, undo := range d.withdraw {
		undo()
	}
	_ = d.listener.Close() // a leftover directory in the runtime directory harms nobody
}

// Dir returns the directory of the socket, which commands must reach.
func (d *Door) Dir() string { return d.listener.Dir() }

// Pass returns a command that may use the door. Only one runs at a time. over must be called when it has
// ended, or has not started.
func (d *Door) Pass(spec process.Spec) (_ process.Spec, over func()) {
	started := make(chan struct{})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.started = started
	spec.Env = append(slices.Clone(spec.Env), d.listener.Env()...)
	spec.OnStart = func(child *process.Child) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.child = child
		close(started)
	}
	return spec, d.passed
}

func (d *Door) passed() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.child == nil {
		close(d.started)
	}
	d.started, d.child = nil, nil
}

// command returns the command that runs; nil: none.
func (d *Door) command() *process.Child {
	d.mu.Lock()
	started := d.started
	d.mu.Unlock()
	if started == nil {
		return nil
	}
	<-started
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.child
}

// holds reports whether a process is part of the command that runs.
func (d *Door) holds(pid int) bool {
	child := d.command()
	return child != nil && child.Contains(pid)
}

func (d *Door) depth() int { return d.job.Depth }

// paused returns tools whose time is not that of the command that uses them.
func (d *Door) paused(tools []tool.Tool) []tool.Tool {
	tools = slices.Clone(tools)
	for i, t := range tools {
		tools[i].Call = func(ctx context.Context, arguments json.RawMessage) (string, error) {
			if child := d.command(); child != nil {
				child.Pause()
				defer child.Resume()
			}
			return t.Call(ctx, arguments)
		}
	}
	return tools
}
