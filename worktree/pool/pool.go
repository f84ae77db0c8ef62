// Package pool has the files of landed worktrees: the next worktree starts from them, so that git
// writes only the files that differ. They are no worktrees of git meanwhile. On disk:
// .coven/worktrees/.pool/ID, the files of a W; coven/pool/ID.json, ID.index and
// ID.snapshot-index in the git directory, its record and coven's indexes of it; and
// .coven/worktrees/.pool/ID.ignored, ignored files that were too large to store.
//
// Parking and taking only rename directories. What a task left besides tracked files is moved away when the
// files are taken, and git then compares every file: files that are in doubt are thrown away. The
// lock of the worktrees protects the pool.
package pool

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/diskusage"
	"github.com/coven-run/coven/internal/failpoint"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// DirName is the name of the pool in .coven/worktrees.
const DirName = ".pool"

const (
	asideSuffix = ".ignored"
	// maxParked limits the pool to what can be taken soon.
	maxParked = 16
)

// An Entry is the record of an entry of the pool.
type Entry struct {
	ID       string    `json:"-"`
	Task     string    `json:"task"`
	Tree     string    `json:"tree"`     // what the index has
	Settings string    `json:"settings"` // of git, which determine the bytes of files
	Parked   time.Time `json:"parked"`
	Bytes    int64     `json:"bytes,omitempty"` // disk space; 0: not measured yet
	// Rewrite lists files that the task changed and git might write in another way.
	Rewrite []string `json:"rewrite,omitempty"`
	// Aside means that the ignored files exist nowhere else: they must be put aside before the
	// files are taken.
	Aside bool `json:"aside,omitempty"`
}

// Path returns a path in the pool.
func Path(r *repo.Repo, elem ...string) string {
	return filepath.Join(append([]string{r.Root, names.WorktreesDir, DirName}, elem...)...)
}

// RecordPath returns a file of an entry's record: suffix is .json, or the name of an index after a dot.
func RecordPath(r *repo.Repo, id, suffix string) string { return r.StatePath("pool", id+suffix) }

// List lists the entries, the newest first.
func List(r *repo.Repo) []Entry {
	entries, _ := os.ReadDir(r.StatePath("pool")) // without the directory, it is empty
	var all []Entry
	for _, entry := range entries {
		id, isRecord := strings.CutSuffix(entry.Name(), ".json")
		if !isRecord {
			continue
		}
		raw, err := file.Read(RecordPath(r, id, ".json"), repo.MaxGitFile)
		p := Entry{ID: id}
		if err != nil || json.Unmarshal(raw, &p) != nil {
			p = Entry{ID: id, Aside: true} // nobody takes it, nothing of it is deleted as known
		}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b Entry) int { return cmp.Or(b.Parked.Compare(a.Parked), strings.Compare(a.ID, b.ID)) })
	return all
}

