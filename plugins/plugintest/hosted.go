package plugintest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/hostservice"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/provider"
	"github.com/coven-run/coven/plugins/reviewer"
)

// hosted returns the cases for all kinds in which coven's host runs the plugin.
func hosted() []testcase {
	return []testcase{
		{"ready", "coven's host starts the plugin, and it answers a first call", answersFirst},
		{"two at once", "concurrent calls do not wait for each other", answersTwo},
		{"cancellation", "a canceled call ends, and the next call is answered", testCancel},
	}
}

// endurance returns the cases that run last, when the plugin has handled many calls.
func endurance() []testcase {
	return []testcase{
		{"many calls", "memory, open files and threads do not grow with each call", endures},
		{"hang-up", "after coven's host shuts the plugin down, nothing is left", testClose},
	}
}

// call makes a simple call of the plugin's kind.
func (s *suite) call(ctx context.Context, host hostservice.Services) error {
	return s.within(ctx, func(ctx context.Context) error {
		switch s.kind {
		case plugins.KindReviewer:
			return s.review(ctx, s.simple(), host)
		case plugins.KindArbiter:
			return s.decide(ctx, question(), host)
		case plugins.KindProvider:
			_, err := s.command(ctx, request())
			return err
		case plugins.KindForge:
			return s.polled(ctx)
		}
		return s.turn(ctx, turn(), func(model.Event) error { return nil })
	})
}

// services returns services for a plugin of this kind, with an agent that approves everything.
func (s *suite) services() *Services {
	answer := "All is well.\n\n```json\n{\"verdict\": \"pass\", \"findings\": [], \"summary\": \"nothing to say\"}\n```\n"
	if s.kind == plugins.KindArbiter {
		answer = "Enough.\n\n```json\n{\"continue\": false, \"reason\": \"nothing is left to fix\"}\n```\n"
	}
	return &Services{Answers: []hostservice.Answer{{Text: answer, Conversation: "c1"}}}
}

// working skips a case if the plugin does not work.
func (s *suite) working() error {
	if !s.passed("ready") {
		return skipf("the plugin does not answer")
	}
	return nil
}

// firstAnswer is the time limit of the first call unless Options.Answer is set. A plugin that waits for
// services without connecting would otherwise use the full limit.
const firstAnswer = 10 * time.Second

func answersFirst(ctx context.Context, s *suite) error {
	limit := firstAnswer
	if s.options.Answer > 0 {
		limit = s.options.Answer
	}
	host, asked := s.services(), atomic.Bool{}
	host.Before = func(context.Context, string) error { asked.Store(true); return nil }
	within, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %v: %w", limit, context.DeadlineExceeded))
	defer cancel()
	err := s.call(within, host)
	if within.Err() != nil && ctx.Err() == nil && !asked.Load() && (s.kind == plugins.KindReviewer || s.kind == plugins.KindArbiter) {
		err = fmt.Errorf("%w: the plugin sent no request to coven's services. If it waits for them, it does not connect to the address from its broker (see Services of coven in docs/formats/plugin.md)", context.Cause(within))
	}
	if s.kind == plugins.KindModel && err != nil && s.passed("health") && !errors.Is(err, pluginerr.ErrGone) && !errors.Is(err, pluginerr.ErrInvalid) {
		return skipf("the model API could not be reached: %v", err)
	}
	return err
}

