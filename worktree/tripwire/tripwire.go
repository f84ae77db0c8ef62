// Package tripwire finds changes that the programs of a task made outside their worktree: to refs,
// configuration, hooks, and the files of checkouts. It stores the changes and undoes them.
package tripwire

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/protected"
	"github.com/coven-run/coven/worktree/internal/ref"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/isolation"
)

// A Change is the change of an item that no program of a task may change.
type Change = protected.Change

// A Severity is the consequence of a change for the step during which it happened.
type Severity = protected.Severity

// The severities, weakest first. See package protected.
const (
	Noted = protected.Noted
	Holds = protected.Holds
	Stops = protected.Stops
)

// WatchOptions describe the step that is about to run.
type WatchOptions struct {
	// Fenced means that the kernel prevents the programs of the step from writing anything in the
	// repository except their worktree. Otherwise, the files of the main checkout, its index, and the
	// worktrees of other tasks are compared as well.
	Fenced bool
	// Running returns the IDs of the tasks that coven processes are working on now. Their worktrees and
	// branches may change. It may be nil.
	Running func() []string
}

// A Found is the result of Compare.
type Found struct {
	Changes  []Change  `json:"changes"`
	Fenced   bool      `json:"fenced,omitempty"`
	Since    time.Time `json:"since"`               // start of the step
	Rescue   string    `json:"rescue,omitempty"`    // ref with both states, empty if all changes are only noted
	NotFiles string    `json:"not_files,omitempty"` // why files were not compared, if they should have been
	// Interrupted means that coven was killed during the step. A person may have worked since then.
	// Therefore no change stops the step, and a person decides.
	Interrupted bool `json:"interrupted,omitempty"`
}

// Severity returns the highest severity of the changes, or "" if there are none.
func (f Found) Severity() Severity { return f.capped(protected.Worst(f.Changes, f.Fenced)) }

// Of returns the changes with the given severity.
func (f Found) Of(s Severity) []Change {
	return slices.DeleteFunc(slices.Clone(f.Changes), func(c Change) bool { return f.capped(c.Severity(f.Fenced)) != s })
}

func (f Found) capped(s Severity) Severity {
	if f.Interrupted && s == Stops {
		return Holds
	}
	return s
}

// A Mark is the state of the repository when a step started.
type Mark struct {
	Worktree *repo.Worktree
	running  func() []string
	mark
	interrupted bool // see Found
}

// mark is watch.json, with which coven can find the changes after it was killed during a step. It is not
// written durably: after a power failure nothing is compared.
type mark struct {
	Since  time.Time         `json:"since"`
	Fenced bool              `json:"fenced"`
	Log    ref.Position      `json:"log"`
	Hooks  []string          `json:"hooks"` // directories
	State  protected.State   `json:"state"`
	Trees  map[string]string `json:"trees,omitempty"`  // tree of unconverted files by task name, or "" for the main checkout
	Active []string          `json:"active,omitempty"` // names of tasks that were running
	Found  *Found            `json:"found,omitempty"`  // result that has not been reported yet
}

func markPath(w *repo.Worktree) string { return w.StatePath("watch.json") }

// Watched reports whether there is a mark: a program of the task is running, or coven was killed while it
// was.
func Watched(w *repo.Worktree) bool { return file.Exists(markPath(w)) }

// Watch records the state of everything that no program of the task may change. Call Compare after the
// step, and Done when its result has been recorded.
//
// If coven was killed after an earlier Watch, the mark may be that of the earlier Watch with only its
// result: if Compare had found changes, or if there was no fence and something has changed since. Then
// record Unreported, call Done, and call Watch again. With a fence, later changes were made by a person.
func Watch(ctx context.Context, w *repo.Worktree, o WatchOptions) (*Mark, error) {
	m := &Mark{Worktree: w, running: o.Running}
	w.Repo.Memo.Fresh.Delete(w.StatePath(content.CommitIndex))
	if err := file.ReadJSON(markPath(w), &m.mark); err == nil { // otherwise there is no mark, or it is incomplete
		if m.Found == nil && !m.Fenced {
			m.interrupted = true
			if _, err := m.Compare(ctx); err != nil {
				return nil, err
			}
		}
		if m.Found != nil {
			return m, nil
		}
	}
	m.interrupted = false
	m.mark = mark{Since: time.Now().UTC(), Fenced: o.Fenced}
	if err := m.take(ctx); err != nil {
		return nil, fmt.Errorf("watch the repository of %s: %w", w.TaskID, err)
	}
	return m, nil
}

