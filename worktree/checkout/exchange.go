package checkout

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// errNoExchange means that the file system cannot exchange two paths atomically.
var errNoExchange = errors.New("this file system cannot exchange two paths at once")

// A place is a name in an open directory. Operations on it do not follow symbolic links.
type place struct {
	dir  int
	name string
}

// at opens the parent directory of a path below top. It does not follow symbolic links, because their
// targets are not in the checkout.
func at(top, path string) (place, func(), error) {
	flags := unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC
	fd, err := unix.Open(top, flags, 0)
	if err != nil {
		return place{}, nil, &os.PathError{Op: "open", Path: top, Err: err}
	}
	elements := strings.Split(path, "/")
	for _, element := range elements[:len(elements)-1] {
		next, err := unix.Openat(fd, element, flags|unix.O_NOFOLLOW, 0)
		_ = unix.Close(fd)
		if err != nil {
			return place{}, nil, &os.PathError{Op: "open", Path: top + "/" + path, Err: err}
		}
		fd = next
	}
	return place{dir: fd, name: elements[len(elements)-1]}, func() { _ = unix.Close(fd) }, nil
}

// between runs an operation on a path below from and the path as below to.
func between(from, path, to, as string, run func(from, to place) error) error {
	a, done, err := at(from, path)
	if err != nil {
		return err
	}
	defer done()
	b, done2, err := at(to, as)
	if err != nil {
		return err
	}
	defer done2()
	if err := run(a, b); err != nil {
		return &os.LinkError{Op: "rename", Old: from + "/" + path, New: to + "/" + as, Err: err}
	}
	return nil
}

// swap exchanges two paths.
func (c *Checkout) swap(from, to place) error {
	if c.exchange != nil {
		return c.exchange(from, to)
	}
	return unsupported(exchangeAt(from, to))
}

// move renames a file and fails if the new name exists.
func move(from, to place) error {
	err := unsupported(moveAt(from, to))
	if !errors.Is(err, errNoExchange) {
		return err
	}
	if err := unix.Linkat(from.dir, from.name, to.dir, to.name, 0); err != nil {
		return err
	}
	return unix.Unlinkat(from.dir, from.name, 0)
}

// replace replaces the file to with from. It first links the old file to aside. The path exists all the
// time.
func replace(from, to, aside place) error {
	if err := unix.Linkat(to.dir, to.name, aside.dir, aside.name, 0); err != nil {
		return err
	}
	return unix.Renameat(from.dir, from.name, to.dir, to.name)
}

func unsupported(err error) error {
	for _, known := range []error{unix.EINVAL, unix.ENOSYS, unix.ENOTSUP, unix.EOPNOTSUPP} {
		if errors.Is(err, known) {
			return fmt.Errorf("%w (%w)", errNoExchange, err)
		}
	}
	return err
}
