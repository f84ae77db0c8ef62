// Package diskusage measures the disk space of files. It does not follow links, opens only
// directories, and stays on the file system of the measured directory. It can therefore
// measure directories that agents write to.
package diskusage

import (
	"context"
	"errors"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// maxDepth limits the depth of directories, because each level keeps one open.
const maxDepth = 256

// Meter measures several places. It counts a file with several names once. The zero value is
// ready to use.
type Meter struct {
	// Unread counts the files and directories that could not be read.
	Unread int

	seen map[inode]bool // files with several names
}

type inode struct{ device, number uint64 }

// Of returns the disk space in bytes of path and everything below it, without the entries of path
// named in except. Files that vanish during the measurement count as empty. The error is that of ctx.
func (m *Meter) Of(ctx context.Context, path string, except ...string) (int64, error) {
	var st unix.Stat_t
	if err := fstatat(unix.AT_FDCWD, path, &st); err != nil {
		m.missed(err)
		return 0, nil
	}
	total := m.file(&st)
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		total += m.dir(ctx, unix.AT_FDCWD, path, uint64(st.Dev), 0, except) //nolint:unconvert // Dev is signed on macOS
	}
	return total, context.Cause(ctx)
}

// dir returns the disk space of a directory's entries.
func (m *Meter) dir(ctx context.Context, parent int, name string, device uint64, depth int, except []string) (total int64) {
	if ctx.Err() != nil {
		return 0
	}
	if depth > maxDepth {
		m.Unread++
		return 0
	}
	fd, err := openDir(parent, name)
	if err != nil {
		m.missed(err)
		return 0
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close() //nolint:errcheck // read only
	for {
		names, err := f.Readdirnames(1024)
		for _, entry := range names {
			if slices.Contains(except, entry) {
				continue
			}
			var st unix.Stat_t
			if err := fstatat(fd, entry, &st); err != nil {
				m.missed(err)
				continue
			}
			if uint64(st.Dev) != device { //nolint:unconvert // Dev is signed on macOS
				continue
			}
			total += m.file(&st)
			if st.Mode&unix.S_IFMT == unix.S_IFDIR {
				total += m.dir(ctx, fd, entry, device, depth+1, nil)
			}
		}
		if err != nil || len(names) == 0 {
			return total // at the end, or the directory was removed
		}
	}
}

// openDir opens a directory. It fails for a pipe or a link that replaced the directory.
func openDir(parent int, name string) (fd int, err error) {
	err = unix.EINTR
	for errors.Is(err, unix.EINTR) {
		fd, err = unix.Openat(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	}
	return fd, err
}

func fstatat(parent int, name string, st *unix.Stat_t) error {
	err := error(unix.EINTR)
	for errors.Is(err, unix.EINTR) {
		err = unix.Fstatat(parent, name, st, unix.AT_SYMLINK_NOFOLLOW)
	}
	return err
}

// missed counts an unreadable file, unless it has vanished.
func (m *Meter) missed(err error) {
	if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, unix.ELOOP) {
		m.Unread++
	}
}

// file returns the disk space of a file itself.
func (m *Meter) file(st *unix.Stat_t) int64 {
	if st.Nlink > 1 && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		at := inode{uint64(st.Dev), st.Ino} //nolint:unconvert // Dev is signed on macOS
		if m.seen[at] {
			return 0
		}
		if m.seen == nil {
			m.seen = map[inode]bool{}
		}
		m.seen[at] = true
	}
	return st.Blocks * 512
}
