// Package prune removes the worktrees of tasks that have landed, and the remains of worktrees that are
// gone.
//
// Rules. It keeps everything that belongs to a session that can continue or to a claim, and all work that
// has not landed. If a session cannot be read, nothing is removed, because it may own anything.
package prune

import (
	"context"
	"errors"
	"fmt"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/claim"
	"github.com/coven-run/coven/worktree/rescue"
)

// Request configures a run of Run.
type Request struct {
	DryRun bool              // change nothing
	Warn   func(text string) // as in RemoveRequest
}

// The kinds of items.
const (
	Worktree     = "worktree"     // of a task that has landed
	Registration = "registration" // git's, of a directory that is gone
	Record       = "record"       // coven's, of a task without worktree and branch
)

// Item is an item that Run removed, or kept although its task has landed.
type Item struct {
	Kind string `json:"kind"`
	Task string `json:"task"`
	Path string `json:"path"`
	// Kept is the reason that the item was kept. It is empty if it was removed, or would be without DryRun.
	Kept   string `json:"kept,omitempty"`
	Next   string `json:"next,omitempty"`   // the command that removes what was kept
	Rescue string `json:"rescue,omitempty"` // ref of its stored contents
}

// Run removes the worktrees of tasks that have landed and that contain nothing else, and the registrations
// and records of worktrees that are gone. It keeps everything that belongs to a session that can continue,
// and all work that has not landed. Branches stay, except those of removed worktrees.
func Run(ctx context.Context, p *project.Project, r Request) ([]Item, error) {
	owned, err := ownedNames(ctx, p)
	if err != nil {
		return nil, err
	}
	trees, err := worktree.List(ctx, p.Repo)
	if err != nil {
		return nil, err
	}
	done := []Item{}
	for _, t := range trees {
		if t.TaskID == "" || owned[t.Name] || t.Foreign {
			continue
		}
		one, err := pruneWorktree(ctx, p, t, r)
		if err != nil {
			return done, err
		}
		if one.Kind != "" {
			done = append(done, one)
		}
	}
	stale, err := worktree.FindStale(ctx, p.Repo, func(id string) bool { return owned[worktree.SafeName(id)] })
	if err != nil {
		return done, err
	}
	for _, s := range stale {
		if s.Kind != worktree.StaleRegistration && s.Kind != worktree.StaleRecord {
			continue // coven doctor --fix
		}
		one := Item{Kind: s.Kind, Task: s.Task, Path: s.Path}
		if !r.DryRun {
			one.Rescue, err = worktree.Clear(ctx, p.Repo, s)
		}
		if errors.Is(err, worktree.ErrNotStale) {
			continue // another process has removed it
		}
		if err != nil {
			return done, err
		}
		done = append(done, one)
	}
	return done, nil
}

// ownedNames returns the names of the tasks whose worktrees must stay: those with a claim, and those with a
// session that can continue or be retried. It fails if a session cannot be read.
func ownedNames(ctx context.Context, p *project.Project) (owned map[string]bool, err error) {
	owned = map[string]bool{}
	views, err := session.List(p.Repo.Root)
	if err != nil {
		return nil, err
	}
	for _, v := range views {
		name := worktree.SafeName(v.Task)
		owned[name] = owned[name] || v.Live() || p.Retryable(ctx, v.Task)
	}
	claims, err := claim.List(ctx, p.Repo)
	for _, held := range claims {
		owned[worktree.SafeName(held.Task)] = true
	}
	return owned, err
}

// pruneWorktree removes a worktree or its remains if the last session of its task has landed and it
// contains nothing else. The result is zero if the task has not landed.
func pruneWorktree(ctx context.Context, p *project.Project, t worktree.Info, r Request) (Item, error) {
	v, err := p.Finder.OfTask(t.TaskID)
	if errors.Is(err, session.ErrNone) || err == nil && (v.Status != session.Completed || v.Landed.New == "") {
		return Item{}, nil
	}
	if err != nil {
		return Item{}, err
	}
	tree, err := worktree.Leftover(ctx, p.Repo, t.TaskID)
	if errors.Is(err, worktree.ErrNoWorktree) {
		return Item{}, nil
	}
	if err != nil {
		return Item{}, err
	}
	done := Item{Kind: Worktree, Task: t.TaskID, Path: t.Path}
	only, err := worktree.OnlyHere(ctx, tree, v.Landed.Tip)
	if big := (*rescue.IgnoredError)(nil); errors.As(err, &big) {
		done.Kept, done.Next = big.Error(), "coven worktree remove --drop-ignored "+shellword.Word(t.TaskID)
		return done, nil
	}
	switch {
	case err != nil:
		return done, err
	case only:
		done.Kept, done.Next = "it contains files or commits that have not landed", "coven worktree remove "+shellword.Word(t.TaskID)
		return done, nil
	case r.DryRun:
		return done, nil
	}
	if err := control.TearDownOver(ctx, p, v, r.Warn); err != nil {
		return done, err
	}
	done.Rescue, err = worktree.Remove(ctx, tree, worktree.RemoveRequest{Note: "coven worktree prune", Landed: v.Landed.Tip})
	if err != nil {
		return done, fmt.Errorf("task %s: %w", t.TaskID, err)
	}
	control.ForgetCaches(p, tree.Name)
	return done, nil
}