// Take moves files of the pool to W, which does not exist, and returns their entry; the zero value:
// there are none. The caller has the lock of the worktrees and a record that W is not
// ready.
func Take(ctx context.Context, w *repo.Worktree, start string) (from Entry) {
	r := w.Repo
	settings, err := SettingsOf(ctx, w)
	if err != nil || r.Pool.Bytes == 0 || !r.Git().ReadInProcess() { // git worktree add wants no W
		return Entry{}
	}
	for _, p := range List(r) {
		if p.Aside || p.Settings != settings || !sameAttributes(ctx, r, p.Tree, start) {
			continue
		}
		if info, err := os.Lstat(Path(r, p.ID)); err != nil || !info.IsDir() {
			continue
		}
		for _, name := range []string{content.CommitIndex, content.SnapshotIndex} {
			if err := os.Rename(RecordPath(r, p.ID, "."+name), w.StatePath(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return Entry{}
			}
		}
		failpoint.Point("take.indexes")
		if os.Rename(Path(r, p.ID), w.Path) != nil {
			return Entry{}
		}
		failpoint.Point("take.moved")
		_ = os.Remove(RecordPath(r, p.ID, ".json")) // a record without files is removed later
		if file.RemoveAll(filepath.Join(w.Path, ".git")) != nil {
			_ = Trash(r, w.Path, w.Name)
			return Entry{}
		}
		return p
	}
	return Entry{}
}

// TidyLater tidies while the next task goes on.
func TidyLater(r *repo.Repo) {
	r.Memo.Tidying.Go(func() {
		r.Memo.Tidy.Lock() // one at a time
		defer r.Memo.Tidy.Unlock()
		ctx := context.Background()
		_ = Tidy(ctx, r) // what stays does no harm, and is tidied next time
	})
}

// Settle waits until what removals have left to do in the background is done, and ends the git
// that was kept for the next transaction.
func Settle(r *repo.Repo) {
	r.Memo.Tidying.Wait()
	r.Store.Close()
}

// sameAttributes reports whether git writes the same bytes for the same blobs in both trees:
// neither adds, changes or removes attributes.
func sameAttributes(ctx context.Context, r *repo.Repo, one, two string) bool {
	changes, err := r.Git().Changes(ctx, one, two)
	return err == nil && !slices.ContainsFunc(changes, func(c git.Change) bool { return path.Base(c.Path) == ".gitattributes" })
}

// SettingsOf returns a hash of everything else that determines which files W has, and their bytes and
// modes.
func SettingsOf(ctx context.Context, w *repo.Worktree) (string, error) {
	settings, err := hashSettings(ctx, w.Repo)
	return settings + w.Cone.Key(), err
}

// hashSettings returns a hash of the settings that determine the bytes and modes of all files.
func hashSettings(ctx context.Context, r *repo.Repo) (string, error) {
	settings, err := r.Git().Configured(ctx, `^(core|filter|lfs)\.`, false)
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	for _, s := range settings {
		_, _ = fmt.Fprintf(hash, "%q=%q\n", s.Key, s.Value)
	}
	attributes, err := file.ReadIfExists(filepath.Join(r.GitDir, "info", "attributes"))
	_, _ = fmt.Fprintf(hash, "%q", attributes)
	return hex.EncodeToString(hash.Sum(nil)), err
}

// Reuse turns the files of the pool in W, which had a tree, into those of start. If it fails, W
// must be emptied.
func Reuse(ctx context.Context, w *repo.Worktree, ix *content.Index, from Entry, start string) error {
	differs := make(chan error, 1) // from that tree; both look at every file, and submodules are emptied meanwhile
	go func() {
		differs <- ix.Git.Run(ctx, "diff-index", "--quiet", "--ignore-submodules=all", from.Tree, "--")
	}()
	files, err := tidied(ctx, w, from.Tree, w.Path, nil)
	if err := errors.Join(err, <-differs); err != nil {
		return err
	}
	if files.moved > 0 {
		defer TidyLater(w.Repo)
	}
	if w.Cone != nil {
		if _, visible, err := ix.Outside(ctx); err != nil || len(visible) > 0 {
			return errors.Join(err, errOdd) // a new worktree does not have these files
		}
	}
	if err := rewrite(ctx, w, ix, from.Rewrite); err != nil {
		return err
	}
	if err := ix.Move(ctx, from.Tree, start, content.ShowNone); err != nil {
		return err
	}
	if files.kept == 0 {
		return nil
	}
	l, err := ix.List(ctx, content.WithoutIgnored)
	if err == nil && !l.Clean() {
		err = errors.New("kept files are not ignored in this commit")
	}
	return err
}

// rewrite makes git write these files again.
func rewrite(ctx context.Context, w *repo.Worktree, ix *content.Index, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	for _, name := range paths {
		if file.BeyondLink(w.Path, name) {
			return errOdd
		}
		if err := os.Remove(filepath.Join(w.Path, name)); err != nil {
			return err
		}
	}
	_, err := ix.Git.Feed(ctx, git.Join(paths), "checkout-index", "-q", "-u", "-z", "--stdin")
	return err
}

// DiscardFiles removes all files of W, whatever they are.
func DiscardFiles(w *repo.Worktree) error {
	link, err := file.Read(filepath.Join(w.Path, ".git"), repo.MaxGitFile)
	if err != nil {
		return err
	}
	if err := Trash(w.Repo, w.Path, w.Name); err != nil {
		return err
	}
	for _, name := range []string{content.CommitIndex, content.SnapshotIndex} {
		if err := os.RemoveAll(w.StatePath(name)); err != nil {
			return err
		}
	}
	if err := os.Mkdir(w.Path, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(w.Path, ".git"), link, 0o644)
}

// Tidy deletes what removals have moved away and makes the pool as small as it has to be: it
// removes the entries that are parked for longest, with ignored files that were put aside.
func Tidy(ctx context.Context, r *repo.Repo) error {
	if !file.Exists(Path(r)) && !file.Exists(r.StatePath("pool")) {
		return EmptyTrash(r)
	}
	bytes := map[string]int64{} // measured without the lock: it takes long
	for _, p := range List(r) {
		if bytes[p.ID] = p.Bytes; p.Bytes == 0 {
			bytes[p.ID] = usage(ctx, Path(r, p.ID), Path(r, p.ID+asideSuffix))
		}
	}
	for _, name := range Dirs(r) {
		if id, aside := strings.CutSuffix(name, asideSuffix); aside && bytes[id] == 0 {
			bytes[id] = usage(ctx, Path(r, name)) // its files were taken
		}
	}
	l, err := r.Lock(ctx, repo.WorktreesLock, "tidy the pool")
	if err != nil {
		return err
	}
	err = limitPool(ctx, r, bytes)
	l.Release()
	return errors.Join(err, EmptyTrash(r))
}

// limitPool removes entries, of which the sizes are known, and what is left of others.
func limitPool(ctx context.Context, r *repo.Repo, bytes map[string]int64) error {
	var failed error
	left, known := r.Pool.Bytes, map[string]bool{}
	for n, p := range List(r) {
		known[p.ID] = true
		left -= bytes[p.ID]
		if left < 0 || n >= maxParked {
			failed = errors.Join(failed, unpark(r, p.ID), Trash(r, Path(r, p.ID+asideSuffix), p.ID))
			continue
		}
		if !file.Exists(Path(r, p.ID)) {
			failed = errors.Join(failed, unpark(r, p.ID)) // a coven was killed while it took the files
			continue
		}
		apart := p.Aside && p.Tree != "" && putAside(ctx, r, p)
		if p.Bytes == bytes[p.ID] && !apart {
			continue
		}
		p.Bytes, p.Aside = bytes[p.ID], p.Aside && !apart
		failed = errors.Join(failed, file.WriteJSON(RecordPath(r, p.ID, ".json"), p))
	}
	for _, name := range Dirs(r) {
		id, aside := strings.CutSuffix(name, asideSuffix)
		if known[id] {
			continue
		}
		if left -= bytes[id]; left < 0 || !aside { // without a record, a coven was killed while it removed them
			failed = errors.Join(failed, Trash(r, Path(r, name), id))
		}
	}
	return failed
}

// Dirs lists the directories in the pool: files of entries, and ignored files that were put aside.
func Dirs(r *repo.Repo) (names []string) {
	for _, dir := range file.Directories(Path(r)) {
		names = append(names, dir.Name())
	}
	return names
}

// unpark moves the files of an entry to the trash and removes its records.
func unpark(r *repo.Repo, id string) error {
	err := Trash(r, Path(r, id), id)
	for _, suffix := range []string{"." + content.CommitIndex, "." + content.SnapshotIndex, ".json"} {
		if removeErr := os.Remove(RecordPath(r, id, suffix)); !errors.Is(removeErr, fs.ErrNotExist) {
			err = errors.Join(err, removeErr)
		}
	}
	return err
}

// putAside separates an entry's ignored files from the tracked ones, which can be taken then. It
// reports whether it did: otherwise the entry stays whole until the space is needed.
func putAside(ctx context.Context, r *repo.Repo, p Entry) bool {
	aside := func(name string) string { return Path(r, p.ID+asideSuffix, name) }
	_, err := tidied(ctx, r.Worktree(p.Task, repo.Record{}), p.Tree, Path(r, p.ID), aside)
	failpoint.Point("pool.aside")
	return err == nil
}

// usage returns the disk space of directories, in bytes. What cannot be read does not count.
func usage(ctx context.Context, dirs ...string) (bytes int64) {
	var meter diskusage.Meter
	for _, dir := range dirs {
		n, _ := meter.Of(ctx, dir)
		bytes += n
	}
	return bytes
}
