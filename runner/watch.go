package runner

import (
	"context"
	"errors"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/text/shellword"
)

// Everything that runs programs of the task is watched: each run of an agent, of a script or of a check, and
// the plugins of a review together. This includes checks without a sandbox, for which a watch takes longer
// (30 to 90 ms), because they run code that an agent has just written. Commit hooks are not watched: they
// belong to the user, and may change the repository on purpose.
//
// A change that stops the step ends it at once: the worktree is neither committed, saved nor restored,
// because git may have been manipulated. When a person resumes the session, the step continues as after an
// interruption.

// changedError ends a leaf because the repository changed while it ran.
type changedError struct{ change event.RepositoryChange }

func (e *changedError) Error() string { return e.change.Summary() }

// result returns the result of the leaf.
func (e *changedError) result() event.Result {
	return event.Result{Error: e.Error(), ErrorType: event.ErrorRepository, Rescue: e.change.Rescue}
}

// isChanged reports whether err is a *changedError.
func isChanged(err error) bool { return errors.As(err, new(*changedError)) }

// watched calls work, which runs programs of the task, and records changes in the parts of the repository
// that they must not change. If the leaf must end, the error is a *changedError, and that of work is
// dropped.
func (x *Executor) watched(ctx context.Context, path string, work func() error) error {
	if err := x.Tripwire.Watch(ctx); err != nil {
		return err
	}
	err := work()
	change, compareErr := x.Tripwire.Compare(context.WithoutCancel(ctx))
	if compareErr != nil {
		return errors.Join(err, compareErr)
	}
	if change != nil {
		if emitErr := x.emit(event.RepositoryChanged, path, change); emitErr != nil {
			return errors.Join(err, emitErr)
		}
	}
	if watchErr := x.Tripwire.EndWatch(); watchErr != nil {
		return errors.Join(err, watchErr)
	}
	if change != nil && change.Severity == event.SeverityStops {
		return &changedError{*change}
	}
	return err
}

// unstopped returns the last recorded change that should have stopped a step but has not, because the
// session was interrupted. It returns nil if there is none.
func (x *Executor) unstopped() *changedError {
	if change := x.evidence().Unstopped(); change != nil {
		return &changedError{*change}
	}
	return nil
}

// showRescue returns the command that shows a rescue, followed by then.
func showRescue(rescue, then string) string {
	if rescue == "" {
		return then
	}
	return "coven rescue show " + shellword.Word(rescue) + ", then " + then
}
