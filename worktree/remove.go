package worktree

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/failpoint"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
)

const trashPrefix = ".trash-" // never the beginning of a SafeName

// A RemoveRequest describes how to remove a worktree.
type RemoveRequest struct {
	Note    string // reason, recorded in the rescue
	KeepBig bool   // store ignored files of any size
	// DropIgnored permits losing ignored files above the limit: the user has seen their
	// names in an *IgnoredError.
	DropIgnored bool
	// Landed is the branch tip that has landed; empty: none. If the branch still exists
	// and W contains nothing else, nothing is stored.
	Landed string
	// Later permits Remove to return before a large W that has landed is examined: see Examine. If
	// there is something to say about it, Later is called then, from another goroutine. nil: W is
	// examined before Remove returns.
	Later func(Examined)
}

// policy returns how ignored files are treated.
func (req RemoveRequest) policy() policy {
	switch {
	case req.KeepBig:
		return keepIgnored
	case req.DropIgnored:
		return dropIgnored
	}
	return capIgnored
}

// Remove stores content that exists nowhere else, then removes the worktree, its branch
// and coven's records. It returns the ref of the stored content, or "". If storing
// fails, nothing is removed.
//
// The files of a worktree that has landed go to the pool, if the repository has one. Ignored
// files that are too large to store stay there until the pool needs the space.
func (w *Worktree) Remove(ctx context.Context, req RemoveRequest) (rescueRef string, err error) {
	l, err := w.lock(ctx, "remove")
	if err != nil {
		return "", err
	}
	defer l.Release()
	m := &removal{w: w, req: req}
	if err := file.CheckNotMounted(w.Path); err != nil {
		return "", fmt.Errorf("remove %s: %w", w.TaskID, err)
	}
	if done, err := m.release(ctx); done || err != nil {
		w.repo.tidyLater()
		if err != nil {
			return "", fmt.Errorf("remove %s: %w", w.TaskID, err)
		}
		return "", nil
	}
	if rescueRef, err = m.store(ctx); err != nil {
		return "", fmt.Errorf("remove %s: %w", w.TaskID, err)
	}
	failpoint.Point("remove.stored")
	if err := m.unregister(ctx); err != nil {
		return rescueRef, fmt.Errorf("remove %s: %w", w.TaskID, err)
	}
	if m.releasedBefore() || m.parks {
		w.repo.tidyLater()
		return rescueRef, nil
	}
	if err := w.repo.emptyTrash(); err != nil {
		return rescueRef, fmt.Errorf("remove %s: %w", w.TaskID, err)
	}
	return rescueRef, nil
}

// A removal is one Remove that holds the task's lock.
type removal struct {
	w     *Worktree
	req   RemoveRequest
	tip   string // of the branch; empty: there is none
	tree  string // of W, if everything that is not ignored has landed
	rec   record
	bare  bool // there are no ignored files
	parks bool // W goes to the pool
	aside bool // with ignored files that exist nowhere else

	examines bool // W was renamed before: see Examine
}

// Leftover returns a handle on the possibly incomplete remains of a task's worktree,
// for Rescue and Remove only. The error is ErrNoWorktree if nothing is left.
func (r *Repo) Leftover(ctx context.Context, taskID string) (*Worktree, error) {
	name := SafeName(taskID)
	rec, err := r.readRecord(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("find the worktree of %s: %w", taskID, err)
	}
	recorded := err == nil
	if recorded && rec.Task != taskID {
		return nil, fmt.Errorf("%s belongs to task %s: %w", r.worktreePath(name), rec.Task, ErrNoWorktree)
	}
	w := r.worktree(taskID, rec)
	w.partial = true
	tip, err := w.tipIfAny(ctx)
	if err != nil {
		return nil, fmt.Errorf("find the worktree of %s: %w", taskID, err)
	}
	if !file.Exists(w.Path) && tip == "" && !recorded {
		return nil, fmt.Errorf("task %s: %w", taskID, ErrNoWorktree)
	}
	return w, nil
}

