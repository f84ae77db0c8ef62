package task

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/process/failpoint"
)

// attempts limits the attempts to make a change when programs that ignore the lock
// keep writing the file.
const attempts = 10

var errRaced = errors.New("the file changed meanwhile")

// update changes the file under the lock. It writes only if edit succeeds and
// changes something.
func (f *File) update(ctx context.Context, edit func(*document) error) error {
	unlock, err := f.lock(ctx)
	if err != nil {
		return fmt.Errorf("lock tasks: %w", err)
	}
	defer unlock()
	for range attempts {
		err = f.attempt(ctx, edit)
		if !errors.Is(err, errRaced) {
			return err
		}
	}
	return fmt.Errorf("write tasks: %s: another program keeps changing it: %w", f.path, err)
}

func (f *File) attempt(ctx context.Context, edit func(*document) error) error {
	d, was, err := f.load(ctx)
	if err != nil {
		return err
	}
	if err := edit(d); err != nil || !d.changed {
		return err
	}
	if err := f.replace(d, was); err != nil {
		return fmt.Errorf("write tasks: %w", err)
	}
	return nil
}

// replace replaces the file. It follows a symbolic link, and keeps the mode.
func (f *File) replace(d *document, was fs.FileInfo) (err error) {
	path, err := f.target()
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := sweep(path); err != nil {
		return err
	}
	pending, err := renameio.NewPendingFile(path, renameio.WithTempDir(dir),
		renameio.WithPermissions(0o644), renameio.WithExistingPermissions())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pending.Cleanup()) }()
	if err := f.rewrite(d, was, pending); err != nil {
		return err
	}
	if !same(path, was) {
		return errRaced
	}
	failpoint.Point("task.before.rename")
	if err := pending.CloseAtomicallyReplace(); err != nil {
		return err
	}
	failpoint.Point("task.after.rename")
	return regularfile.SyncDir(dir)
}

// rewrite writes the document. It copies overlong lines from the file that was
// read.
func (f *File) rewrite(d *document, was fs.FileInfo, to io.Writer) error {
	if len(d.longLines) == 0 {
		return d.writeTo(to, nil)
	}
	from, is, err := f.open()
	if err != nil {
		return err
	}
	if from == nil {
		return errRaced
	}
	defer from.Close() //nolint:errcheck // read only
	if !os.SameFile(is, was) || is.Size() != was.Size() || !is.ModTime().Equal(was.ModTime()) {
		return errRaced
	}
	return d.writeTo(to, from)
}

// target returns the path of the file, with symbolic links resolved. It rejects a link
// to a missing file, because writing would replace the link.
func (f *File) target() (string, error) {
	path, err := filepath.EvalSymlinks(f.path)
	if !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	if _, err := os.Lstat(f.path); err == nil {
		return "", fmt.Errorf("%s is a symbolic link to a file that does not exist", f.path)
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(f.path))
	return filepath.Join(dir, filepath.Base(f.path)), err
}

// same reports whether the file has not been replaced or changed since it was read.
func same(path string, was fs.FileInfo) bool {
	is, err := os.Stat(path)
	if was == nil || err != nil {
		return was == nil && errors.Is(err, fs.ErrNotExist)
	}
	return os.SameFile(is, was) && is.Size() == was.Size() && is.ModTime().Equal(was.ModTime())
}

// sweep removes temporary files of a killed writer. The lock
// guarantees that no process is using one.
func sweep(path string) error {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), "."+filepath.Base(path))
		if !ok || digits == "" || strings.Trim(digits, "0123456789") != "" || !e.Type().IsRegular() {
			continue
		}
		if err := os.Remove(filepath.Join(filepath.Dir(path), e.Name())); err != nil {
			return err
		}
	}
	return nil
}
