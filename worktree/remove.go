package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/ref"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/internal/submodule"
	"github.com/coven-run/coven/worktree/land"
	"github.com/coven-run/coven/worktree/pool"
	"github.com/coven-run/coven/worktree/rescue"
	"github.com/coven-run/coven/worktree/supply"
)

// A LargeError means that the large files of a worktree are not stored.
type LargeError = content.LargeError

// A RemoveRequest describes how to remove a worktree.
type RemoveRequest struct {
	Note    string // reason, recorded in the rescue
	KeepBig bool   // store ignored files regardless of their size
	// DropIgnored permits losing ignored files above the limit, because the user has seen their names in an
	// *IgnoredError.
	DropIgnored bool
	// Landed is the branch tip that has landed. It is empty if none has. If the branch still exists and the
	// worktree contains nothing else, nothing is stored.
	Landed string
	// Tree has files that are as good as landed. Those of Landed always are.
	Tree string
}

// policy returns the policy for ignored files.
func (req RemoveRequest) policy() rescue.Policy {
	switch {
	case req.KeepBig:
		return rescue.KeepIgnored
	case req.DropIgnored:
		return rescue.DropIgnored
	}
	return rescue.CapIgnored
}

// Remove stores content that exists nowhere else, then removes the worktree, its branch and coven's
// records. It returns the ref of the stored content, or "". If storing fails, nothing is removed.
//
// The files of a landed worktree go to the pool, if the repository has one. Ignored files that are too
// large to store stay there until the pool needs the space.
func Remove(ctx context.Context, w *repo.Worktree, req RemoveRequest) (rescueRef string, err error) {
	l, err := w.Lock(ctx, "remove")
	if err != nil {
		return "", err
	}
	defer l.Release()
	if lost, err := HasLostBranch(ctx, w); err != nil {
		return "", err
	} else if lost {
		if _, err := restoreBranch(ctx, w); err != nil {
			return "", err
		}
	}
	m := &removal{w: w, req: req}
	if err := file.CheckNotMounted(w.Path); err != nil {
		return "", fmt.Errorf("remove %s: %w", w.TaskID, err)
	}
	if rescueRef, err = m.store(ctx); err != nil {
		return "", fmt.Errorf("remove %s: %w", w.TaskID, err)
	}
	failpoint.Point("remove.stored")
	if err := m.unregister(ctx); err != nil {
		return rescueRef, fmt.Errorf("remove %s: %w", w.TaskID, err)
	}
	if m.parks {
		pool.TidyLater(w.Repo)
		return rescueRef, nil
	}
	if err := pool.EmptyTrash(w.Repo); err != nil {
		return rescueRef, fmt.Errorf("remove %s: %w", w.TaskID, err)
	}
	return rescueRef, nil
}

// A removal is the state of one call of Remove, which holds the task's lock.
type removal struct {
	w     *repo.Worktree
	req   RemoveRequest
	tip   string // tip of the branch, empty if it does not exist
	tree  string // tree of the files, if everything except ignored files has landed
	rec   repo.Record
	bare  bool // there are no ignored files
	parks bool // the files go to the pool
	aside bool // parked with ignored files that exist nowhere else
}

// Leftover returns a handle on the possibly incomplete remains of a task's worktree. It may only be passed
// to Rescue and Remove. The error is ErrNoWorktree if nothing is left, and a *ForeignError if a file of the user is there.
func Leftover(ctx context.Context, r *repo.Repo, taskID string) (*repo.Worktree, error) {
	name := names.SafeName(taskID)
	rec, err := r.ReadRecord(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("find the worktree of %s: %w", taskID, err)
	}
	recorded := err == nil
	if recorded && rec.Task != taskID {
		return nil, fmt.Errorf("%s belongs to task %s: %w", r.WorktreePath(name), rec.Task, repo.ErrNoWorktree)
	}
	w := r.Worktree(taskID, rec)
	w.Partial = true
	tip, err := w.TipIfAny(ctx)
	if err != nil {
		return nil, fmt.Errorf("find the worktree of %s: %w", taskID, err)
	}
	if !file.Exists(w.Path) && tip == "" && !recorded {
		return nil, fmt.Errorf("task %s: %w", taskID, repo.ErrNoWorktree)
	}
	if !recorded && file.Exists(w.Path) && !r.InWorktreeDir(w.Path) {
		return nil, &ForeignError{Task: taskID, Path: w.Path}
	}
	return w, nil
}

