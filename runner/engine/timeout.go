package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/event"
)

// OverTimeError is the cause with which a step's context ends when its time is up.
type OverTimeError struct {
	Step  string // empty for the whole run
	Limit time.Duration
	key   string // path of the limited step
}

func (e *OverTimeError) Error() string {
	if e.Step == "" {
		return fmt.Sprintf("the run took longer than %s", e.Limit)
	}
	return fmt.Sprintf("step %s took longer than %s", e.Step, e.Limit)
}

// wholeRun is the key for the time limit of the whole run.
const wholeRun = "."

// timeout limits the time of a step. When the time is up, the current or next leaf fails, and its result
// names the limited step. Then the steps around the leaf end, up to the limited step, both now and in every
// replay.
type timeout struct {
	step  Step
	name  string // empty for the whole run
	limit time.Duration
}

// Run implements Step.
func (t timeout) Run(ctx context.Context, s *State) (Outcome, error) {
	over := &OverTimeError{Step: t.name, Limit: t.limit, key: wholeRun}
	if t.name != "" {
		over.key = s.at.leaf(t.name, s.attempt)
	}
	ctx, cancel := s.options.Clock.limit(ctx, t.limit, over)
	defer cancel()
	out, err := t.step.Run(ctx, s)
	if found := (*OverTimeError)(nil); errors.As(err, &found) && found.key == over.key {
		out.Verdict, out.Result.OK = Failed, false
		if out.Result.ErrorType = event.ErrorTimeout; !strings.HasPrefix(out.Result.Error, over.Error()) {
			out.Result.Error = over.Error() // the leaf may have added details
		}
		return out, nil
	}
	return out, err
}
