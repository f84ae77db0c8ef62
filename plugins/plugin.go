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

// maxFailures is after how many crashes and failed starts in a row a plugin is not
// started any more: an answered call between them ends the row.
const maxFailures = 2

// plugin is one plugin of a Host, through all its processes. Its methods are in
// connection.go, too.
type plugin struct {
	host     *Host
	need     Need
	services *wire.ServiceServer // where it finds coven

	mu       sync.Mutex
	latest   *startAttempt // nil: none yet, or the last one is over
	failures int           // in a row
	last     error         // the last failure
}

// startAttempt is one start of a plugin and what came of it.
type startAttempt struct {
	done     chan struct{} // closed when it is known what came of it
	instance *instance     // nil: nothing
	err      error         // why
	counts   bool          // err is a failure of the plugin
}

func newPlugin(h *Host, need Need) *plugin {
	return &plugin{host: h, need: need, services: wire.NewServiceServer()}
}

// String names the plugin for people.
func (p *plugin) String() string { return string(p.need.Kind) + " plugin " + p.need.Name }

// get returns the plugin's process, started if need be. Waiting for it ends with
// ctx, the start does not.
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
		select { // and then the next one
		case <-s.instance.process.done:
		case <-ctx.Done():
		}
	}
	return nil, context.Cause(ctx)
}

// currentStart returns the start that is to be waited for: the one whose process lives,
// the one under way, or a new one.
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
		return nil, fmt.Errorf("%w, it is not started again in this run; the last time: %w", ErrCrashed, p.last)
	}
	if !p.host.addWork() {
		return nil, ErrClosed
	}
	p.latest = &startAttempt{done: make(chan struct{})}
	go p.run(p.latest)
	return p.latest, nil
}

// clearEnded says that the current start is over and nothing lives of it; it is then
// forgotten but for what it counts.
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

// run makes the start s and then watches over the process until it is gone and
// nothing of it is left.
func (p *plugin) run(s *startAttempt) {
	defer p.host.working.Done()
	t := p.host.timing
	s.instance, s.counts, s.err = p.launch()
	close(s.done)
	if s.instance != nil {
		s.instance.watch(p.host.closing, t)
	}
}

// launch starts the plugin. counts says that the failure is one of the plugin,
// and not that it may not be run.
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
		return nil, true, fmt.Errorf("start it: %w", err)
	}
	return i, false, nil
}

// checkSum compares the program with what it must be, as the last thing before
// it is run.
func checkSum(b Binary) error {
	if len(b.SHA256) == 0 {
		return nil
	}
	sum := sha256.New()
	ok, err := (&goplugin.SecureConfig{Checksum: b.SHA256, Hash: sum}).Check(b.Argv[0])
	if err != nil {
		return fmt.Errorf("check its program: %w", err)
	}
	if !ok {
		return fmt.Errorf("%s has SHA-256 %x, trusted is %x: %w", b.Argv[0], sum.Sum(nil), b.SHA256, ErrChecksum)
	}
	return nil
}
