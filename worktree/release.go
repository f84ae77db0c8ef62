package worktree

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/failpoint"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
)

// To find what a landed W has besides what has landed, coven must look at every file. In a large
// repository nobody waits for that: Remove renames W and forgets the task, and W is examined later,
// before anything in it is changed or removed. Until then it is unexamined. On disk:
// .coven/worktrees/.unexamined/ID, the files; coven/unexamined/ID in the git directory, its
// record (record.json) and coven's indexes of it; and refs/coven/unexamined/ID, the commit that has
// landed.
//
// Examine stores what exists nowhere else, and then moves the files to the pool. If it fails, they stay.

const (
	unexaminedDir    = ".unexamined"
	unexaminedPrefix = "refs/coven/unexamined/"
	examineLock      = "examine"
	// examineLater is the size of W's index, in bytes, above which W is examined later: that of about
	// 3,000 files, which are examined in less time than a git process takes to start.
	examineLater = 256 << 10
)

// An Examined is what the examination of a landed worktree found.
type Examined struct {
	Task   string
	Rescue string // the ref of what had not landed; empty: there was nothing
	// Err is why the files stay where they are, such as an *IgnoredError. nil: they do not.
	Err error
}

// unexamined is the record of a W that Remove has renamed.
type unexamined struct {
	ID       string    `json:"-"`
	Task     string    `json:"task"`
	Note     string    `json:"note"`
	Tip      string    `json:"tip"` // has landed
	Base     string    `json:"base"`
	Settings string    `json:"settings"`
	Released time.Time `json:"released"`
	// Refused is why only a person can decide about the files: they are not examined again by themselves.
	Refused string `json:"refused,omitempty"`
}

func (r *Repo) unexaminedPath(elem ...string) string {
	return filepath.Join(append([]string{r.Root, worktreesDir, unexaminedDir}, elem...)...)
}

// worktreeOf returns a handle on the files, with which W is examined.
func (r *Repo) worktreeOf(u unexamined) *Worktree {
	w := r.worktree(u.Task, record{})
	w.Path, w.state, w.tip, w.partial = r.unexaminedPath(u.ID), r.ours("unexamined", u.ID), u.Tip, true
	w.admin = w.ours("admin") // it is gone
	return w
}

// allUnexamined lists the records, the oldest first. Of one that cannot be read, or is gone, the ID
// stands for the task.
func (r *Repo) allUnexamined() []unexamined {
	records, _ := os.ReadDir(r.ours("unexamined")) // without the directory, there are none
	files := directories(r.unexaminedPath())
	var all []unexamined
	seen := map[string]bool{}
	for _, dir := range slices.Concat(records, files) {
		id, u := dir.Name(), unexamined{}
		if seen[id] {
			continue
		}
		seen[id] = true
		raw, err := file.Read(r.ours("unexamined", id, "record.json"), maxGitFile)
		if err != nil || json.Unmarshal(raw, &u) != nil {
			u = unexamined{Task: id}
		}
		u.ID = id
		all = append(all, u)
	}
	slices.SortFunc(all, func(a, b unexamined) int { return cmp.Or(a.Released.Compare(b.Released), strings.Compare(a.ID, b.ID)) })
	return all
}

// release renames W to examine it later. It reports false if W is still where it was, and must be
// examined now.
func (m *removal) release(ctx context.Context) (done bool, err error) {
	u, ok := m.releasable(ctx)
	if !ok {
		return false, nil
	}
	w, r := m.w, m.w.repo
	l, err := r.lock(ctx, worktreesLock, "remove "+w.TaskID)
	if err != nil {
		return false, err
	}
	defer l.Release()
	if err := r.setAside(w, u); err != nil {
		_ = file.RemoveAll(r.ours("unexamined", u.ID)) // a record without files does no harm
		return false, ctx.Err()
	}
	r.memo.later.Store(u.ID, m.req.Later)
	return true, w.forget(ctx, m.tip, git.Set(unexaminedPrefix+u.ID, m.tip))
}

// releasedBefore reports whether a W of the task waits for its examination because the coven that renamed it
// was killed.
func (m *removal) releasedBefore() (found bool) {
	for _, u := range m.w.repo.allUnexamined() {
		if u.Task == m.w.TaskID && u.Refused == "" && m.req.Later != nil {
			m.w.repo.memo.later.Store(u.ID, m.req.Later)
			found = true
		}
	}
	return found
}

