package project

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/internal/text/didyoumean"
	"github.com/coven-run/coven/worktree"
)

// Scope is the set of tasks that a name can refer to.
type Scope int

// Scopes.
const (
	Recorded     Scope = iota // tasks with a session
	WithWorktree              // tasks with a session or a worktree
	InTracker                 // tasks of the tracker
	Known                     // tasks with a session or of the tracker
)

// Resolve returns the ID of the task that a person names by its ID or by a unique
// prefix of it within the scope. The name of an existing task never refers to
// another one, even if the task is outside of the scope: bd-1 does not mean bd-12. All operations
// that take a task resolve its name here.
//
// The error is an *AmbiguousError, or, if no task matches, a *NoSessionError, or task.ErrNotFound if the
// scope includes the tracker.
func (p *Project) Resolve(ctx context.Context, name string, scope Scope) (string, error) {
	if name == "" {
		return "", exit.Usagef("coven status", "the id of the task is empty")
	}
	known, err := p.localIDs(ctx, scope)
	if err != nil || slices.Contains(known, name) {
		return name, err
	}
	if scope == Recorded || scope == WithWorktree {
		return p.resolveLocal(ctx, name, known)
	}
	tracked, err := p.trackerIDs(ctx)
	known = append(known, tracked...)
	switch {
	case slices.Contains(tracked, name):
		return name, nil
	case err != nil && (ctx.Err() != nil || len(beginning(known, name)) == 0):
		return "", err
	}
	id, err := match(name, known)
	if none := (*NoSessionError)(nil); errors.As(err, &none) {
		return "", fmt.Errorf("task %s: %w in %s%s", name, task.ErrNotFound, p.Tracker.Where(), none.Hint())
	}
	return id, err
}

// resolveLocal is Resolve for tasks that need not be in the tracker. It asks the tracker
// only if the name could be the ID of one of its tasks. A tracker that cannot be read is ignored.
func (p *Project) resolveLocal(ctx context.Context, name string, known []string) (string, error) {
	if len(beginning(known, name)) > 0 {
		tracked, err := p.trackerIDs(ctx)
		if ctx.Err() != nil {
			return "", err
		}
		if slices.Contains(tracked, name) {
			return "", &NoSessionError{Task: name}
		}
	}
	return match(name, known)
}

// localIDs returns the IDs of the tasks in the scope that coven has records of.
func (p *Project) localIDs(ctx context.Context, scope Scope) ([]string, error) {
	if scope == InTracker {
		return nil, nil
	}
	ids, err := p.Finder.Tasks()
	if err != nil || scope != WithWorktree {
		return ids, err
	}
	trees, err := p.Worktrees(ctx)
	for _, t := range trees {
		if t.TaskID != "" {
			ids = append(ids, t.TaskID)
		}
	}
	return ids, err
}

// trackerIDs returns the IDs of the tracker's tasks, including closed ones.
func (p *Project) trackerIDs(ctx context.Context) ([]string, error) {
	tracker, err := p.Tasks()
	if err != nil {
		return nil, err
	}
	all, err := tracker.List(ctx)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(all))
	for i, t := range all {
		ids[i] = t.ID
	}
	return ids, nil
}

// ShortIDs returns the short forms of the IDs of all known tasks; see the function
// ShortIDs. A tracker that cannot be read is ignored.
func (p *Project) ShortIDs(ctx context.Context) (map[string]string, error) {
	recorded, err := p.localIDs(ctx, Recorded)
	if err != nil {
		return nil, err
	}
	tracked, err := p.trackerIDs(ctx)
	if ctx.Err() != nil {
		return nil, err
	}
	return ShortIDs(append(recorded, tracked...)), nil
}

// match returns the only ID that begins with name.
func match(name string, ids []string) (string, error) {
	found := beginning(ids, name)
	switch len(found) {
	case 0:
		return "", &NoSessionError{Task: name, Near: didyoumean.Hint(name, ids)}
	case 1:
		return found[0], nil
	}
	return "", &AmbiguousError{Name: name, IDs: found}
}

// beginning returns the distinct IDs that begin with name, sorted.
func beginning(ids []string, name string) []string {
	var found []string
	for _, id := range ids {
		if strings.HasPrefix(id, name) {
			found = append(found, id)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// AmbiguousError reports that a name is a prefix of several IDs and equal to none.
type AmbiguousError struct {
	Name string
	IDs  []string // sorted
}

// maxNamed limits the IDs in the text of an AmbiguousError.
const maxNamed = 10

// Error implements error.
func (e *AmbiguousError) Error() string {
	names := strings.Join(e.IDs[:min(maxNamed, len(e.IDs))], ", ")
	if more := len(e.IDs) - maxNamed; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("%q is the beginning of several ids: %s", e.Name, names)
}

// CommandExit returns exit.Usage.
func (e *AmbiguousError) CommandExit() int { return exit.Usage }

// NextCommand returns the command that lists the sessions.
func (e *AmbiguousError) NextCommand() string { return "coven status" }

// Worktrees lists the worktrees of tasks.
func (p *Project) Worktrees(ctx context.Context) ([]worktree.Info, error) {
	return worktree.List(ctx, p.Repo)
}