// A ForeignError means that there is a file in the place of a task's worktree that coven has not created.
type ForeignError struct{ Task, Path string }

func (e *ForeignError) Error() string {
	return fmt.Sprintf("task %s cannot have a worktree: %s exists, and coven did not create it; move it, or change worktree.dir", e.Task, e.Path)
}

// CommandExit returns exit.Usage.
func (e *ForeignError) CommandExit() int { return exit.Usage }

// NextCommand returns the command that explains worktree.dir.
func (e *ForeignError) NextCommand() string { return "coven help worktrees" }

// store rescues content that exists only in the worktree.
func (m *removal) store(ctx context.Context) (ref string, err error) {
	if m.tip, err = m.w.TipIfAny(ctx); err != nil {
		return "", err
	}
	p := m.req.policy()
	needed, err := m.unsaved(ctx, p)
	if _, big := errors.AsType[*rescue.IgnoredError](err); big && m.parks {
		only, onlyErr := m.onlyIgnored(ctx)
		if m.aside = only; only || onlyErr != nil {
			return "", onlyErr
		}
	}
	if err != nil || !needed {
		return "", err
	}
	info, err := rescue.Store(ctx, m.w, m.req.Note, p)
	return info.Ref, err
}

// unsaved reports whether the worktree or its branch contains anything that exists nowhere else.
func (m *removal) unsaved(ctx context.Context, p rescue.Policy) (bool, error) {
	only, err := m.onlyHere(ctx)
	if err == nil && !only && m.tree != "" && !m.bare {
		return hidesPath(ctx, m.w, m.tree, p)
	}
	return only, err
}

// onlyHere is like unsaved, but ignores ignored files.
func (m *removal) onlyHere(ctx context.Context) (bool, error) {
	w := m.w
	vacant, err := w.IsVacant()
	if err != nil {
		return false, err
	}
	present := !vacant
	rec, recErr := w.Repo.ReadRecord(w.Name)
	unused := recErr == nil && !rec.Ready && !rec.Again // no agent has worked in it
	if m.tip == "" && present && !unused {
		return false, fmt.Errorf("%s has no branch %s to store it with", w.Path, w.Branch)
	}
	if m.tip == "" || unused && m.tip == rec.Base {
		return false, nil
	}
	if m.req.Landed != m.tip {
		return true, nil
	}
	if !present {
		own, err := rescue.AdminWork(ctx, w, m.tip)
		return !own.Empty(), err
	}
	if recErr != nil || !rec.Ready {
		rec.Settings = "" // not for the pool
	}
	return m.besidesLanded(ctx, rec)
}

// besidesLanded reports whether the worktree contains anything that has not landed, except ignored files.
func (m *removal) besidesLanded(ctx context.Context, rec repo.Record) (bool, error) {
	commit, err := m.w.Repo.Git().Commit(ctx, m.tip)
	if err != nil {
		return false, err
	}
	tree := commit.Tree
	m.bare = content.HoldsOnly(ctx, m.w, tree)
	if !m.bare && m.req.Tree != "" {
		tree = m.req.Tree
		m.bare = content.HoldsOnly(ctx, m.w, tree)
	}
	if m.bare {
		own, err := rescue.FindGitWork(ctx, m.w, tree)
		if err != nil {
			return false, err
		}
		m.bare = own.Empty()
	}
	if !m.bare {
		if tree, err = content.Tree(ctx, m.w); err != nil || tree != commit.Tree && tree != m.req.Tree {
			return true, err
		}
	}
	m.tree, m.rec, m.parks = tree, rec, rec.Settings != "" && m.w.Repo.Pool.Bytes > 0 && m.w.Repo.Git().ReadInProcess()
	return false, nil
}

// hidesPath reports whether the worktree contains anything to store in addition to the files of tree:
// ignored files, git directories, modified reserved files, edits in submodules, or work in its git
// directory.
func hidesPath(ctx context.Context, w *repo.Worktree, tree string, p rescue.Policy) (bool, error) {
	ix, raw, err := content.OpenStaged(ctx, w, nil)
	if err != nil {
		return false, err
	}
	defer ix.Drop()
	found, err := rescue.FindHidden(ctx, w, ix, p)
	if err != nil || len(found.Plain) > 0 || len(found.Renamed) > 0 {
		return true, err
	}
	differ, err := rescue.ReservedDiffer(ctx, w, tree, raw)
	if err != nil || differ {
		return true, err
	}
	edited, err := supply.SubmodulesEdited(ctx, w, tree, raw)
	if err != nil || edited {
		return true, err
	}
	own, err := rescue.FindGitWork(ctx, w, tree)
	return !own.Empty(), err
}