// releasable reports whether W can be examined later: it has landed, is large and goes to the pool, and
// all of its own git directory exists elsewhere.
func (m *removal) releasable(ctx context.Context) (unexamined, bool) {
	w, r := m.w, m.w.repo
	if m.req.Later == nil || !w.isLarge() || file.Exists(filepath.Join(w.admin, modulesDir)) {
		return unexamined{}, false
	}
	rec, err := r.readRecord(w.name)
	if err != nil || !rec.Ready || rec.Settings == "" || rec.Sparse != nil || w.here() != nil {
		return unexamined{}, false
	}
	if m.tip, err = w.tipIfAny(ctx); err != nil || m.tip == "" || m.tip != m.req.Landed {
		return unexamined{}, false
	}
	tree, err := r.git().Tree(ctx, m.tip)
	if err != nil {
		return unexamined{}, false
	}
	if own, err := w.gitWork(ctx, tree); err != nil || !own.empty() {
		return unexamined{}, false
	}
	return unexamined{
		ID: w.name + "-" + rand.Text()[:8], Task: w.TaskID, Note: m.req.Note, Tip: m.tip,
		Base: rec.Base, Settings: rec.Settings, Released: time.Now().UTC(),
	}, true
}

// isLarge reports whether W's files are so many that the pool gets them unexamined.
func (w *Worktree) isLarge() bool {
	info, err := os.Lstat(w.ours(commitIndex))
	return err == nil && info.Size() >= w.repo.examineLater && w.repo.Pool.Bytes > 0 && w.repo.git().ReadInProcess()
}

