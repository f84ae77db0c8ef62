package storage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/claim"
	"github.com/coven-run/coven/worktree/pool"
	"github.com/coven-run/coven/worktree/rescue"
	"github.com/coven-run/coven/worktree/snapshot"
)

// maxCollect limits the duration of a collection. The next one continues the work.
const maxCollect = 5 * time.Minute

// Reasons why the snapshots of a session expire.
const (
	Landed  = "landed"  // all of its work has landed
	Removed = "removed" // a person deleted the session
)

// Expired identifies the snapshots of a session that are old enough to be deleted.
type Expired struct {
	Session string    `json:"session"`
	Reason  string    `json:"reason"` // Landed or Removed
	Since   time.Time `json:"since"`  // when the session landed or was removed

	ref snapshot.Ref
}

// Collection is the result of a collection of garbage, or of its dry run.
type Collection struct {
	DryRun    bool      `json:"dry_run"`
	Expired   []Expired `json:"expired"`
	Snapshots int       `json:"snapshots"`     // sessions with snapshots, before
	Loose     int       `json:"loose_objects"` // unpacked objects, before
	LooseNow  int       `json:"loose_objects_now"`
}

// Collect deletes the snapshots of sessions that landed or were removed longer ago than the setting
// gc.keep, and packs objects and refs. It returns an error while a task runs. Snapshots of sessions that
// did not land stay, and so does each rescue.
func Collect(ctx context.Context, p *project.Project, dryRun bool) (Collection, error) {
	c, err := collection(ctx, p, dryRun)
	if err != nil || dryRun {
		return c, err
	}
	_ = pool.Tidy(ctx, p.Repo) // coven doctor reports leftovers
	return c, p.DropCopies(ctx)
}

func collection(ctx context.Context, p *project.Project, dryRun bool) (Collection, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, maxCollect, exit.Failedf("coven gc", "coven gc stopped after %v", maxCollect))
	defer cancel()
	sessions, err := p.Finder.Summaries()
	if _, err = session.DamagedIn(err); err != nil {
		return Collection{}, err
	}
	if !dryRun {
		if err := idle(sessions); err != nil {
			return Collection{}, err
		}
	}
	refs, err := snapshot.Refs(ctx, p.Repo)
	if err != nil {
		return Collection{}, err
	}
	c := Collection{DryRun: dryRun, Snapshots: len(refs), Loose: snapshot.LooseObjects(p.Repo)}
	if c.Expired, err = expired(ctx, p, sessions, refs); err != nil {
		return Collection{}, err
	}
	if !dryRun {
		c.Expired, err = collect(ctx, p, c.Expired)
	}
	c.LooseNow = snapshot.LooseObjects(p.Repo)
	return c, err
}

// errRunning reports that garbage is not collected while a task runs.
var errRunning = errors.New("coven gc works when no task does")

// idle returns an error if a task is running.
func idle(sessions []session.Summary) error {
	for _, s := range sessions {
		if s.Status == session.Running && session.Busy(s.Dir()) {
			return exit.Personf("coven status", "task %s is running: %w", s.Task, errRunning)
		}
	}
	return nil
}

// collect deletes snapshots and returns the deleted ones.
func collect(ctx context.Context, p *project.Project, all []Expired) ([]Expired, error) {
	var refs []snapshot.Ref
	for _, e := range all {
		refs = append(refs, e.ref)
	}
	gone, err := snapshot.GC(ctx, p.Repo, refs)
	deleted := map[string]bool{}
	for _, ref := range gone {
		deleted[ref.Ref] = true
	}
	kept := []Expired{}
	for _, e := range all {
		if deleted[e.ref.Ref] {
			kept = append(kept, e)
		}
	}
	if err == nil {
		err = rescue.DropUnused(ctx, p.Repo)
	}
	if errors.Is(err, snapshot.ErrCollecting) {
		err = exit.Personf("coven gc", "%w", err)
	}
	return kept, err
}

// expired returns the snapshots that may be deleted.
func expired(ctx context.Context, p *project.Project, sessions []session.Summary, refs []snapshot.Ref) ([]Expired, error) {
	needed, err := neededBy(ctx, p)
	if err != nil {
		return nil, err
	}
	byName := map[string]session.Summary{}
	for _, s := range sessions {
		byName[worktree.SafeName(s.ID)] = s
	}
	ids, err := session.IDs(p.Repo.Root)
	if err != nil {
		return nil, err
	}
	for _, id := range append(ids, session.Foreign(p.Repo.Root)...) { // including damaged sessions
		needed.sessions[worktree.SafeName(id)] = true
	}
	found, before := []Expired{}, p.Env.Now().Add(-p.Config.GC.Keep)
	for _, ref := range refs {
		e := Expired{Session: ref.Name, ref: ref}
		s, known := byName[ref.Name]
		switch {
		case known && s.Status == session.Completed && !needed.tasks[worktree.SafeName(s.Task)]:
			e.Session, e.Reason, e.Since = s.ID, Landed, s.Ended
		case !needed.sessions[ref.Name] && !setAside(p, ref.Name):
			e.Reason, e.Since = Removed, ref.Time
		default:
			continue
		}
		if e.Since.Before(before) {
			found = append(found, e)
		}
	}
	return found, nil
}

// needs holds the names of the tasks and sessions that still need snapshots.
type needs struct{ tasks, sessions map[string]bool }

// neededBy returns the tasks that have a worktree or a branch, and the sessions that have a
// claim.
func neededBy(ctx context.Context, p *project.Project) (needs, error) {
	n := needs{tasks: map[string]bool{}, sessions: map[string]bool{}}
	infos, err := worktree.List(ctx, p.Repo)
	if err != nil {
		return n, err
	}
	for _, info := range infos {
		n.tasks[info.Name] = true
	}
	claims, err := claim.List(ctx, p.Repo)
	if err != nil {
		return n, fmt.Errorf("find what needs snapshots: %w", err)
	}
	for _, held := range claims {
		n.sessions[worktree.SafeName(held.Session)] = true
	}
	return n, nil
}

// setAside reports whether a damaged session of this name was moved aside.
func setAside(p *project.Project, name string) bool {
	_, err := os.Lstat(filepath.Join(p.Repo.Root, session.DamagedDir, name))
	return err == nil
}