// onlyIgnored reports whether ignored files and nested git directories are the only content that exists
// nowhere else. The pool keeps them.
func (m *removal) onlyIgnored(ctx context.Context) (bool, error) {
	ix, raw, err := content.OpenStaged(ctx, m.w, nil)
	if err != nil {
		return false, err
	}
	defer ix.Drop()
	differ, err := rescue.ReservedDiffer(ctx, m.w, m.tree, raw)
	if err != nil || differ {
		return false, err
	}
	modules := rescue.HiddenFiles{Renamed: map[string]string{}}
	if err := modules.AddModules(m.w, filepath.Join(m.w.Admin, submodule.ModulesDir), ""); err != nil || len(modules.Renamed) > 0 {
		return false, err
	}
	edited, err := supply.SubmodulesEdited(ctx, m.w, m.tree, raw)
	if err != nil || edited {
		return false, err
	}
	own, err := rescue.FindGitWork(ctx, m.w, m.tree)
	return own.Empty(), err
}

// unregister first moves the worktree's directory away, then removes its records. The branch is deleted
// second to last: while it exists, an interrupted removal is detected and can be repeated.
func (m *removal) unregister(ctx context.Context) error {
	l, err := m.w.Repo.Lock(ctx, names.WorktreesLock, "remove "+m.w.TaskID)
	if err != nil {
		return err
	}
	defer l.Release()
	if m.parks {
		if err := m.park(ctx); err != nil && m.aside {
			return err // otherwise nothing is lost without the pool
		}
	}
	return forget(ctx, m.w, m.tip)
}

// forget moves the directory to the trash and deletes the registration, the branch, unless it is checked out elsewhere, and
// coven's records. The caller must hold the task lock and the worktrees lock.
func forget(ctx context.Context, w *repo.Worktree, tip string) error {
	if err := pool.Trash(w.Repo, w.Path, w.Name); err != nil {
		return err
	}
	failpoint.Point("remove.trashed")
	if w.Admin != "" && !belongsToOther(w.Repo, filepath.Base(w.Admin), w.Path) {
		if err := file.RemoveAll(w.Admin); err != nil {
			return err
		}
	}
	failpoint.Point("remove.unregistered")
	edits := w.Unkeep()
	held, err := land.CheckoutsOf(ctx, w.Repo, names.HeadsPrefix+w.Branch, nil)
	if err != nil {
		return err
	}
	if tip != "" && len(held) == 0 { // otherwise the HEAD of a checkout would be unborn
		edits = append(edits, ref.Delete(names.HeadsPrefix+w.Branch, tip))
	}
	if err := w.Repo.Transact(ctx, w.Repo.Git(), "coven: remove", edits...); err != nil {
		return err
	}
	failpoint.Point("remove.branch")
	return file.RemoveAll(w.StatePath())
}

// clearUnready removes the leftovers of a killed Add or Remove. The caller holds the task's lock, so
// neither is running.
func clearUnready(ctx context.Context, r *repo.Repo, taskID string) error {
	rec, err := r.ReadRecord(names.SafeName(taskID))
	if err != nil || rec.Task != taskID {
		return nil //nolint:nilerr // leftover reports anything else
	}
	w := r.Worktree(taskID, rec)
	tip, err := w.TipIfAny(ctx)
	if err != nil {
		return err
	}
	unused := !rec.Ready && !rec.Again && (tip == "" || tip == rec.Base)
	ended := rec.Ready && tip == "" && !file.Exists(w.Path)
	if !unused && !ended {
		return nil
	}
	if w.Admin == "" {
		w.Admin = adminOf(r, w.Path)
	}
	return forget(ctx, w, tip)
}

// adminOf returns the git directory registered for path, or "". No agent may have used the worktree yet.
func adminOf(r *repo.Repo, path string) string {
	admins, err := r.Admins()
	if err != nil {
		return ""
	}
	for _, admin := range admins {
		if r.AdminPath(admin) == path {
			return filepath.Join(r.GitDir, "worktrees", admin)
		}
	}
	return ""
}
