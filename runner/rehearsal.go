package runner

import (
	"context"
	"errors"
	"slices"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/runner/rehearsal"
)

// rehearse tries the commit of the change, once, before the first step. The error is a *rehearsal.Error.
func (r *Runner) rehearse(ctx context.Context) error {
	begun := slices.ContainsFunc(r.Journal.All(event.StepStarted), func(e event.Event) bool { return !event.IsSetup(e.Path) })
	if begun || r.Plan.Chat != nil || r.closed() {
		return nil
	}
	err := r.Executor.Commands.Rehearse(ctx, message(r.Executor.Title, "What the agent did."))
	if refused := (*RefusedError)(nil); errors.As(err, &refused) {
		return &rehearsal.Error{Reason: refused.Reason}
	}
	return err
}
