// Package isolation gives an agent's worktree a private git directory: git works there as in the
// repository, but cannot change anything outside. TakeCommits takes the commits into the repository.
package isolation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// Writable returns the directories that programs of the task may write while the worktree is isolated.
func Writable(w *repo.Worktree) []string { return []string{w.Path, w.Admin} }

// PrivatePath returns a path in the worktree's private common directory.
func PrivatePath(w *repo.Worktree, elem ...string) string {
	return filepath.Join(append([]string{w.Admin, names.PrivateDir}, elem...)...)
}

// Begin gives the worktree a private common directory, so that git works there although it may write only
// to the worktree and the worktree's git directory. The private directory has the current history and refs
// of the repository; git's changes to branches, tags, the stash and the configuration stay in it. Until
// TakeCommits, other worktrees do not see the new commits.
//
// Begin does nothing if the worktree is isolated. The private directory exists as long as the worktree. A
// later Begin updates the task's branch in it, and the refs that the agent has not changed itself.
func Begin(ctx context.Context, w *repo.Worktree) error {
	l, err := w.Lock(ctx, "isolate")
	if err != nil {
		return err
	}
	defer l.Release()
	w.Repo.Memo.Fresh.Delete(w.StatePath(content.CommitIndex))
	if err := BeginLocked(ctx, w); err != nil {
		return fmt.Errorf("isolate %s: %w", w.TaskID, err)
	}
	return nil
}

// BeginLocked is Begin for a caller that holds the worktree's lock.
func BeginLocked(ctx context.Context, w *repo.Worktree) error {
	if err := regainOwn(w); err != nil {
		return err
	}
	if _, err := ReadRecord(w); !errors.Is(err, fs.ErrNotExist) {
		removeLeftLocks(w)                   // coven was killed
		return errors.Join(err, closeGit(w)) // it is already isolated
	}
	if err := putLFSReference(w.Repo); err != nil {
		return err
	}
	refs, err := refs(ctx, w.Repo)
	if err != nil {
		return err
	}
	tip, err := tipNow(ctx, w, refs)
	if err != nil {
		return err
	}
	if err := preparePrivate(ctx, w, Shared(w, refs)); err != nil {
		return err
	}
	failpoint.Point("isolate.made")
	if err := putPrivateTip(w, tip); err != nil {
		return err
	}
	if err := file.WriteJSON(isolationPath(w), Record{Tip: tip, Log: headLogSum(w)}); err != nil {
		return err
	}
	failpoint.Point("isolate.recorded")
	if err := closeGit(w); err != nil { // before git could read the configuration in the private directory
		return err
	}
	failpoint.Point("isolate.closed")
	return errors.Join(putLinks(w, names.PrivateDir), putFilterState(w))
}

// Record is isolated.json, which records that the worktree is isolated. The agent cannot write it.
type Record struct {
	Tip string `json:"tip"`           // tip of the task's branch
	Log string `json:"log,omitempty"` // hash of the reflog of the worktree's HEAD, empty if unknown
}

// headLogSum returns a hash of the reflog of the worktree's HEAD, or "" if it cannot be read.
func headLogSum(w *repo.Worktree) string {
	if info, err := os.Lstat(filepath.Dir(headLog(w))); err != nil || !info.IsDir() {
		return "" // a link may lead out of the worktree's git directory
	}
	raw, err := file.Read(headLog(w), MaxHeadLog)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

func headLog(w *repo.Worktree) string { return filepath.Join(w.Admin, "logs", "HEAD") }

// preparePrivate creates the private common directory, or updates the refs in the existing one.
func preparePrivate(ctx context.Context, w *repo.Worktree, refs map[string]string) error {
	if info, err := os.Lstat(PrivatePath(w)); err != nil || !info.IsDir() {
		return makePrivate(ctx, w, refs)
	}
	return updateRefs(w, refs)
}

func isolationPath(w *repo.Worktree) string { return w.StatePath("isolated.json") }

// ReadRecord returns the record. The error is fs.ErrNotExist if the worktree is not isolated.
func ReadRecord(w *repo.Worktree) (Record, error) {
	var i Record
	err := file.ReadJSON(isolationPath(w), &i)
	return i, err
}

// putPrivateTip sets the task's branch in the private common directory, where the agent may have put
// anything.
func putPrivateTip(w *repo.Worktree, tip string) error {
	if now, err := privateTip(w); err == nil && now == tip {
		return nil
	}
	at := names.HeadsPrefix + w.Branch
	if err := clearParents(w, PrivatePath(w, at)); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(PrivatePath(w, at)), 0o755); err != nil {
		return err
	}
	return putFile(w, PrivatePath(w, at), tip+"\n")
}

func makePrivate(ctx context.Context, w *repo.Worktree, refs map[string]string) error {
	making := PrivatePath(w) + ".new"
	if err := os.RemoveAll(making); err != nil {
		return err
	}
	for _, dir := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags", "info", "hooks", "logs"} {
		if err := os.MkdirAll(filepath.Join(making, dir), 0o755); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(making, "objects/info/alternates"), alternates(w), 0o644); err != nil {
		return err
	}
	for _, name := range []string{"HEAD", "config", "shallow", "info/exclude", "info/attributes", "info/grafts"} {
		if err := file.CopyIfExists(filepath.Join(w.Repo.GitDir, name), filepath.Join(making, name)); err != nil {
			return err
		}
	}
	if err := errors.Join(copyHooks(w, filepath.Join(making, "hooks")), copyRefs(w, refs, making), settleConfig(ctx, w, filepath.Join(making, "config")), settleLFS(ctx, w, filepath.Join(making, "config"))); err != nil {
		return err
	}
	if err := SetAsidePrivate(w, PrivatePath(w)); err != nil {
		return err
	}
	return os.Rename(making, PrivatePath(w))
}

