// Package pool stores the files of landed worktrees. A new worktree starts with such files, so that git
// writes only the files that differ. While they are in the pool, they are not a git worktree. On disk:
// .pool/ID beside the worktrees, the files; coven/pool/ID.json, ID.index and ID.snapshot-index in the git
// directory, the record and coven's indexes of the files; and .pool/ID.ignored, ignored files that were too
// large to store.
//
// Parking and taking files only renames directories. When the files are taken, everything that is not a
// tracked file is moved away, and git compares every file. In case of doubt, the files are discarded. The
// worktrees lock protects the pool.
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

	"github.com/coven-run/coven/internal/file/diskusage"
	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// DirName is the name of the pool's directory in repo.Place.Own.
const DirName = ".pool"

const (
	asideSuffix = ".ignored"
	// maxParked limits the number of entries to those that can soon be used.
	maxParked = 16
)

// An Entry is the record of files in the pool.
type Entry struct {
	ID       string    `json:"-"`
	Task     string    `json:"task"`
	Tree     string    `json:"tree"`     // the tree that the index contains
	Settings string    `json:"settings"` // git's settings, which determine the bytes of files
	Parked   time.Time `json:"parked"`
	Bytes    int64     `json:"bytes,omitempty"` // disk space, 0 if not measured yet
	// Rewrite lists files that the task changed and that git might write with different bytes.
	Rewrite []string `json:"rewrite,omitempty"`
	// Aside means that the ignored files exist nowhere else. They must be moved aside before the other
	// files can be taken.
	Aside bool `json:"aside,omitempty"`
}

// Path returns a path in the pool.
func Path(r *repo.Repo, elem ...string) string {
	return filepath.Join(append([]string{r.Place().Own, DirName}, elem...)...)
}

// adopt moves the pool to the present place of worktrees, if it was in the main checkout.
func adopt(r *repo.Repo) {
	before := filepath.Join(r.Root, names.WorktreesDir, DirName)
	if now := Path(r); now != before && file.CheckDirectory(before) == nil && !file.Exists(now) {
		_ = os.Rename(before, now) // on another file system, its files remain
	}
}

// RecordPath returns the path of a file of an entry's record. suffix is .json, or a dot and the name of an
// index.
func RecordPath(r *repo.Repo, id, suffix string) string { return r.StatePath("pool", id+suffix) }

// List lists the entries, newest first, without those of other users.
func List(r *repo.Repo) []Entry {
	entries, _ := os.ReadDir(r.StatePath("pool")) // if the directory does not exist, the pool is empty
	var all []Entry
	for _, entry := range entries {
		id, isRecord := strings.CutSuffix(entry.Name(), ".json")
		if !isRecord || r.IsForeign(RecordPath(r, id, ".json")) {
			continue
		}
		raw, err := file.Read(RecordPath(r, id, ".json"), object.MaxGitFile)
		p := Entry{ID: id}
		if err != nil || json.Unmarshal(raw, &p) != nil {
			p = Entry{ID: id, Aside: true} // an entry with Aside is neither taken nor deleted for lack of content
		}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b Entry) int { return cmp.Or(b.Parked.Compare(a.Parked), strings.Compare(a.ID, b.ID)) })
	return all
}

// Take moves files from the pool to the worktree's path, which must not exist, and returns their entry. It
// returns the zero Entry if the pool has no suitable files. The caller holds the worktrees lock and has
// recorded that the worktree is not ready.
func Take(ctx context.Context, w *repo.Worktree, start string) (from Entry) {
	r := w.Repo
	adopt(r)
	settings, err := SettingsOf(ctx, w)
	if err != nil || r.Pool.Bytes == 0 || !r.Git().ReadInProcess() { // git worktree add needs a free path
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
		_ = os.Remove(RecordPath(r, p.ID, ".json")) // Tidy removes a record without files
		if file.RemoveAll(filepath.Join(w.Path, ".git")) != nil {
			_ = Trash(r, w.Path, w.Name)
			return Entry{}
		}
		return p
	}
	return Entry{}
}

// TidyLater calls Tidy in the background.
func TidyLater(r *repo.Repo) {
	r.Memo.Tidying.Go(func() {
		r.Memo.Tidy.Lock() // one at a time
		defer r.Memo.Tidy.Unlock()
		ctx := context.Background()
		_ = Tidy(ctx, r) // the next call tries again
	})
}

// Wait waits for TidyLater, and ends the git process that the Store keeps for further transactions.
func Wait(r *repo.Repo) {
	r.Memo.Tidying.Wait()
	r.Store.Close()
}

