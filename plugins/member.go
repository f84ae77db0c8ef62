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

// mostFailures is after how many crashes and failed starts in a row a plugin is not
// started any more: an answered call between them ends the row.
const mostFailures = 2

// member is one plugin of a Host, through all its processes. Its methods are in
// connection.go, too.
type member struct {
	host *Host
	need Need
	desk *wire.Desk // where it finds coven

	mu       sync.Mutex
	current  *start // nil: none yet, or the last one is over
	failures int    // in a row
	last     error  // the last failure
}

// start is one start of a plugin and what came of it.
type start struct {
	over   chan struct{} // closed when it is known what came of it
	worker *worker       // nil: nothing
	err    error         // why
	counts bool          // err is a failure of the plugin
}

func newMember(h *Host, need Need) *member {
	return &member{host: h, need: need, desk: wire.NewDesk()}
}

// String names the plugin for people.
func (m *member) String() string { return string(m.need.Kind) + " plugin " + m.need.Name }

// get returns the plugin's process, started if need be. Waiting for it ends with
// ctx, the start does not.
func (m *member) get(ctx context.Context) (*worker, error) {
	for ctx.Err() == nil {
		s, err := m.turn()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m, err)
		}
		select {
		case <-s.over:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if s.err != nil {
			return nil, fmt.Errorf("%s: %w", m, s.err)
		}
		if !s.worker.process.doomed() {
			return s.worker, nil
		}
		select { // and then the next one
		case <-s.worker.process.done:
		case <-ctx.Done():
		}
	}
	return nil, context.Cause(ctx)
}

// turn returns the start that is to be waited for: the one whose process lives,
// the one under way, or a new one.
func (m *member) turn() (*start, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.host.ended.Err() != nil {
		return nil, ErrClosed
	}
	if m.current != nil && !m.settled() {
		return m.current, nil
	}
	if m.failures >= mostFailures {
		return nil, fmt.Errorf("%w, it is not started again in this run; the last time: %w", ErrCrashed, m.last)
	}
	if !m.host.begin() {
		return nil, ErrClosed
	}
	m.current = &start{over: make(chan struct{})}
	go m.run(m.current)
	return m.current, nil
}

// settled says that the current start is over and nothing lives of it; it is then
// forgotten but for what it counts.
func (m *member) settled() bool {
	s := m.current
	select {
	case <-s.over:
	default:
		return false
	}
	switch {
	case s.worker == nil && s.counts:
		m.failures, m.last = m.failures+1, s.err
	case s.worker != nil && !s.worker.process.gone():
		return false
	case s.worker != nil:
		if s.worker.answered.Load() {
			m.failures = 0
		}
		m.failures, m.last = m.failures+1, s.worker.process.obituary()
	}
	m.current = nil
	return true
}

// run makes the start s and then watches over the process until it is gone and
// nothing of it is left.
func (m *member) run(s *start) {
	defer m.host.working.Done()
	pace := m.host.pace
	s.worker, s.counts, s.err = m.launch()
	close(s.over)
	if s.worker != nil {
		s.worker.watch(m.host.ended, pace)
	}
}

// launch starts the plugin. counts says that the failure is one of the plugin,
// and not that it may not be run.
func (m *member) launch() (w *worker, counts bool, err error) {
	binary, err := m.host.options.Resolve(m.need.Kind, m.need.Name)
	if err != nil {
		return nil, false, err
	}
	if err := checkSum(binary); err != nil {
		return nil, false, err
	}
	w, err = m.host.hire(m, binary)
	if errors.Is(err, ErrClosed) {
		return nil, false, ErrClosed
	}
	if err != nil {
		return nil, true, fmt.Errorf("start it: %w", err)
	}
	return w, false, nil
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
