package project

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/session/backup"
	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/claim"
	"github.com/coven-run/coven/worktree/snapshot"
)

// restoreCommand restores the records of sessions.
const restoreCommand = "coven doctor --fix"

// errNoCopy means that a session that is gone has no copy.
var errNoCopy = errors.New("it has no copy")

// A LostSession is a session whose record was removed, although its task has a branch, a claim or snapshots.
type LostSession struct {
	ID    string
	Task  string // empty if unknown
	Title string
	Time  time.Time // of the copy's last event
	// Err is the reason why the record cannot be restored, or nil. It names a damaged copy.
	Err error
}

// View returns a view of the session for lists.
func (l LostSession) View() session.View {
	detail := "its record " + session.Dir + "/" + l.ID + " was removed"
	if l.Err != nil {
		detail += ": " + l.Err.Error()
	}
	return session.View{
		ID: l.ID, Task: l.Task, Info: event.Session{Query: l.Title},
		State:  session.State{Status: session.Gone, Detail: detail, Next: restoreCommand},
		Timing: session.Timing{Started: l.Time, Updated: l.Time},
	}
}

// Backups returns the copies of the records of sessions.
func (p *Project) Backups() backup.Store {
	return backup.Store{Dir: p.Repo.StatePath("records"), Repository: p.Repo.ID, Root: p.Repo.Root}
}

// Lost finds the sessions whose record was removed.
func (p *Project) Lost(ctx context.Context) ([]LostSession, error) {
	claims, err := claim.List(ctx, p.Repo)
	if err != nil {
		return nil, fmt.Errorf("find lost sessions: %w", err)
	}
	copies, err := p.withoutRecord()
	if err != nil {
		return nil, err
	}
	var lost []LostSession
	for _, held := range claims {
		if held.Session != "" && !session.Exists(p.Repo.Root, held.Session) && !slices.Contains(copies, held.Session) && p.AtLarge(held) == "" {
			lost = append(lost, LostSession{ID: held.Session, Task: held.Task, Time: p.Env.Now(), Err: errNoCopy})
		}
	}
	if len(copies) == 0 {
		return lost, nil
	}
	needed, err := p.traces(ctx, claims)
	if err != nil {
		return nil, err
	}
	for _, id := range copies {
		if one := p.lostSession(id); needed(one) && !errors.Is(one.Err, fs.ErrPermission) { // of another user
			lost = append(lost, one)
		}
	}
	return lost, nil
}

// withoutRecord returns the sessions that have a copy but no record.
func (p *Project) withoutRecord() ([]string, error) {
	copies, err := p.Backups().IDs()
	if err != nil {
		return nil, err
	}
	known, err := session.IDs(p.Repo.Root)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(copies, func(id string) bool {
		if _, exists := slices.BinarySearch(known, id); exists || session.Exists(p.Repo.Root, id) { // also of another user
			return true
		}
		_, err := os.Lstat(filepath.Join(p.Repo.Root, session.DamagedDir, id)) // it was set aside
		return err == nil
	}), nil
}

func (p *Project) lostSession(id string) LostSession {
	store := p.Backups()
	h, err := store.Header(id)
	one := LostSession{ID: id, Task: h.Task, Title: h.Title, Time: h.Time, Err: err}
	if repository, idErr := p.Repo.ID(); err == nil && (idErr != nil || h.Repository != repository || p.Repo.IsCopyOf(h.Root)) {
		one.Err = &backup.DamagedError{Path: store.Path(id), Err: errors.New("it belongs to another repository, at " + h.Root)}
	}
	if info, err := os.Stat(store.Path(id)); err == nil && one.Time.IsZero() {
		one.Time = info.ModTime()
	}
	return one
}

// traces returns a function that reports whether a session's task still has a branch, a claim or snapshots of the
// session.
func (p *Project) traces(ctx context.Context, claims []claim.Held) (func(LostSession) bool, error) {
	trees, err := worktree.List(ctx, p.Repo)
	if err != nil {
		return nil, fmt.Errorf("find lost sessions: %w", err)
	}
	refs, err := snapshot.Refs(ctx, p.Repo)
	if err != nil {
		return nil, fmt.Errorf("find lost sessions: %w", err)
	}
	return func(l LostSession) bool {
		_, err := p.Finder.OfTask(l.Task)
		unowned := errors.Is(err, session.ErrNone)
		return slices.ContainsFunc(claims, func(held claim.Held) bool { return held.Session == l.ID }) ||
			slices.ContainsFunc(refs, func(ref snapshot.Ref) bool { return ref.Name == worktree.SafeName(l.ID) }) ||
			l.Task != "" && unowned && slices.ContainsFunc(trees, func(t worktree.Info) bool { return t.TaskID == l.Task })
	}, nil
}

// Restore creates the record of a lost session again from its copy.
func (p *Project) Restore(l LostSession) error {
	if l.Err != nil {
		return l.Err
	}
	if err := worktree.EnsureCovenDir(p.Repo.Root); err != nil {
		return err
	}
	return session.Restore(p.Backups(), p.Repo.Root, l.ID, p.Env.Now)
}

// DropCopies removes the copies of sessions that have no record, and whose tasks have left no traces.
func (p *Project) DropCopies(ctx context.Context) error {
	gone, err := p.withoutRecord()
	if err != nil || len(gone) == 0 {
		return err
	}
	lost, err := p.Lost(ctx)
	if err != nil {
		return err
	}
	for _, id := range gone {
		if slices.ContainsFunc(lost, func(l LostSession) bool { return l.ID == id }) {
			continue
		}
		if err := p.Backups().Remove(id); err != nil {
			return err
		}
	}
	return nil
}

// A LostError means that the record of a task's session was removed.
type LostError struct{ Session, Task string }

func (e *LostError) Error() string {
	return fmt.Sprintf("the record of session %s of task %s was removed; there is a copy", e.Session, e.Task)
}

// CommandExit returns exit.Person.
func (e *LostError) CommandExit() int { return exit.Person }

// NextCommand returns the command that restores the record.
func (e *LostError) NextCommand() string { return restoreCommand }

// CheckLost returns a *LostError if the task has no session, but the copy of one that can be restored.
func (p *Project) CheckLost(ctx context.Context, task string) error {
	copies, err := p.withoutRecord()
	if err != nil || len(copies) == 0 {
		return err
	}
	lost, err := p.Lost(ctx)
	if err != nil {
		return err
	}
	for _, l := range lost {
		if l.Task == task && l.Err == nil {
			if _, err := p.Finder.OfTask(task); errors.Is(err, session.ErrNone) || errors.Is(err, fs.ErrNotExist) {
				return &LostError{Session: l.ID, Task: task}
			}
		}
	}
	return nil
}