// sameAttributes reports whether git writes the same bytes for the same blobs in both trees: whether the
// trees do not differ in attributes files.
func sameAttributes(ctx context.Context, r *repo.Repo, one, two string) bool {
	changes, err := r.Git().Changes(ctx, one, two)
	return err == nil && !slices.ContainsFunc(changes, func(c object.Change) bool { return path.Base(c.Path) == ".gitattributes" })
}

// SettingsOf returns a hash of everything except the tree that determines the set of checked-out files,
// their bytes and their modes.
func SettingsOf(ctx context.Context, w *repo.Worktree) (string, error) {
	settings, err := hashSettings(ctx, w.Repo)
	return settings + w.Cone.Key(), err
}

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

// Reuse changes the files from the pool, which had the tree from.Tree, into those of start. If it fails,
// the worktree must be emptied.
func Reuse(ctx context.Context, w *repo.Worktree, ix *content.Index, from Entry, start string) error {
	differs := make(chan error, 1) // from from.Tree; runs concurrently with tidied, which empties submodules
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
			return errors.Join(err, errUnusualMetadata) // a new worktree does not contain these files
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

// rewrite makes git write the given files again.
func rewrite(ctx context.Context, w *repo.Worktree, ix *content.Index, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	for _, name := range paths {
		if file.BeyondLink(w.Path, name) {
			return errUnusualMetadata
		}
		if err := os.Remove(filepath.Join(w.Path, name)); err != nil {
			return err
		}
	}
	_, err := ix.Git.Feed(ctx, git.Join(paths), "checkout-index", "-q", "-u", "-z", "--stdin")
	return err
}

// DiscardFiles removes all files in the worktree.
func DiscardFiles(w *repo.Worktree) error {
	link, err := file.Read(filepath.Join(w.Path, ".git"), object.MaxGitFile)
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

// Tidy deletes trashed directories and shrinks the pool to its limits: it removes the oldest entries, and
// ignored files that were moved aside.
func Tidy(ctx context.Context, r *repo.Repo) error {
	if !file.Exists(Path(r)) && !file.Exists(r.StatePath("pool")) {
		return EmptyTrash(r)
	}
	bytes := map[string]int64{} // measured without the lock, because it takes long
	for _, p := range List(r) {
		if bytes[p.ID] = p.Bytes; p.Bytes == 0 {
			bytes[p.ID] = usage(ctx, Path(r, p.ID), Path(r, p.ID+asideSuffix))
		}
	}
	for _, name := range Dirs(r) {
		if id, aside := strings.CutSuffix(name, asideSuffix); aside && bytes[id] == 0 {
			bytes[id] = usage(ctx, Path(r, name)) // the other files of the entry were taken
		}
	}
	l, err := r.Lock(ctx, names.WorktreesLock, "tidy the pool")
	if err != nil {
		return err
	}
	err = limitPool(ctx, r, bytes)
	l.Release()
	return errors.Join(err, EmptyTrash(r))
}

// limitPool removes entries with known sizes that exceed the limits, and remains of other entries.
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
			failed = errors.Join(failed, unpark(r, p.ID)) // coven was killed while it took the files
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
		if left -= bytes[id]; left < 0 || !aside { // tracked files without a record: coven was killed while it removed them
			failed = errors.Join(failed, Trash(r, Path(r, name), id))
		}
	}
	return failed
}

// Dirs lists the directories in the pool, without those of other users: files of entries, and ignored files that were
// moved aside.
func Dirs(r *repo.Repo) (names []string) {
	for _, dir := range file.Directories(Path(r)) {
		if !r.IsForeign(Path(r, dir.Name())) {
			names = append(names, dir.Name())
		}
	}
	return names
}

// unpark moves the files of an entry to the trash and removes its record.
func unpark(r *repo.Repo, id string) error {
	err := Trash(r, Path(r, id), id)
	for _, suffix := range []string{"." + content.CommitIndex, "." + content.SnapshotIndex, ".json"} {
		if removeErr := os.Remove(RecordPath(r, id, suffix)); !errors.Is(removeErr, fs.ErrNotExist) {
			err = errors.Join(err, removeErr)
		}
	}
	return err
}

// putAside separates an entry's ignored files from the tracked ones, which can then be taken. It reports
// whether it did. Otherwise the entry stays complete until the space is needed.
func putAside(ctx context.Context, r *repo.Repo, p Entry) bool {
	aside := func(name string) string { return Path(r, p.ID+asideSuffix, name) }
	_, err := tidied(ctx, r.Worktree(p.Task, repo.Record{}), p.Tree, Path(r, p.ID), aside)
	failpoint.Point("pool.aside")
	return err == nil
}

// usage returns the disk space of directories in bytes. It ignores unreadable ones.
func usage(ctx context.Context, dirs ...string) (bytes int64) {
	var meter diskusage.Meter
	for _, dir := range dirs {
		n, _ := meter.Of(ctx, dir)
		bytes += n
	}
	return bytes
}
