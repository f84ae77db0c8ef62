package tripwire

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/protected"
	"github.com/coven-run/coven/worktree/internal/ref"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/isolation"
)

// ownWork identifies changes by coven, or by the agent of another running task.
//
// The evidence for coven's own changes is its log of refs, which a fence prevents agents from writing. For
// the branch of another task that works without a fence, it is the reflog of HEAD in that task's worktree.
// An agent without a fence can forge both.
type ownWork struct {
	m      *Mark
	log    ref.Moves
	until  ref.Position
	head   string   // full name of the main checkout's branch
	active []string // names of running tasks, nil until runs is called
}

// refresh reads the log and the running tasks again. It must be called after reading more of the
// repository, because coven may have worked since.
func (o *ownWork) refresh() (err error) {
	o.active = nil
	o.log, err = o.m.Worktree.Repo.RefLog().Since(o.m.Log, o.until)
	return err
}

// without removes changes by coven or other running tasks.
func (o *ownWork) without(ctx context.Context, changes []Change) []Change {
	return slices.DeleteFunc(changes, func(c Change) bool { return o.explains(ctx, c) })
}

func (o *ownWork) explains(ctx context.Context, c Change) bool {
	switch {
	case c.Before.Text != c.After.Text && o.log.Explains(logName(c), c.Before.Text, c.After.Text):
		return true
	case c.Kind != protected.Ref:
		return c.In == protected.InCheckout && o.landed(ctx, c)
	}
	owners, err := o.m.Worktree.Repo.BranchOwners()
	if err != nil {
		return false
	}
	task, isBranch := owners.Task(c.Name)
	switch {
	case !isBranch:
		return false
	case task == o.m.Worktree.Name:
		return object.IsID(c.After.Text) // coven's next commit would move the target of a symbolic ref
	}
	// In a sandbox, it was a person who committed in the worktree of another task.
	return (o.m.Fenced || o.runs(task)) && committedIn(o.m.Worktree.Repo, task, c.After.Text)
}

// logName returns the name under which coven logs its own change.
func logName(c Change) string {
	if c.Kind == protected.Ref {
		return c.Name
	}
	return "file:" + string(c.In) + ":" + c.Name
}

// runs reports whether a coven process worked on another task at some time during the step.
func (o *ownWork) runs(name string) bool {
	if o.active == nil {
		o.active = append(o.m.active(), o.m.Active...)
	}
	return slices.Contains(o.active, name) || o.log.Mentions(name, names.HeadsPrefix+o.m.Worktree.Repo.BranchOf(name))
}

// active returns the names of the tasks that coven processes are working on now.
func (m *Mark) active() []string {
	known := []string{}
	if m.running == nil {
		return known
	}
	for _, task := range m.running() {
		known = append(known, names.SafeName(task))
	}
	return known
}

// landings returns the commits to which coven moved the main checkout or its branch.
func (o *ownWork) landings() []string {
	var commits []string
	for _, move := range slices.Concat(o.log[o.head], o.log[ref.MovedCheckout+o.head]) {
		if move.New != "" && !slices.Contains(commits, move.New) {
			commits = append(commits, move.New)
		}
	}
	return commits
}

// landed reports whether a file in the main checkout has content that a landing gave it.
func (o *ownWork) landed(ctx context.Context, c Change) bool {
	g, err := o.m.Worktree.Repo.PlainGit()
	if err != nil {
		return false
	}
	for _, commit := range o.landings() {
		content, err := g.File(ctx, commit, c.Name)
		if err != nil && !c.After.Exists() {
			return g.Run(ctx, "cat-file", "-e", commit) == nil
		}
		if err == nil && c.After.Exists() && bytes.Equal(content, c.After.Content) {
			return true
		}
	}
	return false
}

// committedIn reports whether a commit was created or checked out in the worktree of a task. git logs that
// in the reflog of the worktree's HEAD. Running update-ref elsewhere does not.
func committedIn(r *repo.Repo, name, commit string) bool {
	rec, err := r.ReadRecord(name)
	if err != nil || rec.Admin == "" || commit == "" {
		return false
	}
	log, err := file.Read(filepath.Join(r.GitDir, "worktrees", rec.Admin, "logs", "HEAD"), isolation.MaxHeadLog)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(log)) {
		if words := strings.Fields(line); len(words) > 1 && words[1] == commit {
			return true
		}
	}
	return false
}

// landedEntries returns the entries that landings gave the files at these paths. An entry without an Oid
// means that a landing deleted the file.
func (o *ownWork) landedEntries(ctx context.Context, g git.Repo, paths []string) (map[string][]object.Entry, error) {
	found := map[string][]object.Entry{}
	for _, commit := range o.landings() {
		entries, err := g.Entries(ctx, commit, paths...)
		if err != nil {
			return nil, err
		}
		there := map[string]object.Entry{}
		for _, e := range entries {
			there[e.Path] = e
		}
		for _, p := range paths {
			found[p] = append(found[p], there[p])
		}
	}
	return found, nil
}
