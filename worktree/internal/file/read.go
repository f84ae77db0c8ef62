package file

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/coven-run/coven/internal/file/regularfile"
)

// Read returns the content of a regular file of at most limit bytes. It does not follow links or
// read pipes.
func Read(path string, limit int64) ([]byte, error) {
	file, err := Open(path, limit)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	raw, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(raw)) > limit {
		err = fmt.Errorf("%s has become larger than %d bytes", path, limit)
	}
	return raw, err
}

// Open opens a regular file of at most limit bytes. It does not follow links or wait for pipes.
func Open(path string, limit int64) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && (!info.Mode().IsRegular() || info.Size() > limit) {
		err = fmt.Errorf("%s is not a file of at most %d bytes", path, limit)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// ReadIfExists returns the content of a file, or "" if it does not exist.
func ReadIfExists(path string) (string, error) {
	raw, err := readOwn(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(raw), err
}

// maxOwn limits the files of coven, of the user and of git that are read as a whole. The largest is the index
// of git.
const maxOwn = 512 << 20

// readOwn reads a file that agents cannot write if the sandbox contains them.
func readOwn(path string) ([]byte, error) {
	raw, err := regularfile.Read(path, maxOwn)
	if errors.Is(err, regularfile.ErrNotFile) || errors.As(err, new(*regularfile.SizeError)) {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return raw, err
}
