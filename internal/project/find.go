package project

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/internal/text/shellword"
)

// Find returns the newest session of the task that a person names; see Resolve.
func (p *Project) Find(ctx context.Context, name string) (session.View, error) {
	v, err := p.Finder.OfTask(name)
	if !errors.Is(err, session.ErrNone) {
		return v, err
	}
	if err := p.CheckLost(ctx, name); err != nil {
		return session.View{}, err
	}
	id, err := p.Resolve(ctx, name, Recorded)
	if err != nil {
		return session.View{}, err
	}
	return p.Finder.OfTask(id)
}

// NoSessionError reports a task that was never run.
type NoSessionError struct {
	Task string
	Near string // a question about a similar ID, such as: did you mean "x"? May be empty
}

// Error implements error.
func (e *NoSessionError) Error() string {
	return fmt.Sprintf("task %s has no session%s", e.Task, e.Hint())
}

// Hint returns Near in parentheses, or "".
func (e *NoSessionError) Hint() string {
	if e.Near == "" {
		return ""
	}
	return " (" + e.Near + ")"
}

// NextCommand returns the command that lists the sessions.
func (e *NoSessionError) NextCommand() string { return "coven status" }

// SessionOf returns the session that a person names by its ID, by the ID of its task, or
// by a prefix of either.
func (p *Project) SessionOf(ctx context.Context, name string) (session.View, error) {
	if isName(name) && session.Exists(p.Repo.Root, name) && !session.NeverStarted(p.Repo.Root, name) {
		return session.Load(filepath.Join(p.Repo.Root, session.Dir, name))
	}
	v, err := p.Find(ctx, name)
	if !errors.As(err, new(*NoSessionError)) {
		return v, err
	}
	ids, listErr := session.IDs(p.Repo.Root)
	if listErr != nil {
		return v, listErr
	}
	id, matchErr := match(name, ids)
	if errors.As(matchErr, new(*NoSessionError)) || matchErr == nil && session.NeverStarted(p.Repo.Root, id) {
		return v, err
	}
	if matchErr != nil {
		return v, matchErr
	}
	return session.Load(filepath.Join(p.Repo.Root, session.Dir, id))
}

// isName reports whether a word can be a directory name.
func isName(word string) bool {
	return word != "" && word != "." && word != ".." && filepath.Base(word) == word
}

// Named returns the tasks that a person names; see Resolve. They are in the tracker, or
// are ad-hoc prompts with a session.
func (p *Project) Named(ctx context.Context, names []string) ([]Item, error) {
	var items []Item
	for _, name := range names {
		item, err := p.itemOf(ctx, name)
		if errors.Is(err, task.ErrNotFound) || err != nil && p.NoTasks != nil {
			var id string
			if id, err = p.Resolve(ctx, name, Known); err == nil {
				item, err = p.itemOf(ctx, id)
			}
		}
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

// itemOf returns the task with an ID.
func (p *Project) itemOf(ctx context.Context, id string) (Item, error) {
	item, err := p.adHocItem(id)
	if errors.Is(err, session.ErrNone) {
		return p.Tracked(ctx, id)
	}
	return item, err
}

// NamedTask calls do with the ID of the tracker's task that a person names; see
// Resolve. It first calls do with the name itself, so that an ID costs no further query, and
// calls it again only if do returned task.ErrNotFound.
func (p *Project) NamedTask(ctx context.Context, name string, do func(id string) error) error {
	err := do(name)
	if !errors.Is(err, task.ErrNotFound) {
		return err
	}
	id, err := p.Resolve(ctx, name, InTracker)
	if err != nil {
		return err
	}
	return do(id)
}

// Worktree returns the directory of the worktree of a task that a person names.
func (p *Project) Worktree(ctx context.Context, name string) (string, error) {
	id, err := p.Resolve(ctx, name, WithWorktree)
	if err != nil {
		return "", err
	}
	tree, err := p.Repo.Find(ctx, id)
	if err != nil {
		return "", err
	}
	return tree.Path, nil
}

// ResolveAll returns the IDs of the tracker's tasks that a person names.
func (p *Project) ResolveAll(ctx context.Context, names []string) ([]string, error) {
	var ids []string
	for _, name := range names {
		id, err := p.Resolve(ctx, name, InTracker)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// Tracked returns the tracker's task with an ID.
func (p *Project) Tracked(ctx context.Context, id string) (Item, error) {
	tracker, err := p.Tasks()
	if err != nil {
		return Item{}, err
	}
	t, err := tracker.Get(ctx, id)
	if err == nil {
		err = t.Usable()
	}
	return Item{Task: t, Tracker: tracker}, err
}

// adHocItem returns the task of an ad-hoc prompt from its session. It returns
// session.ErrNone if the ID does not belong to an ad-hoc prompt.
func (p *Project) adHocItem(id string) (Item, error) {
	v, err := p.Finder.OfTask(id)
	if err != nil {
		return Item{}, err
	}
	if v.Info.Tracker != NoTracker {
		return Item{}, session.ErrNone
	}
	planned, err := TaskOf(v.Dir)
	if err != nil {
		return Item{}, err
	}
	t := task.Task{
		ID: id, Title: planned.Title, Description: planned.Description,
		Labels: []string{GrimoireLabel + v.Info.Grimoire}, // keeps the grimoire of the first session
	}
	return Item{Task: t}, nil
}

// PlanOf returns the frozen plan of a session.
func PlanOf(dir string) (*grimoires.Plan, error) {
	frozen, err := session.Plan(dir)
	if err != nil {
		return nil, err
	}
	plan, err := grimoires.ReadPlan(frozen)
	return plan, planError(dir, err)
}

// TaskOf returns the task of a session, for any version of its plan.
func TaskOf(dir string) (grimoires.Task, error) {
	frozen, err := session.Plan(dir)
	if err != nil {
		return grimoires.Task{}, err
	}
	t, err := grimoires.ReadTask(frozen)
	return t, planError(dir, err)
}

// planError adds the next command to an error about reading a session's plan.
func planError(dir string, err error) error {
	if wrong := (*grimoires.VersionError)(nil); errors.As(err, &wrong) {
		next := "coven version"
		if v, loadErr := session.Load(dir); !wrong.Newer() && loadErr == nil {
			next = "coven run " + shellword.Word(v.Task)
			if v.Live() || v.Failing != "" { // the session holds the task's claim and worktree
				next = "coven cancel " + shellword.Word(v.Task)
			}
		}
		return exit.Usagef(next, "session %s: %w", filepath.Base(dir), err)
	}
	if wrong := config.Errors(nil); errors.As(err, &wrong) {
		next := shellword.Edit(filepath.Join(dir, wrong[0].File), wrong[0].Line)
		return exit.Usagef(next, "session %s: the plan was changed: %w", filepath.Base(dir), err)
	}
	return err
}

// Newest returns the newest session of each task. all must be sorted, newest first.
func Newest(all []session.Summary) []session.Summary {
	var kept []session.Summary
	seen := map[string]bool{}
	for _, s := range all {
		if !seen[s.Task] {
			seen[s.Task], kept = true, append(kept, s)
		}
	}
	return kept
}
