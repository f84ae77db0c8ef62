package plugins

import (
	"context"
	"errors"
	"os/exec"
	"sync"
	"time"

	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/internal/wire"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/provider"
	"github.com/coven-run/coven/plugins/reviewer"
)

// What a Host's errors are, beside those of package fault: a plugin that died,
// hung or never became ready is a pluginerr.ErrGone.
var (
	// ErrUnknown says that no plugin of that name exists.
	ErrUnknown = errors.New("unknown plugin")
	// ErrChecksum says that a plugin's program is not the one that was trusted.
	ErrChecksum = errors.New("not the program that was trusted")
	// ErrCrashed says that a plugin has crashed, hung or failed to start twice, and
	// answered no call in between: it is not started again by this Host.
	ErrCrashed = errors.New("crashed twice")
	// ErrClosed says that the Host is closed.
	ErrClosed = errors.New("the plugins of this run have been ended")
)

// Starter makes the command that runs a plugin: contained, so that killing it
// kills everything it started, and gone with that when coven ends. release is
// called after the end, or in place of the start, and returns when nothing of it
// is alive.
type Starter func(argv ...string) (cmd *exec.Cmd, release func(), err error)

// Binary is the program of a plugin.
type Binary struct {
	Argv    []string
	SHA256  []byte // of Argv[0], which must have it; empty: anything is run
	BuiltIn bool   // it is coven itself
}

// HostOptions is what a Host needs to know.
type HostOptions struct {
	// Start starts a plugin's command line.
	Start Starter
	// Env is the environment of a plugin, KEY=VALUE, beside what go-plugin says in
	// it: nothing is inherited from coven. Nil: no more than that.
	Env func() []string
	// Resolve finds the program of a plugin; ErrUnknown when there is none. What
	// may not be run is an error, too.
	Resolve func(kind Kind, name string) (Binary, error)
	// Dir is where plugins start: a private directory, so that no name in them that is
	// relative is one of the repository. Empty: coven's own.
	Dir string
	// Sockets is the directory of the plugins' sockets: a short path.
	Sockets string
}

// Need names a plugin.
type Need struct {
	Kind Kind
	Name string
}

// Host runs plugins: one process per plugin, started when it is first needed
// and shared by all tasks of the run. It is safe for concurrent use.
//
// A plugin that dies fails the calls under way with a pluginerr.ErrGone that says how
// it ended and what it printed last. The next call starts it again, once: after a
// second failure every use is an ErrCrashed, unless it answered a call since the first.
// Calls of other plugins do not wait for any of that.
type Host struct {
	options HostOptions
	pace    pace
	speaks  []int // versions of the contracts

	ended   context.Context // done when Close begins
	end     context.CancelFunc
	working sync.WaitGroup // starts and watches over processes

	mu      sync.Mutex
	closed  bool
	members map[Need]*member
}

// pace is how long a Host waits for what.
type pace struct {
	start    time.Duration // for a plugin to become ready
	beat     time.Duration // between two questions whether a plugin is well
	patience time.Duration // for the answer
	farewell time.Duration // for a plugin to end that was asked to
}

// NewHost returns a host. It starts nothing.
func NewHost(o HostOptions) *Host {
	h := &Host{
		options: o, speaks: []int{protocolVersion}, members: map[Need]*member{},
		pace: pace{start: 30 * time.Second, beat: 5 * time.Second, patience: 10 * time.Second, farewell: time.Second},
	}
	h.ended, h.end = context.WithCancel(context.Background())
	return h
}

// Provider returns the provider plugin of that name, started if need be. An
// unknown name is ErrUnknown.
func (h *Host) Provider(ctx context.Context, name string) (provider.Provider, error) {
	m, err := h.ready(ctx, Need{KindProvider, name})
	if err != nil {
		return nil, err
	}
	return wire.Provider(m), nil
}

// Model returns the model plugin of that name, as Provider does.
func (h *Host) Model(ctx context.Context, name string) (model.Model, error) {
	m, err := h.ready(ctx, Need{KindModel, name})
	if err != nil {
		return nil, err
	}
	return wire.Model(m), nil
}

// Reviewer returns the reviewer plugin of that name, as Provider does.
func (h *Host) Reviewer(ctx context.Context, name string) (reviewer.Reviewer, error) {
	m, err := h.ready(ctx, Need{KindReviewer, name})
	if err != nil {
		return nil, err
	}
	return wire.Reviewer(m, m.desk), nil
}

// Arbiter returns the arbiter plugin of that name, as Provider does.
func (h *Host) Arbiter(ctx context.Context, name string) (arbiter.Arbiter, error) {
	m, err := h.ready(ctx, Need{KindArbiter, name})
	if err != nil {
		return nil, err
	}
	return wire.Arbiter(m, m.desk), nil
}

// Warm starts plugins, all at the same time, and returns when each is ready or
// has failed: the errors of all that failed. When ctx is done it returns, and
// what was begun goes on.
func (h *Host) Warm(ctx context.Context, needs ...Need) error {
	errs := make([]error, len(needs))
	var all sync.WaitGroup
	for i, need := range needs {
		all.Go(func() { _, errs[i] = h.ready(ctx, need) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// ready returns a plugin when it can be asked.
func (h *Host) ready(ctx context.Context, need Need) (*member, error) {
	h.mu.Lock()
	m, known := h.members[need]
	if !known {
		m = newMember(h, need)
		h.members[need] = m
	}
	h.mu.Unlock()
	_, err := m.get(ctx)
	return m, err
}

// begin counts a piece of work that Close waits for; false: Close has begun.
func (h *Host) begin() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.working.Add(1)
	}
	return !h.closed
}

// Close ends all plugin processes, all at the same time, and returns when
// nothing of them is left: each is asked to end and after a second made to. Calls
// under way fail. It may be called again, and what is asked of the plugins
// afterwards is ErrClosed.
func (h *Host) Close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.end()
	h.working.Wait()
}
