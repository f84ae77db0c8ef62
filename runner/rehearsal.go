package runner

import (
	"context"
	"errors"
	"slices"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
)

// A RehearsalError means that a hook, a filter or the signature of the repository fails before the first agent starts. The
// session is interrupted, and its task is not to blame: others would fail in the same way, after their agents were paid.
type RehearsalError struct{ Reason string }

func (e *RehearsalError) Error() string { return "the commit of a change would fail: " + e.Reason }

// CommandExit returns exit.Usage.
func (e *RehearsalError) CommandExit() int { return exit.Usage }

// NextCommand asks for a repair, without which coven resume would fail again.
func (e *RehearsalError) NextCommand() string { return "repair it, then coven resume" }

// rehearse tries the commit of the change, once, before the first step. The error is a *RehearsalError.
func (r *Runner) rehearse(ctx context.Context) error {
	begun := slices.ContainsFunc(r.Journal.All(event.StepStarted), func(e event.Event) bool { return !event.IsSetup(e.Path) })
	if begun || r.Plan.Chat != nil || r.closed() {
		return nil
	}
	err := r.Executor.Commands.Rehearse(ctx, message(r.Executor.Title, "What the agent did."))
	if refused := (*RefusedError)(nil); errors.As(err, &refused) {
		return &RehearsalError{refused.Reason}
	}
	return err
}