func (w *Worktree) tipIfAny(ctx context.Context) (string, error) {
	tip, err := w.Tip(ctx)
	if errors.Is(err, git.ErrNoRef) {
		return "", nil
	}
	return tip, err
}

// store rescues content that exists only in W.
func (m *removal) store(ctx context.Context) (ref string, err error) {
	if m.tip, err = m.w.tipIfAny(ctx); err != nil {
		return "", err
	}
	return m.storeBy(ctx, m.req.policy())
}

// storeBy is store if the tip is known.
func (m *removal) storeBy(ctx context.Context, p policy) (ref string, err error) {
	needed, err := m.unsaved(ctx, p)
	if _, big := errors.AsType[*IgnoredError](err); big && m.parks {
		only, onlyErr := m.onlyIgnored(ctx)
		if m.aside = only; only || onlyErr != nil {
			return "", onlyErr
		}
	}
	if err != nil || !needed {
		return "", err
	}
	info, err := m.w.rescue(ctx, m.req.Note, p)
	return info.Ref, err
}

// unsaved reports whether W, or its branch, has anything that exists nowhere else.
func (m *removal) unsaved(ctx context.Context, p policy) (bool, error) {
	only, err := m.onlyHere(ctx)
	if err == nil && !only && m.tree != "" && !m.bare {
		return m.w.hides(ctx, m.tree, p)
	}
	return only, err
}

// onlyHere reports whether W, or its branch, has anything besides ignored files that exists
// nowhere else.
func (m *removal) onlyHere(ctx context.Context) (bool, error) {
	w := m.w
	if m.examines {
		return m.besidesLanded(ctx, m.rec)
	}
	vacant, err := w.vacant()
	if err != nil {
		return false, err
	}
	present := !vacant
	rec, recErr := w.repo.readRecord(w.name)
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
		own, err := w.adminWork(ctx, m.tip)
		return !own.empty(), err
	}
	if recErr != nil || !rec.Ready {
		rec.Settings = "" // not for the pool
	}
	return m.besidesLanded(ctx, rec)
}

// besidesLanded reports whether W has anything besides ignored files that has not landed.
func (m *removal) besidesLanded(ctx context.Context, rec record) (bool, error) {
	commit, err := m.w.repo.git().Commit(ctx, m.tip)
	if err != nil {
		return false, err
	}
	tree := commit.Tree
	if m.bare = m.w.holdsOnly(ctx, tree); m.bare {
		own, err := m.w.gitWork(ctx, tree)
		if err != nil {
			return false, err
		}
		m.bare = own.empty()
	}
	if !m.bare {
		if tree, err = m.w.Tree(ctx); err != nil || tree != commit.Tree {
			return true, err
		}
	}
	m.tree, m.rec, m.parks = tree, rec, rec.Settings != "" && m.w.repo.Pool.Bytes > 0 && m.w.repo.git().ReadInProcess()
	return false, nil
}

// hides reports whether W, whose files are those of a tree, has anything else to store: ignored
// files, git directories, reserved files that differ, edits in submodules, work in its own git
// directory.
func (w *Worktree) hides(ctx context.Context, tree string, p policy) (bool, error) {
	ix, raw, err := w.stagedRaw(ctx, nil)
	if err != nil {
		return false, err
	}
	defer ix.drop()
	found, err := w.hidden(ctx, ix, p)
	if err != nil || len(found.plain) > 0 || len(found.renamed) > 0 {
		return true, err
	}
	differ, err := w.reservedDiffer(ctx, tree, raw)
	if err != nil || differ {
		return true, err
	}
	edited, err := w.submodulesEdited(ctx, tree, raw)
	if err != nil || edited {
		return true, err
	}
	own, err := w.gitWork(ctx, tree)
	return !own.empty(), err
}

