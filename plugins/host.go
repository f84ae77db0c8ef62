package plugins

import (
	"context"
	"errors"
	"os/exec"
	"sync"
	"time"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/forge"
	"github.com/coven-run/coven/plugins/internal/wire"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/provider"
	"github.com/coven-run/coven/plugins/reviewer"
)

// Errors of a Host, in addition to those of package pluginerr. A plugin that crashed,
// hung or never became ready is a pluginerr.ErrGone.
var (
	// ErrUnknown means that no plugin has the name.
	ErrUnknown = exit.Sentinel(exit.Usage, "coven plugins list", "unknown plugin")
	// ErrChecksum means that a plugin's program differs from the trusted one.
	ErrChecksum = errors.New("program differs from the trusted one")
	// ErrCrashed means that a plugin crashed, hung or failed to start twice without
	// answering a call in between. The Host does not start it again.
	ErrCrashed = errors.New("crashed twice")
	// ErrClosed means that the Host is closed.
	ErrClosed = errors.New("plugins of this run are shut down")
)

// Starter returns the command that runs a plugin. Killing the command, or the end of coven, must also kill
// its descendants. The host calls release after the command has exited, or instead of starting it. release
// returns when no process is left.
type Starter func(argv ...string) (cmd *exec.Cmd, release func(), err error)

// Binary is the program of a plugin.
type Binary struct {
	Argv    []string
	SHA256  []byte // expected hash of Argv[0]; empty to skip the check
	BuiltIn bool   // the program is coven itself

	// Capabilities are the capabilities that a provider declares. The host rejects commands that contradict
	// them, unless they are nil.
	Capabilities provider.Capabilities
}

// HostOptions configures a Host.
type HostOptions struct {
	// Start returns the command for a plugin's command line.
	Start Starter
	// Env returns the environment of a plugin, as KEY=VALUE. Nothing else is inherited;
	// go-plugin adds its own variables. Nil means an empty environment.
	Env func() []string
	// Credentials returns additional variables for a plugin that is coven itself. It may be nil. Other
	// plugins get only the credentials in Env.
	Credentials func(Need) []string
	// Resolve finds the program of a plugin. It returns ErrUnknown if there is none, and another error if
	// the plugin is not allowed to run.
	Resolve func(kind Kind, name string) (Binary, error)
	// Dir is the working directory of plugins: a private directory, so that relative names never refer to
	// the repository. It defaults to coven's own directory.
	Dir string
	// Sockets is the directory for the plugins' sockets. The path must be short.
	Sockets string
}

// Need identifies a plugin.
type Need struct {
	Kind Kind
	Name string
}

// Host runs plugins. Each has one process, started on first use and shared by all tasks
// of the run. A Host is safe for concurrent use.
//
// If a plugin crashes, its pending calls fail with a pluginerr.ErrGone that describes
// the exit and quotes the last output. The next call restarts the plugin once. After a
// second failure without an answered call in between, every use fails with ErrCrashed.
// Calls to other plugins are not delayed.
type Host struct {
	options HostOptions
	timing  timing
	speaks  []int // supported versions of the contracts

	closing      context.Context // done when Close begins
	startClosing context.CancelFunc
	working      sync.WaitGroup // starts and supervises processes

	mu      sync.Mutex
	closed  bool
	plugins map[Need]*plugin
}

// timing holds the time limits of a Host.
type timing struct {
	start         time.Duration // until a plugin must be ready
	interval      time.Duration // between two health checks
	timeout       time.Duration // for the answer to a health check
	shutdownGrace time.Duration // between a request to exit and the kill
}

// NewHost returns a host without starting any plugin.
func NewHost(o HostOptions) *Host {
	h := &Host{
		options: o, speaks: []int{protocolVersion}, plugins: map[Need]*plugin{},
		timing: timing{start: 30 * time.Second, interval: 5 * time.Second, timeout: 10 * time.Second, shutdownGrace: time.Second},
	}
	h.closing, h.startClosing = context.WithCancel(context.Background())
	return h
}

// Provider returns the named provider plugin and starts it if necessary. For an unknown
// name the error is ErrUnknown.
func (h *Host) Provider(ctx context.Context, name string) (provider.Provider, error) {
	p, err := h.ready(ctx, Need{KindProvider, name})
	if err != nil {
		return nil, err
	}
	return declared{wire.Provider(p), p}, nil
}

// Model is like Provider for model plugins.
func (h *Host) Model(ctx context.Context, name string) (model.Model, error) {
	p, err := h.ready(ctx, Need{KindModel, name})
	if err != nil {
		return nil, err
	}
	return wire.Model(p), nil
}

// Reviewer is like Provider for reviewer plugins.
func (h *Host) Reviewer(ctx context.Context, name string) (reviewer.Reviewer, error) {
	p, err := h.ready(ctx, Need{KindReviewer, name})
	if err != nil {
		return nil, err
	}
	return wire.Reviewer(p, p.services), nil
}

// Arbiter is like Provider for arbiter plugins.
func (h *Host) Arbiter(ctx context.Context, name string) (arbiter.Arbiter, error) {
	p, err := h.ready(ctx, Need{KindArbiter, name})
	if err != nil {
		return nil, err
	}
	return wire.Arbiter(p, p.services), nil
}

// Forge is like Provider for forge plugins.
func (h *Host) Forge(ctx context.Context, name string) (forge.Forge, error) {
	p, err := h.ready(ctx, Need{KindForge, name})
	if err != nil {
		return nil, err
	}
	return wire.Forge(p), nil
}

// Warm starts plugins concurrently and waits until each is ready or has failed. It
// returns the joined errors. When ctx is done, Warm returns and the plugins continue to
// start.
func (h *Host) Warm(ctx context.Context, needs ...Need) error {
	errs := make([]error, len(needs))
	var all sync.WaitGroup
	for i, need := range needs {
		all.Go(func() { _, errs[i] = h.ready(ctx, need) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// ready returns a plugin once it accepts calls.
func (h *Host) ready(ctx context.Context, need Need) (*plugin, error) {
	h.mu.Lock()
	p, known := h.plugins[need]
	if !known {
		p = newPlugin(h, need)
		h.plugins[need] = p
	}
	h.mu.Unlock()
	_, err := p.get(ctx)
	return p, err
}

// addWork registers work that Close waits for. It returns false after a call of Close.
func (h *Host) addWork() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.working.Add(1)
	}
	return !h.closed
}

// Close shuts down all plugin processes concurrently and returns when none is left.
// Each is asked to exit and killed after a second. Pending calls fail, and later calls
// return ErrClosed. Close may be called more than once.
func (h *Host) Close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.startClosing()
	h.working.Wait()
}