// alternates returns the content of objects/info/alternates of the private common directory.
func alternates(w *repo.Worktree) []byte {
	list := filepath.Join(w.Repo.GitDir, "objects") + "\n"
	if !isUsualLFS(w.Repo) {
		list += filepath.Join(w.Repo.OwnStatePath(lfsReference), "objects") + "\n"
	}
	return []byte(list)
}

// copyHooks copies the hooks of the repository, so that the agent's git runs them.
func copyHooks(w *repo.Worktree, to string) error {
	from := filepath.Join(w.Repo.GitDir, "hooks")
	entries, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() || strings.HasSuffix(entry.Name(), ".sample") {
			continue
		}
		if info, err := os.Stat(filepath.Join(from, entry.Name())); err != nil || !info.Mode().IsRegular() {
			continue // git could not run it either
		}
		if err := file.CopyIfExists(filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

var includePath = lazyregexp.New(`^include(if\..*)?\.path$`)

// settleConfig adapts a copy of the repository's configuration to its new place: it makes relative includes
// absolute, and sets the format of the refs, which are files there.
func settleConfig(ctx context.Context, w *repo.Worktree, file string) error {
	g := w.Repo.Git()
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text := strings.ToLower(string(raw))
	if strings.Contains(text, "refstorage") {
		if err := g.Run(ctx, "config", "--file", file, "--unset-all", "extensions.refStorage"); git.ExitCode(err) != 5 && err != nil { // 5: not set
			return err
		}
	}
	if w.Cone != nil && !w.Repo.Bare {
		if err := g.Run(ctx, "config", "--file", file, "extensions.worktreeConfig", "true"); err != nil {
			return err
		}
	}
	if !strings.Contains(text, "include") {
		return nil
	}
	settings, err := g.Fields(ctx, "config", "--file", file, "--no-includes", "--list", "-z")
	if err != nil {
		return err
	}
	for _, setting := range settings {
		key, value, _ := strings.Cut(setting, "\n")
		if !includePath.MatchString(key) || filepath.IsAbs(value) || strings.HasPrefix(value, "~") {
			continue
		}
		absolute := filepath.Join(w.Repo.GitDir, value)
		if err := g.Run(ctx, "config", "--file", file, "--fixed-value", "--replace-all", key, absolute, value); err != nil {
			return err
		}
	}
	return nil
}

// putLinks writes the files that connect the worktree's git directory to the worktree and to the common directory.
// common is relative to the worktree's git directory.
func putLinks(w *repo.Worktree, common string) error {
	return errors.Join(
		putFile(w, filepath.Join(w.Admin, "gitdir"), gitFile(w)+"\n"),
		putFile(w, filepath.Join(w.Admin, "commondir"), common+"\n"),
	)
}

// putFile restores the content of a file that the agent may have changed. If the path is not a regular
// file, it is set aside. The file is not synced: all of these files are written again until the record of
// the isolation is removed, and git does not sync such files either.
func putFile(w *repo.Worktree, path, content string) error {
	if raw, err := file.Read(path, MaxHeadLog); err == nil && string(raw) == content {
		return nil
	}
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		if err := SetAsidePrivate(w, path); err != nil {
			return err
		}
	}
	return file.WriteNoSync(path, []byte(content))
}

// clearParents checks the parent directories of a path in the worktree's git directory, from the top, and sets
// aside the first that is not a directory. A link could lead to files outside.
func clearParents(w *repo.Worktree, path string) error {
	rel, err := filepath.Rel(w.Admin, filepath.Dir(path))
	if err != nil {
		return err
	}
	dir := w.Admin
	for part := range strings.SplitSeq(rel, string(filepath.Separator)) {
		dir = filepath.Join(dir, part)
		info, err := os.Lstat(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return SetAsidePrivate(w, dir)
		}
		if err := restorePermissions(dir, info); err != nil {
			return err
		}
	}
	return nil
}

// restorePermissions restores coven's permissions on a directory that a program of the task may have removed.
func restorePermissions(dir string, info fs.FileInfo) error {
	if mode := info.Mode().Perm(); mode&0o700 != 0o700 {
		return os.Chmod(dir, mode|0o700)
	}
	return nil
}

// regainOwn is regain for the directories of the worktree.
func regainOwn(w *repo.Worktree) error {
	for _, dir := range []string{w.Path, w.Admin, PrivatePath(w)} {
		if info, err := os.Lstat(dir); err == nil && info.IsDir() {
			if err := restorePermissions(dir, info); err != nil {
				return err
			}
		}
	}
	return nil
}

// SetAsidePrivate moves the file at a path, if it exists, to a new directory in the worktree's git
// directory.
func SetAsidePrivate(w *repo.Worktree, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && info.IsDir() {
		err = restorePermissions(path, info) // moving a directory requires write permission
	}
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(w.Admin, replacedPrefix)
	if err != nil {
		return err
	}
	return os.Rename(path, filepath.Join(dir, filepath.Base(path)))
}
