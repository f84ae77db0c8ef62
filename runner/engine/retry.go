package engine

import (
	"context"
	"time"
)

// retry repeats a failed step. The pause before an attempt doubles each time.
type retry struct {
	step    Step
	name    string
	more    int
	backoff time.Duration
}

// maxBackoff limits the pause before another attempt.
const maxBackoff = 15 * time.Minute

// Run implements Step.
func (r retry) Run(ctx context.Context, s *State) (Outcome, error) {
	tolerant, attempt := s.tolerant, s.attempt
	defer func() { s.tolerant, s.attempt = tolerant, attempt }()
	for s.attempt = 1; ; s.attempt++ {
		s.tolerant = tolerant || s.attempt <= r.more
		out, err := r.step.Run(ctx, s)
		if err != nil || out.Verdict != Failed && out.Verdict != Stopped || s.attempt > r.more || isFinal(out.Result) {
			return out, err
		}
		if err := r.pause(ctx, s); err != nil {
			return Outcome{Path: out.Path}, err
		}
	}
}

// pause waits before the next attempt.
func (r retry) pause(ctx context.Context, s *State) error {
	if r.backoff == 0 {
		return nil
	}
	wait := min(r.backoff<<min(s.attempt-1, 30), maxBackoff)
	if wait <= 0 {
		wait = maxBackoff
	}
	outer := s.at
	defer func() { s.at = outer }()
	s.at = append(outer[:len(outer):len(outer)], r.name)
	_, err := s.call(ctx, "backoff", Call{Pause: &PauseInput{For: wait}})
	return err
}
