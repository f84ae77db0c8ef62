// Package plain opens files that are files. What a repository has under the name of
// one may be a pipe: whoever opens that would wait for somebody to write.
package plain

import (
	"errors"
	"os"
	"syscall"
)

const flags = os.O_RDONLY | syscall.O_NONBLOCK

// Open opens a file to read it.
func Open(file string) (*os.File, error) {
	f, err := os.OpenFile(file, flags, 0)
	if err != nil {
		return nil, err
	}
	return checked(f)
}

// OpenIn is Open of a file in a directory: no link leads out of that.
func OpenIn(dir, name string) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // read only
	f, err := root.OpenFile(name, flags, 0)
	if err != nil {
		return nil, err
	}
	return checked(f)
}

func checked(f *os.File) (*os.File, error) {
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a file")
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