// take reads the state and writes watch.json.
func (m *Mark) take(ctx context.Context) error {
	var err error
	if m.Log, err = m.Worktree.Repo.RefLog().Position(); err != nil { // first, so that the log misses no change
		return err
	}
	if m.Hooks, err = isolation.HookDirs(ctx, m.Worktree.Repo); err != nil {
		return err
	}
	if m.State, err = isolation.ReadState(ctx, m.Worktree.Repo, m.Hooks); err != nil {
		return err
	}
	if !m.Fenced {
		m.Active = m.active()
		if err := m.takeFiles(ctx); err != nil {
			return err
		}
	}
	return m.save()
}

// save replaces watch.json.
func (m *Mark) save() error { return file.WriteJSONNoSync(markPath(m.Worktree), m.mark) }

// Unreported returns the result of an earlier Compare, if coven was killed after it.
func (m *Mark) Unreported() (Found, bool) {
	if m.Found == nil {
		return Found{}, false
	}
	return *m.Found, true
}

// Done removes the mark. Until then, Watch and Compare return the same result.
func (m *Mark) Done() error {
	if err := os.Remove(markPath(m.Worktree)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("end the watch of %s: %w", m.Worktree.TaskID, err)
	}
	return nil
}

// Compare returns the changes since Watch that coven did not make itself. No program of the task may still
// be running. If a change stops the step or holds the landing, both states of all changes are stored first.
// Compare does not revert the changes.
//
// git is not run unless something has changed, and never with a changed configuration.
func (m *Mark) Compare(ctx context.Context) (Found, error) {
	if found, ok := m.Unreported(); ok {
		return found, nil
	}
	found, err := m.compare(ctx)
	if err != nil {
		return Found{}, fmt.Errorf("compare the repository of %s: %w", m.Worktree.TaskID, err)
	}
	return found, nil
}

func (m *Mark) compare(ctx context.Context) (Found, error) {
	found := Found{Fenced: m.Fenced, Since: m.Since, Interrupted: m.interrupted}
	r := m.Worktree.Repo
	until, err := r.RefLog().End()
	if err != nil {
		return found, err
	}
	now, err := isolation.ReadState(ctx, r, m.Hooks)
	if err != nil {
		return found, err
	}
	own := &ownWork{m: m, until: until, head: strings.TrimPrefix(now.Refs["HEAD"], "ref: ")}
	if err := own.refresh(); err != nil {
		return found, err
	}
	found.Changes = own.without(ctx, m.withUndone(protected.Compare(m.State, now), now, own.log))
	if !m.Fenced {
		if err := m.compareFiles(ctx, &found, own); err != nil {
			if found.Severity() != Stops && !m.interrupted || ctx.Err() != nil {
				return found, err
			}
			found.NotFiles = err.Error() // git may no longer work
		}
	}
	if len(found.Changes) == 0 {
		return found, nil
	}
	if err := forward(ctx, r, found.Changes); err != nil {
		return found, err
	}
	if worst := found.Severity(); worst == Stops || worst == Holds {
		if found.Rescue, err = storeChangesOf(ctx, m.Worktree, found.Changes, noteOf(found)); err != nil {
			return found, err
		}
	}
	failpoint.Point("watch.stored")
	m.Found = &found
	return found, m.save()
}

// withUndone adds refs that coven moved but that have their previous value again: a landing was undone.
func (m *Mark) withUndone(changes []Change, now protected.State, log ref.Moves) []Change {
	for name := range log {
		last, moved := log.Last(name)
		is := now.Refs[name]
		if !moved || is != m.State.Refs[name] || log.Explains(name, is, is) {
			continue
		}
		changes = append(changes, Change{
			Kind: protected.Ref, Name: name, Before: protected.Value{Text: last}, After: protected.Value{Text: is},
		})
	}
	return changes
}

// forward sets Change.Forward.
func forward(ctx context.Context, r *repo.Repo, changes []Change) error {
	var g git.Repo
	for i, c := range changes {
		if c.Kind != protected.Ref || !object.IsID(c.Before.Text) || !object.IsID(c.After.Text) {
			continue
		}
		if g.Dir == "" {
			var err error
			if g, err = r.PlainGit(); err != nil {
				return err
			}
		}
		forward, err := g.IsAncestor(ctx, c.Before.Text, c.After.Text)
		changes[i].Forward = err == nil && forward // an object may be missing
	}
	return nil
}

// noteOf returns the note for the rescue.
func noteOf(f Found) string {
	const most = 5
	var what []string
	for _, c := range f.Changes {
		if f.capped(c.Severity(f.Fenced)) != Noted {
			what = append(what, c.String())
		}
	}
	if more := len(what) - most; more > 0 {
		what = append(what[:most], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(what, "; ")
}
