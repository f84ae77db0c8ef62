package agents

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/mcp"
	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/internal/tool"
)

// door lets the commands of an agent of coven's own loop use coven's tools, as those of an agent CLI
// can: with coven spawn.
type door struct {
	listener *mcp.Listener

	mu      sync.Mutex
	started chan struct{} // closed when child is set or will not be; nil: no command runs
	child   *process.Child
}

func (c *Agents) openDoor(ctx context.Context, launch driver.Job) (d *door, err error) {
	d = &door{}
	d.listener, err = mcp.Listen(context.WithoutCancel(ctx), mcp.Options{
		Version: c.Runner.Version, Dir: c.Runner.Sockets, Decider: launch.Gate, Admit: d.admit, Tools: d.paused(launch.Own),
		Refused: func(err error) { _ = launch.Emit(event.Warning, event.Text{Text: err.Error()}) }, // the caller gets no reason
	})
	return d, err
}

func (d *door) close() { _ = d.listener.Close() } // a leftover directory in the runtime directory harms nobody

// passing returns a command that may use the door. Only one runs at a time.
func (d *door) passing(spec process.Spec) process.Spec {
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
	return spec
}

// passed notes that the command has ended, or did not start.
func (d *door) passed() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.child == nil {
		close(d.started)
	}
	d.started, d.child = nil, nil
}

// running returns the command that runs; nil: none.
func (d *door) running() *process.Child {
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

// admit reports whether a process is part of the command that runs.
func (d *door) admit(pid int) bool {
	child := d.running()
	return child != nil && child.Contains(pid)
}

// paused returns tools whose time is not that of the command that uses them.
func (d *door) paused(tools []tool.Tool) []tool.Tool {
	tools = slices.Clone(tools)
	for i, t := range tools {
		tools[i].Call = func(ctx context.Context, arguments json.RawMessage) (string, error) {
			if child := d.running(); child != nil {
				child.Pause()
				defer child.Resume()
			}
			return t.Call(ctx, arguments)
		}
	}
	return tools
}