// answersTwo blocks one call at its first request, if it makes any, and makes seven other calls at the same
// time.
func answersTwo(ctx context.Context, s *suite) error {
	if err := s.working(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	begun, free := make(chan struct{}), make(chan struct{})
	var once sync.Once
	held := s.services()
	held.Before = func(ctx context.Context, _ string) error {
		once.Do(func() { close(begun) })
		select {
		case <-free:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	first := make(chan error, 1)
	go func() { first <- s.call(ctx, held) }()
	select { // make the other calls while it is blocked
	case <-begun:
	case err := <-first: // it makes no request, so it is not blocked
		if err != nil {
			return err
		}
		first <- nil
	}
	const others = 7
	done := make(chan error, others)
	for range others {
		go func() { done <- s.call(ctx, s.services()) }()
	}
	for range others {
		if err := <-done; err != nil {
			return fmt.Errorf("eight concurrent calls: %w", err)
		}
	}
	close(free)
	return <-first
}

// cancelled is the number of calls that are canceled.
const cancelled = 20

func testCancel(ctx context.Context, s *suite) error {
	if err := s.working(); err != nil {
		return err
	}
	var open atomic.Int64 // pending requests
	for i := range cancelled {
		after := time.Duration(i) * 5 * time.Millisecond // at different stages of the call
		if !s.cancel(ctx, after, &open) {
			return fmt.Errorf("a call was still running %v after it was canceled", s.options.end())
		}
	}
	if !s.soon(ctx, func() bool { return open.Load() == 0 }) {
		return fmt.Errorf("a request to coven's services was still running %v after its call was canceled", s.options.end())
	}
	if err := s.call(ctx, s.services()); err != nil {
		return fmt.Errorf("the call after %d canceled calls: %w", cancelled, err)
	}
	return nil
}

// cancel makes a call and cancels it after a delay, or at its first request to coven's services, which is
// not answered. It reports whether the call ended within the time limit.
func (s *suite) cancel(ctx context.Context, after time.Duration, open *atomic.Int64) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	asked := make(chan struct{}, 1)
	host := s.services()
	host.Before = func(ctx context.Context, _ string) error {
		open.Add(1)
		defer open.Add(-1)
		select {
		case asked <- struct{}{}:
		default:
		}
		<-ctx.Done()
		return context.Cause(ctx)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.call(ctx, host) // the error is the cancellation
	}()
	timer := time.NewTimer(after)
	defer timer.Stop()
	select {
	case <-asked:
	case <-timer.C:
	case <-ended:
	}
	cancel()
	return s.soon(context.WithoutCancel(ctx), func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	})
}

// soon reports whether the condition becomes true within the time limit for the exit.
func (s *suite) soon(ctx context.Context, holds func() bool) bool {
	timer, ticker := time.NewTimer(s.options.end()), time.NewTicker(5*time.Millisecond)
	defer timer.Stop()
	defer ticker.Stop()
	for !holds() {
		select {
		case <-ticker.C:
		case <-timer.C:
			return holds()
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// The number of calls in the endurance test, and the limits for the growth of resources.
const (
	warmUp      = 60
	calls       = 300
	fewCalls    = 40 // fewer are not conclusive
	patience    = 10 * time.Second
	moreBytes   = 48 << 20 // 160 KiB per call
	moreFiles   = 30
	moreThreads = 60
)

// repeat makes up to n calls within patience and returns their number.
func (s *suite) repeat(ctx context.Context, n int) (int, error) {
	end := time.Now().Add(patience)
	for i := range n {
		if err := s.call(ctx, s.services()); err != nil {
			return i, fmt.Errorf("call %d: %w", i+1, err)
		}
		if time.Now().After(end) {
			return i + 1, nil
		}
	}
	return n, nil
}

func endures(ctx context.Context, s *suite) error {
	if err := s.working(); err != nil {
		return err
	}
	start := time.Now()
	if _, err := s.repeat(ctx, 1); err != nil {
		return err
	}
	if took := time.Since(start); took*(warmUp+fewCalls) > 2*patience {
		return skipf("a call takes %v, too long to measure within %v", took.Round(time.Millisecond), 2*patience)
	}
	if _, err := s.repeat(ctx, warmUp); err != nil {
		return err
	}
	before, unseen := usageOf(s.home.mark())
	made, err := s.repeat(ctx, calls)
	switch {
	case err != nil:
		return err
	case unseen != nil:
		return skipf("not measured: %v", unseen)
	case made < fewCalls:
		return skipf("only %d calls within %v, too few to measure", made, patience)
	}
	after, err := usageOf(s.home.mark())
	switch {
	case err != nil:
		return err
	case (after.bytes-before.bytes)/made > moreBytes/calls:
		return fmt.Errorf("memory grew in %d calls by %d MiB: from %d to %d", made, (after.bytes-before.bytes)>>20, before.bytes>>20, after.bytes>>20)
	case after.files-before.files > moreFiles:
		return fmt.Errorf("%d calls left %d more open files", made, after.files-before.files)
	case after.threads-before.threads > moreThreads:
		return fmt.Errorf("%d calls left %d more threads", made, after.threads-before.threads)
	}
	return nil
}

func testClose(ctx context.Context, s *suite) error {
	if err := s.working(); err != nil {
		return err
	}
	defer s.restart()
	s.plugin().Close()
	return s.leaves(ctx)
}

// review calls the plugin's Review. The host validates the answer.
func (s *suite) review(ctx context.Context, change reviewer.Change, host hostservice.Services) error {
	r, err := s.plugin().Reviewer(ctx)
	if err != nil {
		return err
	}
	_, err = r.Review(ctx, change, host)
	return err
}

func (s *suite) decide(ctx context.Context, q arbiter.Question, host hostservice.Services) error {
	if q.Options == nil {
		q.Options = s.options.With
	}
	a, err := s.plugin().Arbiter(ctx)
	if err != nil {
		return err
	}
	_, err = a.Decide(ctx, q, host)
	return err
}

func (s *suite) command(ctx context.Context, req provider.Request) (provider.Command, error) {
	p, err := s.plugin().Provider(ctx)
	if err != nil {
		return provider.Command{}, err
	}
	return p.Command(ctx, req)
}

func (s *suite) turn(ctx context.Context, req model.Request, emit func(model.Event) error) error {
	m, err := s.plugin().Model(ctx)
	if err != nil {
		return err
	}
	return m.Turn(ctx, req, emit)
}