// onlyIgnored reports whether ignored files, and git directories inside W, are all that exists
// nowhere else: the pool keeps these.
func (m *removal) onlyIgnored(ctx context.Context) (bool, error) {
	ix, raw, err := m.w.stagedRaw(ctx, nil)
	if err != nil {
		return false, err
	}
	defer ix.drop()
	differ, err := m.w.reservedDiffer(ctx, m.tree, raw)
	if err != nil || differ {
		return false, err
	}
	modules := hiddenFiles{renamed: map[string]string{}}
	if err := modules.addModules(m.w, filepath.Join(m.w.admin, modulesDir), ""); err != nil || len(modules.renamed) > 0 {
		return false, err
	}
	edited, err := m.w.submodulesEdited(ctx, m.tree, raw)
	if err != nil || edited {
		return false, err
	}
	own, err := m.w.gitWork(ctx, m.tree)
	return own.empty(), err
}

// unregister moves W away immediately and then forgets it. The branch is deleted second
// to last: while it exists, an interrupted removal is detected and can be repeated.
func (m *removal) unregister(ctx context.Context) error {
	l, err := m.w.repo.lock(ctx, worktreesLock, "remove "+m.w.TaskID)
	if err != nil {
		return err
	}
	defer l.Release()
	if m.parks {
		if err := m.park(ctx); err != nil && m.aside {
			return err // otherwise nothing is lost without the pool
		}
	}
	return m.w.forget(ctx, m.tip)
}

// forget requires the locks of the task and of the worktrees. Other refs can change with the
// task's.
func (w *Worktree) forget(ctx context.Context, tip string, others ...git.Edit) error {
	if err := w.repo.trash(w.Path, w.name); err != nil {
		return err
	}
	failpoint.Point("remove.trashed")
	if w.admin != "" && !w.repo.belongsToOther(filepath.Base(w.admin), w.Path) {
		if err := file.RemoveAll(w.admin); err != nil {
			return err
		}
	}
	failpoint.Point("remove.unregistered")
	edits := slices.Concat(others, w.unkeep())
	if tip != "" {
		edits = append(edits, git.Delete(headsPrefix+w.Branch, tip))
	}
	if err := w.repo.transact(ctx, w.repo.git(), "coven: remove", edits...); err != nil {
		return err
	}
	failpoint.Point("remove.branch")
	return file.RemoveAll(w.ours())
}

// clearUnready removes the leftovers of a killed Add or Remove. The caller holds the
// task's lock, so neither is running.
func (r *Repo) clearUnready(ctx context.Context, taskID string) error {
	rec, err := r.readRecord(SafeName(taskID))
	if err != nil || rec.Task != taskID {
		return nil //nolint:nilerr // leftover reports anything else
	}
	w := r.worktree(taskID, rec)
	tip, err := w.tipIfAny(ctx)
	if err != nil {
		return err
	}
	unused := !rec.Ready && !rec.Again && (tip == "" || tip == rec.Base)
	ended := rec.Ready && tip == "" && !file.Exists(w.Path)
	if !unused && !ended {
		return nil
	}
	if w.admin == "" {
		w.admin = r.adminOf(w.Path)
	}
	return w.forget(ctx, tip)
}

// adminOf finds the git directory of a worktree that no agent has used yet.
func (r *Repo) adminOf(path string) string {
	admins, err := r.admins()
	if err != nil {
		return ""
	}
	for _, admin := range admins {
		if r.adminPath(admin) == path {
			return filepath.Join(r.GitDir, "worktrees", admin)
		}
	}
	return ""
}

// trash renames a directory, because deleting it can take long.
func (r *Repo) trash(path, name string) error {
	if !file.Exists(path) {
		return nil
	}
	if err := file.CheckNotMounted(path); err != nil {
		return err
	}
	return os.Rename(path, r.trashName(name))
}

func (r *Repo) trashName(name string) string {
	return filepath.Join(r.Root, worktreesDir, trashPrefix+name+"-"+rand.Text())
}

// emptyTrash deletes trashed directories, including those of other processes.
func (r *Repo) emptyTrash() error {
	dir := filepath.Join(r.Root, worktreesDir)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), trashPrefix) {
			err = errors.Join(err, file.RemoveAll(filepath.Join(dir, entry.Name())))
		}
	}
	return err
}
