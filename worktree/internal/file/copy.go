package file

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/coven-run/coven/internal/file/regularfile"
)

// CopyRegular copies a regular file without following links. A file of more than 512 MB is a
// *regularfile.SizeError.
func CopyRegular(to, from string) (err error) {
	in, err := regularfile.Open(from, syscall.O_NOFOLLOW)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	if info, err := in.Stat(); err != nil || info.Size() > maxOwn {
		return errors.Join(err, &regularfile.SizeError{Max: maxOwn})
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// CopyIfExists copies a file of the repository, if it exists.
func CopyIfExists(from, to string) error {
	info, err := os.Stat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	raw, err := readOwn(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, raw, info.Mode().Perm())
}
