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
	"github.com/coven-run/coven/worktree/internal/repo"
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
	unexaminedDir = ".unexamined"
	examineLock   = "examine"
)

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

func unexaminedPath(r *repo.Repo, elem ...string) string {
	return filepath.Join(append([]string{r.Root, repo.WorktreesDir, unexaminedDir}, elem...)...)
}

// worktreeOf returns a handle on the files, with which W is examined.
func worktreeOf(r *repo.Repo, u unexamined) *repo.Worktree {
	w := r.Worktree(u.Task, repo.Record{})
	w.Path, w.LandedState, w.LandedTip, w.Partial = unexaminedPath(r, u.ID), r.StatePath("unexamined", u.ID), u.Tip, true
	w.Admin = w.StatePath("admin") // it is gone
	return w
}

// allUnexamined lists the records, the oldest first. Of one that cannot be read, or is gone, the ID
// stands for the task.
func allUnexamined(r *repo.Repo) []unexamined {
	records, _ := os.ReadDir(r.StatePath("unexamined")) // without the directory, there are none
	files := directories(unexaminedPath(r))
	var all []unexamined
	seen := map[string]bool{}
	for _, dir := range slices.Concat(records, files) {
		id, u := dir.Name(), unexamined{}
		if seen[id] {
			continue
		}
		seen[id] = true
		raw, err := file.Read(r.StatePath("unexamined", id, "record.json"), repo.MaxGitFile)
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
	w, r := m.w, m.w.Repo
	l, err := r.Lock(ctx, repo.WorktreesLock, "remove "+w.TaskID)
	if err != nil {
		return false, err
	}
	defer l.Release()
	if err := setAsideUnexamined(r, w, u); err != nil {
		_ = file.RemoveAll(r.StatePath("unexamined", u.ID)) // a record without files does no harm
		return false, ctx.Err()
	}
	r.Memo.Later.Store(u.ID, m.req.Later)
	return true, forget(ctx, w, m.tip, git.Set(repo.UnexaminedPrefix+u.ID, m.tip))
}

// releasedBefore reports whether a W of the task waits for its examination because the coven that renamed it
// was killed.
func (m *removal) releasedBefore() (found bool) {
	for _, u := range allUnexamined(m.w.Repo) {
		if u.Task == m.w.TaskID && u.Refused == "" && m.req.Later != nil {
			m.w.Repo.Memo.Later.Store(u.ID, m.req.Later)
			found = true
		}
	}
	return found
}

// releasable reports whether W can be examined later: it has landed, is large and goes to the pool, and
// all of its own git directory exists elsewhere.
func (m *removal) releasable(ctx context.Context) (unexamined, bool) {
	w, r := m.w, m.w.Repo
	if m.req.Later == nil || !isLarge(w) || file.Exists(filepath.Join(w.Admin, modulesDir)) {
		return unexamined{}, false
	}
	rec, err := r.ReadRecord(w.Name)
	if err != nil || !rec.Ready || rec.Settings == "" || rec.Sparse != nil || w.CheckExists() != nil {
		return unexamined{}, false
	}
	if m.tip, err = w.TipIfAny(ctx); err != nil || m.tip == "" || m.tip != m.req.Landed {
		return unexamined{}, false
	}
	tree, err := r.Git().Tree(ctx, m.tip)
	if err != nil {
		return unexamined{}, false
	}
	if own, err := findGitWork(ctx, w, tree); err != nil || !own.empty() {
		return unexamined{}, false
	}
	return unexamined{
		ID: w.Name + "-" + rand.Text()[:8], Task: w.TaskID, Note: m.req.Note, Tip: m.tip,
		Base: rec.Base, Settings: rec.Settings, Released: time.Now().UTC(),
	}, true
}

// isLarge reports whether W's files are so many that the pool gets them unexamined.
func isLarge(w *repo.Worktree) bool {
	info, err := os.Lstat(w.StatePath(commitIndex))
	return err == nil && info.Size() >= w.Repo.ExamineLater && w.Repo.Pool.Bytes > 0 && w.Repo.Git().ReadInProcess()
}

// setAsideUnexamined renames W and its indexes. After an error, W is where it was.
func setAsideUnexamined(r *repo.Repo, w *repo.Worktree, u unexamined) error {
	for _, dir := range []string{r.StatePath("unexamined"), unexaminedPath(r)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := file.CheckDirectory(unexaminedPath(r)); err != nil {
		return err
	}
	aside := worktreeOf(r, u)
	if err := file.WriteJSON(aside.StatePath("record.json"), u); err != nil {
		return err
	}
	failpoint.Point("release.recorded")
	if err := os.Rename(w.Path, aside.Path); err != nil {
		return err
	}
	failpoint.Point("release.moved")
	for _, name := range []string{commitIndex, snapshotIndex} {
		if os.Rename(w.StatePath(name), aside.StatePath(name)) != nil {
			continue // without them, every file is read
		}
		if known, noted := r.Memo.Trees.LoadAndDelete(w.StatePath(name)); noted {
			r.Memo.Trees.Store(aside.StatePath(name), known)
		}
	}
	failpoint.Point("release.indexes")
	return nil
}

// Examine examines the landed worktrees that are not, except those about which a person must decide. The
// errors say which stay, and why.
func Examine(ctx context.Context, r *repo.Repo) error {
	if len(allUnexamined(r)) == 0 {
		return nil
	}
	l, err := r.Lock(ctx, examineLock, "examine landed worktrees")
	if err != nil {
		return err
	}
	defer l.Release()
	var failed error
	for _, u := range allUnexamined(r) {
		if u.Refused != "" {
			continue
		}
		found, err := examine(ctx, r, u, capIgnored)
		failed = errors.Join(failed, err)
		tell(r, u, repo.Examined{Task: u.Task, Rescue: found, Err: err})
	}
	return failed
}

// tell tells who released a W what was found in it. If that was another process, which may have been killed, it
// tells what coven doctor would not say.
func tell(r *repo.Repo, u unexamined, found repo.Examined) {
	later, known := r.Memo.Later.LoadAndDelete(u.ID)
	refused := errors.As(found.Err, new(*IgnoredError))
	switch {
	case found.Err == nil && found.Rescue == "":
	case known:
		later.(func(repo.Examined))(found)
	case r.Examined != nil && (refused || found.Rescue != ""):
		r.Examined(found)
	}
}

// ExamineTask examines the landed worktrees of one task as a person decides, and returns the refs of what had
// not landed. known reports whether there were any.
func ExamineTask(ctx context.Context, r *repo.Repo, taskID string, req RemoveRequest) (refs []string, known bool, err error) {
	l, err := r.Lock(ctx, examineLock, "examine "+taskID)
	if err != nil {
		return nil, false, err
	}
	defer l.Release()
	for _, u := range allUnexamined(r) {
		if u.Task != taskID {
			continue
		}
		ref, err := examine(ctx, r, u, req.policy())
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
func examine(ctx context.Context, r *repo.Repo, u unexamined, p policy) (ref string, err error) {
	w := worktreeOf(r, u)
	vacant, err := w.IsVacant()
	if err == nil && !vacant {
		err = errors.Join(file.CheckDirectory(unexaminedPath(r)), file.CheckDirectory(w.Path), file.CheckNotMounted(w.Path))
	}
	if err == nil && !vacant {
		ref, err = emptyInto(ctx, r, w, u, p)
	}
	if err == nil {
		err = examinationEnds(ctx, r, w, u)
	}
	if big := (*IgnoredError)(nil); errors.As(err, &big) && u.Refused == "" {
		u.Refused = big.Error()
		err = errors.Join(err, file.WriteJSON(w.StatePath("record.json"), u))
	}
	if err != nil {
		return ref, fmt.Errorf("examine what %s left in %s: %w", u.Task, w.Path, err)
	}
	return ref, nil
}

// emptyInto stores what exists only in W, and moves it to the pool, or to the trash if it does not fit there.
func emptyInto(ctx context.Context, r *repo.Repo, w *repo.Worktree, u unexamined, p policy) (ref string, err error) {
	m := &removal{w: w, req: RemoveRequest{Note: u.Note, Landed: u.Tip}, tip: u.Tip, rec: repo.Record{Base: u.Base, Settings: u.Settings, Ready: true}, examines: true}
	landed := false
	if u.Tip != "" {
		landed, err = r.HasCommit(ctx, u.Tip)
	}
	switch {
	case err != nil:
	case landed:
		ref, err = m.storeBy(ctx, p)
	default: // the record is damaged, or what has landed has left the repository
		ref, err = rescueAll(ctx, w, p)
	}
	if err != nil {
		return "", err
	}
	failpoint.Point("examine.stored")
	l, err := r.Lock(ctx, repo.WorktreesLock, "examine "+u.Task)
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
	return ref, trash(r, w.Path, w.Name)
}

// rescueAll stores all files of W. Of what has landed, objects are gone that W's indexes name.
func rescueAll(ctx context.Context, w *repo.Worktree, p policy) (ref string, err error) {
	w.LandedTip = ""
	for _, name := range []string{commitIndex, snapshotIndex} {
		if err := file.RemoveAll(w.StatePath(name)); err != nil {
			return "", err
		}
	}
	info, err := rescue(ctx, w, clearNote, p)
	return info.Ref, err
}

// examinationEnds removes the records of a W whose files have been moved away.
func examinationEnds(ctx context.Context, r *repo.Repo, w *repo.Worktree, u unexamined) error {
	l, err := r.Lock(ctx, repo.WorktreesLock, "examine "+u.Task)
	if err != nil {
		return err
	}
	defer l.Release()
	if err := os.Remove(w.Path); err != nil && !errors.Is(err, fs.ErrNotExist) { // an empty directory
		return err
	}
	refs, err := r.Git().Refs(ctx, repo.UnexaminedPrefix) // of a name that is not coven's, git allows no ref
	if err != nil {
		return err
	}
	if ref := repo.UnexaminedPrefix + u.ID; slices.ContainsFunc(refs, func(known git.Ref) bool { return known.Name == ref }) {
		if err := r.Transact(ctx, r.Git(), "coven: examined", git.Drop(ref)); err != nil {
			return err
		}
	}
	failpoint.Point("examine.unref")
	if err := file.RemoveAll(w.StatePath()); err != nil {
		return err
	}
	_ = os.Remove(unexaminedPath(r)) // unless there are others
	return nil
}

// Unexamined lists the worktrees that have landed and wait for their examination, except those of a running one.
func Unexamined(r *repo.Repo) (all []Info) {
	if _, held := r.Locks.Holder(examineLock); held {
		return nil
	}
	for _, u := range allUnexamined(r) {
		w := worktreeOf(r, u)
		all = append(all, Info{Name: u.ID, TaskID: u.Task, Path: w.Path, Tip: u.Tip, Present: file.Exists(w.Path), Unexamined: cmp.Or(u.Refused, "it was not examined")})
	}
	return all
}

// staleUnexamined finds landed worktrees whose examination was killed, or failed.
func staleUnexamined(_ context.Context, r *repo.Repo, _ *survey) ([]Stale, error) {
	var found []Stale
	for _, info := range Unexamined(r) {
		found = append(found, Stale{
			Kind: StaleUnexamined, Task: info.TaskID, Path: info.Path,
			Text: fmt.Sprintf("what %s left besides what landed is still in %s: %s", cmp.Or(info.TaskID, info.Name), info.Path, info.Unexamined),
		})
	}
	return found, nil
}

// clearUnexamined examines a W. The caller has the lock of the task.
func clearUnexamined(ctx context.Context, r *repo.Repo, s Stale) (ref string, err error) {
	l, err := r.Lock(ctx, examineLock, "examine "+s.Task)
	if err != nil {
		return "", err
	}
	defer l.Release()
	for _, u := range allUnexamined(r) {
		if unexaminedPath(r, u.ID) == s.Path {
			return examine(ctx, r, u, capIgnored)
		}
	}
	return "", ErrNotStale
}
