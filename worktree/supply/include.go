// Package supply adds the files that git does not check out to a new worktree: those that the configuration
// includes and those of submodules. It also assigns a port to the worktree.
package supply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/covendir"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/rescue"
)

// includeFile lists the files that are copied from the main checkout to a new worktree, in the format of
// .gitignore. It is at the top of the main checkout.
const includeFile = ".worktreeinclude"

// An Included lists the ignored files that were copied from the main checkout to a worktree.
type Included struct {
	Files    []string `json:"files"`              // copies, with slashes
	Warnings []string `json:"warnings,omitempty"` // about files that were not copied; see Announced
}

func includedPath(w *repo.Worktree) string { return w.StatePath("include.json") }

// IncludedFiles returns the files that were copied from the main checkout to the worktree.
func IncludedFiles(w *repo.Worktree) (Included, error) {
	var done Included
	err := file.ReadJSON(includedPath(w), &done)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return done, fmt.Errorf("read what %s got from the checkout: %w", w.TaskID, err)
	}
	return done, nil
}

// Announced removes the warnings from the record after a person has seen them.
func Announced(w *repo.Worktree, done Included) error {
	done.Warnings = nil
	return file.WriteJSON(includedPath(w), done)
}

// Into adds submodules and copies of ignored files to a worktree that is not ready yet. If something is not
// available, it records a warning, because the task can start without it.
func Into(ctx context.Context, w *repo.Worktree, start string) error {
	done := Included{Files: []string{}}
	var err error
	if done.Warnings, err = populateSubmodules(ctx, w, start); err != nil {
		return fmt.Errorf("fill the submodules: %w", err)
	}
	named, err := include(ctx, w, &done)
	if err != nil || !named && len(done.Warnings) == 0 {
		return err
	}
	return file.WriteJSON(includedPath(w), done)
}

// include copies the files that includeFile selects. named reports whether includeFile exists.
func include(ctx context.Context, w *repo.Worktree, done *Included) (named bool, err error) {
	rules, err := regularfile.ReadIn(w.Repo.Supplier().Root, includeFile, covendir.MaxIgnore)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		done.Warnings = append(done.Warnings, fmt.Sprintf("%s was not read: %v", includeFile, err))
		return true, nil
	}
	names, err := includable(ctx, w, rules)
	if err == nil {
		err = copyIncluded(w, names, done)
	}
	if err != nil {
		return true, fmt.Errorf("copy what %s names: %w", includeFile, err)
	}
	failpoint.Point("include.copied")
	return true, nil
}

// includable lists the files in the main checkout that match rules and that git ignores both there and in
// the worktree. A file that the worktree does not ignore would become part of the task's change.
func includable(ctx context.Context, w *repo.Worktree, rules []byte) ([]string, error) {
	ix, err := content.Open(w, w.Git(), content.CommitIndex)
	if err != nil {
		return nil, err
	}
	defer ix.Drop()
	file := filepath.Join(ix.Dir, "include")
	if err := os.WriteFile(file, rules, 0o600); err != nil {
		return nil, err
	}
	names, err := w.Repo.Supplier().RootGit().Fields(ctx, "ls-files", "-z", "-o", "-i", "--exclude-from="+file)
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return strings.HasSuffix(name, "/") || isPrivate(name) || hidesFile(w.Repo, name)
	})
	if names, err = content.IgnoredBy(ctx, w.Repo.Supplier().RootGit(), names); err != nil {
		return nil, err
	}
	names, err = content.IgnoredBy(ctx, ix.Git, names)
	slices.Sort(names)
	return names, err
}

// isPrivate reports whether a path belongs to git, coven or the tracker.
func isPrivate(name string) bool {
	elements := strings.Split(name, "/")
	return slices.Contains([]string{".coven", ".beads"}, elements[0]) || slices.ContainsFunc(elements, file.IsGitDir)
}

// hidesFile reports whether the programs of tasks must not read a file in the main checkout.
func hidesFile(r *repo.Repo, name string) bool {
	return r.Hidden != nil && r.Hidden(filepath.Join(r.Supplier().Root, filepath.FromSlash(name)))
}

// copyIncluded copies files until their total size reaches the limit.
func copyIncluded(w *repo.Worktree, names []string, done *Included) error {
	from, err := os.OpenRoot(w.Repo.Supplier().Root)
	if err != nil {
		return err
	}
	defer from.Close() //nolint:errcheck // read only
	to, err := os.OpenRoot(w.Path)
	if err != nil {
		return err
	}
	defer to.Close() //nolint:errcheck // the files in it are closed
	left, large := int64(rescue.IncludeCap), []string(nil)
	for _, name := range names {
		n, err := copyInto(to, from, name, left)
		switch {
		case errors.Is(err, errNotCopied):
			continue
		case errors.As(err, new(*regularfile.SizeError)):
			large = append(large, name)
			continue
		case err != nil:
			done.Warnings = append(done.Warnings, fmt.Sprintf("%s was not copied into the worktree: %v", name, err))
			continue
		}
		left -= n
		done.Files = append(done.Files, name)
	}
	if len(large) > 0 {
		done.Warnings = append(done.Warnings, fmt.Sprintf("%s selects more than %d MB; not copied into the worktree: %s", includeFile, rescue.IncludeCap>>20, listed(large)))
	}
	return nil
}

// listed joins the first names of a list for display.
func listed(names []string) string {
	const most = 5
	if more := len(names) - most; more > 0 {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(names, ", ")
}

// errNotCopied means that there is no regular file to copy, or that the destination exists.
var errNotCopied = errors.New("not copied")

// copyInto copies a regular file of at most limit bytes to the same path in another directory, with its
// permissions. It follows no links and replaces nothing.
func copyInto(to, from *os.Root, name string, limit int64) (n int64, err error) {
	info, err := from.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return 0, cmp.Or(notExist(err), errNotCopied)
	}
	if info.Size() > limit {
		return 0, &regularfile.SizeError{Max: limit}
	}
	in, err := from.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return 0, notExist(err)
	}
	defer in.Close() //nolint:errcheck // read only
	if opened, err := in.Stat(); err != nil || !os.SameFile(opened, info) {
		return 0, cmp.Or(err, errNotCopied)
	}
	if err := plainParents(to, path.Dir(name)); err != nil {
		return 0, err
	}
	out, err := to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return 0, errNotCopied
	}
	if err != nil {
		return 0, err
	}
	n, err = io.Copy(out, io.LimitReader(in, limit))
	err = errors.Join(err, out.Chmod(info.Mode().Perm()), out.Close())
	if err != nil {
		return 0, errors.Join(err, to.Remove(name))
	}
	return n, nil
}

// notExist replaces fs.ErrNotExist with errNotCopied.
func notExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errNotCopied
	}
	return err
}

// plainParents creates the parent directories of a file. It fails if one of them is a link or a file.
func plainParents(to *os.Root, dir string) error {
	if dir == "." {
		return nil
	}
	if err := plainParents(to, path.Dir(dir)); err != nil {
		return err
	}
	info, err := to.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return to.Mkdir(dir, 0o755)
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory there", dir)
	}
	return nil
}
