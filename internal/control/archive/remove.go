package archive

import (
	"context"
	"errors"
	"time"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/claim"
	"github.com/coven-run/coven/worktree/snapshot"
)

// Remove removes the record of a session that is over. It also removes the snapshots of a session that has
// landed; those of other sessions stay until coven gc deletes them. It returns an error if the session must
// be kept.
func Remove(ctx context.Context, p *project.Project, s session.Summary) error {
	if err := checkRemovable(ctx, p, s); err != nil {
		return err
	}
	locked, err := session.Open(p.Repo.Root, s.ID, p.Env.Now) // while it is locked, no process can continue it
	if errors.Is(err, session.ErrBusy) {
		return exit.Personf("coven why "+shellword.Word(s.Task), "%w", err)
	}
	if err != nil {
		return err
	}
	defer locked.Close() //nolint:errcheck // nothing was written
	if s.Status == session.Completed {
		if err := snapshot.Drop(ctx, p.Repo, s.ID); err != nil {
			return err
		}
	}
	if err := remove(p.Repo.Root, s.ID); err != nil {
		return err
	}
	return p.Backups().Remove(s.ID)
}

// checkRemovable returns an error if a session must not be removed.
func checkRemovable(ctx context.Context, p *project.Project, s session.Summary) error {
	task := shellword.Word(s.Task)
	if s.Live() || !s.IsOver() || session.Busy(s.Dir()) {
		return exit.Personf("coven why "+task, "session %s can continue: it is %s", s.ID, s.Status)
	}
	newest, err := p.Finder.OfTask(s.Task)
	if err != nil || newest.ID != s.ID {
		return err // a later session owns the worktree
	}
	_, err = worktree.Leftover(ctx, p.Repo, s.Task)
	switch {
	case err == nil:
		return exit.Personf("coven worktree remove "+task, "session %s has a worktree", s.ID)
	case !errors.Is(err, worktree.ErrNoWorktree):
		return err
	}
	held, err := claim.Of(ctx, p.Repo, s.Task)
	switch {
	case err == nil && held.Session == s.ID: // its record says how the task is released
		return exit.Personf("coven cancel "+task, "session %s has claimed its task", s.ID)
	case errors.Is(err, claim.ErrNoClaim):
		return nil
	}
	return err
}

// CleanRequest selects the sessions to remove.
type CleanRequest struct {
	Before     time.Time // those that ended earlier
	KeepFailed bool      // keep those that did not complete
	DryRun     bool      // remove nothing
}

// Cleaned is a session that Clean removed, or kept although it is old enough.
type Cleaned struct {
	Session string    `json:"session"`
	Status  string    `json:"status"`
	Ended   time.Time `json:"completed_at"`
	Kept    string    `json:"kept,omitempty"` // why it is still there
}

// Clean removes the records of sessions that ended long ago, the oldest last.
func Clean(ctx context.Context, p *project.Project, r CleanRequest) ([]Cleaned, error) {
	all, err := p.Finder.Summaries()
	if _, err = session.DamagedIn(err); err != nil {
		return nil, err
	}
	done := []Cleaned{}
	for _, s := range all {
		if !s.IsOver() || s.Live() || !s.Ended.Before(r.Before) || r.KeepFailed && s.Status != session.Completed {
			continue
		}
		one := Cleaned{Session: s.ID, Status: string(s.Status), Ended: s.Ended}
		remove := Remove
		if r.DryRun {
			remove = checkRemovable
		}
		if err := remove(ctx, p, s); err != nil {
			if exit.Code(err) != exit.Person {
				return done, err
			}
			one.Kept = err.Error()
		}
		done = append(done, one)
	}
	return done, nil
}
