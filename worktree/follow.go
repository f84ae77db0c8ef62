package worktree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/worktree/internal/git"
)

// follow moves index and files from one commit to another and keeps what the
// person changed. It is refused when that is in the way; then nothing moves.
func (c checkout) follow(ctx context.Context, from, to string) error {
	if err := c.ready(ctx); err != nil {
		return err
	}
	changes, err := c.git.Changes(ctx, from, to)
	if err != nil {
		return err
	}
	files, err := c.obstacles(ctx, changes)
	if err != nil {
		return err
	}
	if len(files) > 0 {
		return c.refused(files, nil)
	}
	err = c.patiently(ctx, func() error { return c.git.Run(ctx, "update-index", "-q", "--refresh") })
	if err != nil && git.ExitCode(err) != 1 {
		return err // 1: some files are changed
	}
	return c.readTree(ctx, from, to, changes)
}

// indexTries is how often a checkout's index is asked for that other gits keep
// taking: an editor's `git status` holds it for a moment, again and again.
const indexTries = 20

// patiently runs a git that changes the index, again when it could not: the
// exit code does not say whether the index was taken just then. The git must
// change nothing when it fails, or the same thing again.
func (c checkout) patiently(ctx context.Context, run func() error) error {
	for try := 1; ; try++ {
		err := run()
		if git.ExitCode(err) != 128 || try == indexTries {
			return err
		}
		if busy := c.awaitIndex(ctx); busy != nil {
			return busy
		}
	}
}

func (c checkout) readTree(ctx context.Context, from, to string, changes []git.Change) error {
	if err := c.mark(from, to); err != nil {
		return err
	}
	err := c.patiently(ctx, func() error { return c.git.Run(ctx, "read-tree", "-m", "-u", from, to) })
	if err != nil {
		files, listErr := c.staged(ctx, from, changes)
		// git refuses before it touches anything, but a full disk stops it
		// half way.
		return errors.Join(c.refused(files, err), listErr, c.mend(ctx, from, to))
	}
	return c.unmark()
}

func (c checkout) refused(files []string, cause error) error {
	e := &CheckoutError{
		Path: c.path, Reason: "files there are in the way", Files: files,
		Next: "commit them or move them out of the way in " + c.path,
	}
	if busy, ok := errors.AsType[*CheckoutError](cause); ok {
		return busy
	}
	if cause != nil && len(files) == 0 {
		e.Reason = cause.Error()
		e.Next = "git -C " + quote(c.path) + " status"
	}
	return e
}

// obstacles lists the files that are in the way: those that git does not track
// where the change puts something, and those that the person changed. git
// would overwrite the first if they are ignored, and bring back the second if
// they were deleted.
func (c checkout) obstacles(ctx context.Context, changes []git.Change) ([]string, error) {
	found, err := blockers(ctx, c.git, changes)
	if err != nil {
		return nil, err
	}
	dirty, err := c.git.Fields(ctx, "ls-files", "-z", "-m", "-d")
	if err != nil {
		return nil, err
	}
	deleted := func(change git.Change) bool { // by both
		_, err := os.Lstat(filepath.Join(c.path, change.Path))
		return change.Status == 'D' && err != nil
	}
	for _, change := range changes {
		if touches(dirty, change.Path) && !deleted(change) {
			found = append(found, change.Path)
		}
	}
	return found, nil
}

// staged lists the changes that the person has staged something else for.
func (c checkout) staged(ctx context.Context, from string, changes []git.Change) ([]string, error) {
	names, err := c.git.Fields(ctx, "diff-index", "--cached", "-z", "--name-only", "--no-renames", from)
	var found []string
	for _, change := range changes {
		if touches(names, change.Path) {
			found = append(found, change.Path)
		}
	}
	return found, err
}

// touches reports whether a path is among names, above or below one of them.
func touches(names []string, p string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return name == p || strings.HasPrefix(name, p+"/") || strings.HasPrefix(p, name+"/")
	})
}
