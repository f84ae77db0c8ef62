package plugins

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"

	goplugin "github.com/hashicorp/go-plugin"

	"github.com/coven-run/coven/plugins/internal/wire"
)

// maxFailures is the number of consecutive crashes and failed starts after which a
// plugin is not started again. An answered call resets the count.
const maxFailures = 2

// plugin is one plugin of a Host across all its processes. More methods are in
// connection.go.
type plugin struct {
	host     *Host
	need     Need
	services *wire.ServiceServer // the services that the plugin may call

	mu       sync.Mutex
	latest   *startAttempt // nil if the plugin was not started or has exited
	failures int           // consecutive
	last     error         // cause of the last failure
}

// startAttempt is one start of a plugin and its result.
type startAttempt struct {
	done     chan struct{} // closed when the fields below are set
	instance *instance     // nil if the start failed
	err      error         // why the start failed
	counts   bool          // whether err counts as a failure of the plugin
}

func newPlugin(h *Host, need Need) *plugin {
	return &plugin{host: h, need: need, services: wire.NewServiceServer()}
}

// String returns the kind and the name of the plugin for messages.
func (p *plugin) String() string { return string(p.need.Kind) + " plugin " + p.need.Name }

// get returns the running instance and starts the plugin if necessary. When ctx is
// done, get returns but the start continues.
func (p *plugin) get(ctx context.Context) (*instance, error) {
	for ctx.Err() == nil {
		s, err := p.currentStart()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
		select {
		case <-s.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if s.err != nil {
			return nil, fmt.Errorf("%s: %w", p, s.err)
		}
		if !s.instance.process.stopping() {
			return s.instance, nil
		}
		select { // wait for the exit before the next start
		case <-s.instance.process.done:
		case <-ctx.Done():
		}
	}
	return nil, context.Cause(ctx)
}

// currentStart returns the start of the running process, the start in progress, or a
// new start.
func (p *plugin) currentStart() (*startAttempt, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.host.closing.Err() != nil {
		return nil, ErrClosed
	}
	if p.latest != nil && !p.clearEnded() {
		return p.latest, nil
	}
	if p.failures >= maxFailures {
		return nil, fmt.Errorf("%w and is not started again in this run; last failure: %w", ErrCrashed, p.last)
	}
	if !p.host.addWork() {
		return nil, ErrClosed
	}
	p.latest = &startAttempt{done: make(chan struct{})}
	go p.run(p.latest)
	return p.latest, nil
}

// clearEnded clears the latest start if it failed or its process exited, and counts the failure. It reports
// whether it did so.
func (p *plugin) clearEnded() bool {
	s := p.latest
	select {
	case <-s.done:
	default:
		return false
	}
	switch {
	case s.instance == nil && s.counts:
		p.failures, p.last = p.failures+1, s.err
	case s.instance != nil && !s.instance.process.gone():
		return false
	case s.instance != nil:
		if s.instance.answered.Load() {
			p.failures = 0
		}
		p.failures, p.last = p.failures+1, s.instance.process.exitError()
	}
	p.latest = nil
	return true
}

// run executes the start s and then supervises the process until it has exited and is
// cleaned up.
func (p *plugin) run(s *startAttempt) {
	defer p.host.working.Done()
	t := p.host.timing
	s.instance, s.counts, s.err = p.launch()
	close(s.done)
	if s.instance != nil {
		s.instance.watch(p.host.closing, t)
	}
}

// launch starts the plugin. counts reports whether an error counts as a failure of the plugin. Errors of
// Resolve and of the checksum do not.
func (p *plugin) launch() (i *instance, counts bool, err error) {
	binary, err := p.host.options.Resolve(p.need.Kind, p.need.Name)
	if err != nil {
		return nil, false, err
	}
	if err := checkSum(binary); err != nil {
		return nil, false, err
	}
	i, err = p.host.start(p, binary)
	if errors.Is(err, ErrClosed) {
		return nil, false, ErrClosed
	}
	if err != nil {
		return nil, true, fmt.Errorf("start: %w", err)
	}
	return i, false, nil
}

// checkSum compares the program with its expected hash immediately before the start.
func checkSum(b Binary) error {
	if len(b.SHA256) == 0 {
		return nil
	}
	sum := sha256.New()
	ok, err := (&goplugin.SecureConfig{Checksum: b.SHA256, Hash: sum}).Check(b.Argv[0])
	if err != nil {
		return fmt.Errorf("check the program: %w", err)
	}
	if !ok {
		return fmt.Errorf("%s has SHA-256 %x, expected %x: %w", b.Argv[0], sum.Sum(nil), b.SHA256, ErrChecksum)
	}
	return nil
}