// setAside renames W and its indexes. After an error, W is where it was.
func (r *Repo) setAside(w *Worktree, u unexamined) error {
	for _, dir := range []string{r.ours("unexamined"), r.unexaminedPath()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := file.CheckDirectory(r.unexaminedPath()); err != nil {
		return err
	}
	aside := r.worktreeOf(u)
	if err := file.WriteJSON(aside.ours("record.json"), u); err != nil {
		return err
	}
	failpoint.Point("release.recorded")
	if err := os.Rename(w.Path, aside.Path); err != nil {
		return err
	}
	failpoint.Point("release.moved")
	for _, name := range []string{commitIndex, snapshotIndex} {
		if os.Rename(w.ours(name), aside.ours(name)) != nil {
			continue // without them, every file is read
		}
		if known, noted := r.memo.trees.LoadAndDelete(w.ours(name)); noted {
			r.memo.trees.Store(aside.ours(name), known)
		}
	}
	failpoint.Point("release.indexes")
	return nil
}

// Examine examines the landed worktrees that are not, except those about which a person must decide. The
// errors say which stay, and why.
func (r *Repo) Examine(ctx context.Context) error {
	if len(r.allUnexamined()) == 0 {
		return nil
	}
	l, err := r.lock(ctx, examineLock, "examine landed worktrees")
	if err != nil {
		return err
	}
	defer l.Release()
	var failed error
	for _, u := range r.allUnexamined() {
		if u.Refused != "" {
			continue
		}
		found, err := r.examine(ctx, u, capIgnored)
		failed = errors.Join(failed, err)
		r.tell(u, Examined{Task: u.Task, Rescue: found, Err: err})
	}
	return failed
}

// tell tells who released a W what was found in it. If that was another process, which may have been killed, it
// tells what coven doctor would not say.
func (r *Repo) tell(u unexamined, found Examined) {
	later, known := r.memo.later.LoadAndDelete(u.ID)
	refused := errors.As(found.Err, new(*IgnoredError))
	switch {
	case found.Err == nil && found.Rescue == "":
	case known:
		later.(func(Examined))(found)
	case r.Examined != nil && (refused || found.Rescue != ""):
		r.Examined(found)
	}
}

// ExamineTask examines the landed worktrees of one task as a person decides, and returns the refs of what had
// not landed. known reports whether there were any.
func (r *Repo) ExamineTask(ctx context.Context, taskID string, req RemoveRequest) (refs []string, known bool, err error) {
	l, err := r.lock(ctx, examineLock, "examine "+taskID)
	if err != nil {
		return nil, false, err
	}
	defer l.Release()
	for _, u := range r.allUnexamined() {
		if u.Task != taskID {
			continue
		}
		ref, err := r.examine(ctx, u, req.policy())
		if ref != "" {
			refs = append(refs, ref)
		}
		if known = true; err != nil {
			return refs, known, err
		}
	}
	return refs, known, nil
}

// examine stores what exists only in W, which was renamed, and moves its files to the pool. The caller has
// the lock of examinations.
func (r *Repo) examine(ctx context.Context, u unexamined, p policy) (ref string, err error) {
	w := r.worktreeOf(u)
	vacant, err := w.vacant()
	if err == nil && !vacant {
		err = errors.Join(file.CheckDirectory(r.unexaminedPath()), file.CheckDirectory(w.Path), file.CheckNotMounted(w.Path))
	}
	if err == nil && !vacant {
		ref, err = r.emptyInto(ctx, w, u, p)
	}
	if err == nil {
		err = r.examinationEnds(ctx, w, u)
	}
	if big := (*IgnoredError)(nil); errors.As(err, &big) && u.Refused == "" {
		u.Refused = big.Error()
		err = errors.Join(err, file.WriteJSON(w.ours("record.json"), u))
	}
	if err != nil {
		return ref, fmt.Errorf("examine what %s left in %s: %w", u.Task, w.Path, err)
	}
	return ref, nil
}

// emptyInto stores what exists only in W, and moves it to the pool, or to the trash if it does not fit there.
func (r *Repo) emptyInto(ctx context.Context, w *Worktree, u unexamined, p policy) (ref string, err error) {
	m := &removal{w: w, req: RemoveRequest{Note: u.Note, Landed: u.Tip}, tip: u.Tip, rec: record{Base: u.Base, Settings: u.Settings, Ready: true}, examines: true}
	landed := false
	if u.Tip != "" {
		landed, err = r.hasCommit(ctx, u.Tip)
	}
	switch {
	case err != nil:
	case landed:
		ref, err = m.storeBy(ctx, p)
	default: // the record is damaged, or what has landed has left the repository
		ref, err = w.rescueAll(ctx, p)
	}
	if err != nil {
		return "", err
	}
	failpoint.Point("examine.stored")
	l, err := r.lock(ctx, worktreesLock, "examine "+u.Task)
	if err != nil {
		return ref, err
	}
	defer l.Release()
	if m.parks {
		if err := m.park(ctx); err != nil && m.aside {
			return ref, err
		}
	}
	failpoint.Point("examine.parked")
	return ref, r.trash(w.Path, w.name)
}

// rescueAll stores all files of W. Of what has landed, objects are gone that W's indexes name.
func (w *Worktree) rescueAll(ctx context.Context, p policy) (ref string, err error) {
	w.tip = ""
	for _, name := range []string{commitIndex, snapshotIndex} {
		if err := file.RemoveAll(w.ours(name)); err != nil {
			return "", err
		}
	}
	info, err := w.rescue(ctx, clearNote, p)
	return info.Ref, err
}

// examinationEnds removes the records of a W whose files have been moved away.
func (r *Repo) examinationEnds(ctx context.Context, w *Worktree, u unexamined) error {
	l, err := r.lock(ctx, worktreesLock, "examine "+u.Task)
	if err != nil {
		return err
	}
	defer l.Release()
	if err := os.Remove(w.Path); err != nil && !errors.Is(err, fs.ErrNotExist) { // an empty directory
		return err
	}
	refs, err := r.git().Refs(ctx, unexaminedPrefix) // of a name that is not coven's, git allows no ref
	if err != nil {
		return err
	}
	if ref := unexaminedPrefix + u.ID; slices.ContainsFunc(refs, func(known git.Ref) bool { return known.Name == ref }) {
		if err := r.transact(ctx, r.git(), "coven: examined", git.Drop(ref)); err != nil {
			return err
		}
	}
	failpoint.Point("examine.unref")
	if err := file.RemoveAll(w.ours()); err != nil {
		return err
	}
	_ = os.Remove(r.unexaminedPath()) // unless there are others
	return nil
}

// Unexamined lists the worktrees that have landed and wait for their examination, except those of a running one.
func (r *Repo) Unexamined() (all []Info) {
	if _, held := r.locks.Holder(examineLock); held {
		return nil
	}
	for _, u := range r.allUnexamined() {
		w := r.worktreeOf(u)
		all = append(all, Info{Name: u.ID, TaskID: u.Task, Path: w.Path, Tip: u.Tip, Present: file.Exists(w.Path), Unexamined: cmp.Or(u.Refused, "it was not examined")})
	}
	return all
}

// staleUnexamined finds landed worktrees whose examination was killed, or failed.
func (r *Repo) staleUnexamined(context.Context, *survey) ([]Stale, error) {
	var found []Stale
	for _, info := range r.Unexamined() {
		found = append(found, Stale{
			Kind: StaleUnexamined, Task: info.TaskID, Path: info.Path,
			Text: fmt.Sprintf("what %s left besides what landed is still in %s: %s", cmp.Or(info.TaskID, info.Name), info.Path, info.Unexamined),
		})
	}
	return found, nil
}

// clearUnexamined examines a W. The caller has the lock of the task.
func (r *Repo) clearUnexamined(ctx context.Context, s Stale) (ref string, err error) {
	l, err := r.lock(ctx, examineLock, "examine "+s.Task)
	if err != nil {
		return "", err
	}
	defer l.Release()
	for _, u := range r.allUnexamined() {
		if r.unexaminedPath(u.ID) == s.Path {
			return r.examine(ctx, u, capIgnored)
		}
	}
	return "", ErrNotStale
}
