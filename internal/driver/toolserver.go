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

// OpenToolServer opens the tool server of an agent. It uses only Own, More, Gate, Depth, Excuse and Emit of the job.
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

// Close closes the server. No command may be running.
func (s *ToolServer) Close() {
	for _, undo := range s.withdraw {
		undo()
	}
	_ = s.listener.Close() // a leftover directory in the runtime directory is harmless
}

// Dir returns the directory of the socket. Commands need access to it.
func (s *ToolServer) Dir() string { return s.listener.Dir() }

// Pass returns spec with access to the server. Only one such command may run at a time. The caller must
// call over when the command has ended or failed to start.
func (s *ToolServer) Pass(spec process.Spec) (_ process.Spec, over func()) {
	started := make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = started
	spec.Env = append(slices.Clone(spec.Env), s.listener.Env()...)
	spec.OnStart = func(child *process.Child) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.child = child
		close(started)
	}
	return spec, s.passed
}

func (s *ToolServer) passed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.child == nil {
		close(s.started)
	}
	s.started, s.child = nil, nil
}

// command returns the running command, or nil.
func (s *ToolServer) command() *process.Child {
	s.mu.Lock()
	started := s.started
	s.mu.Unlock()
	if started == nil {
		return nil
	}
	<-started
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.child
}

// holds reports whether a process belongs to the running command.
func (s *ToolServer) holds(pid int) bool {
	child := s.command()
	return child != nil && child.Contains(pid)
}

func (s *ToolServer) depth() int { return s.job.Depth }

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
