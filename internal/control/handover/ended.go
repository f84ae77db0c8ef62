package handover

import (
	"context"
	"errors"
	"fmt"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/worktree/live"
)

// over handles the end of a session, which this machine knows, on the remote. The record here becomes the one of the machine that ended it, if the archives have that. If the
// task has landed, the session can be resumed, and completes.
func over(ctx context.Context, p *project.Project, name, task string, here session.View) error {
	if here.ID == "" || !here.Unfinished() {
		return live.Know(ctx, p.Repo, task, "")
	}
	known, err := live.Known(ctx, p.Repo, task)
	if err != nil {
		return err
	}
	up, archives, problem, err := fetchEnds(ctx, p, name, here)
	if err != nil {
		return err
	}
	m := &mirror{view: here, known: known}
	if err := m.end(ctx, p, up.Tip, archives); err != nil {
		return err
	}
	if err := recoverLanding(ctx, p, here); err != nil {
		return err
	}
	events, failed := archived(ctx, p, name, archives, here, m.state.Landed)
	if m.events, problem = events, errors.Join(problem, failed); ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := m.write(ctx, p); err != nil {
		return err
	}
	if problem != nil {
		warn(p, here, oneline.Of(p.Hidden("the record of its end is not here: "+problem.Error())))
	}
	if m.state.Landed == "" {
		return &EndedError{Task: here.Task}
	}
	if err := live.Know(ctx, p.Repo, here.Task, ""); err != nil {
		return err
	}
	return &LandedError{Task: here.Task, Commit: m.state.Landed}
}

// An EndedError means that a session ended on another machine, without landing.
type EndedError struct{ Task string }

func (e *EndedError) Error() string {
	return fmt.Sprintf("the session of task %s ended on another machine, without landing", e.Task)
}

// CommandExit returns exit.Person.
func (e *EndedError) CommandExit() int { return exit.Person }

// NextCommand returns the command that ends the session here.
func (e *EndedError) NextCommand() string { return "coven cancel " + shellword.Word(e.Task) }

// A LandedError means that another machine has landed a task. Its session here can be resumed in any state, and completes then.
type LandedError struct{ Task, Commit string }

func (e *LandedError) Error() string {
	return fmt.Sprintf("another machine has landed task %s as %.12s", e.Task, e.Commit)
}

// NextCommand returns the command that completes the session.
func (e *LandedError) NextCommand() string { return "coven resume " + shellword.Word(e.Task) }
