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

// ToolServer gives the commands of an agent in coven's own loop, which is not a process, access to coven's
// tools through coven spawn. Like the gate of an agent CLI, it identifies the agent by its processes.
type ToolServer struct {
	job      Job
	listener *mcp.Listener
	withdraw []func()

	mu      sync.Mutex
	started chan struct{} // closed when child is set or the command failed to start; nil if no command runs
	child   *process.Child
}

// OpenToolServer opens the door of an agent. It uses only Own, More, Gate, Depth, Excuse and Emit of the job.
func (r *Runner) OpenToolServer(ctx context.Context, job Job) (*ToolServer, error) {
	d := &ToolServer{job: job}
	listener, err := mcp.Listen(context.WithoutCancel(ctx), mcp.Options{
		Version: r.Version, Dir: r.Sockets, Decider: job.Gate, Admit: d.holds, Tools: paused(job.Offered(), d.command), Member: r.depthOf,
		Refused: func(err error) { _ = job.Emit(event.Warning, event.Text{Text: err.Error()}) }, // the caller does not see the reason
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
	d.withdraw = append(d.withdraw, func() { _ = withdraw() }) // otherwise the next process that finds it removes it
	return d, nil
}

// Close closes the door. No command may be running.
func (d *ToolServer) Close() {
	for _, undo := range d.withdraw {
		undo()
	}
	_ = d.listener.Close() // a leftover directory in the runtime directory is harmless
}

// Dir returns the directory of the socket. Commands need access to it.
func (d *ToolServer) Dir() string { return d.listener.Dir() }

// Pass returns spec with access to the door. Only one such command may run at a time. The caller must
// call over when the command has ended or failed to start.
func (d *ToolServer) Pass(spec process.Spec) (_ process.Spec, over func()) {
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

func (d *ToolServer) passed() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.child == nil {
		close(d.started)
	}
	d.started, d.child = nil, nil
}

// command returns the running command, or nil.
func (d *ToolServer) command() *process.Child {
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

// holds reports whether a process belongs to the running command.
func (d *ToolServer) holds(pid int) bool {
	child := d.command()
	return child != nil && child.Contains(pid)
}

func (d *ToolServer) depth() int { return d.job.Depth }

// paused wraps an agent's tools so that the time limits of its process are paused while they run. child
// returns the process, or nil if there is none.
func paused(tools []tool.Tool, child func() *process.Child) []tool.Tool {
	tools = slices.Clone(tools)
	for i, t := range tools {
		tools[i].Call = func(ctx context.Context, arguments json.RawMessage) (string, error) {
			if child := child(); child != nil {
				child.Pause()
				defer child.Resume()
			}
			return t.Call(ctx, arguments)
		}
	}
	return tools
}
