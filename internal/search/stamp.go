package search

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// settled is the minimum age of a file's last change for its stamp to count: file systems
// do not tell changes apart that follow each other closely.
const settled = 2 * time.Second

// A stamp identifies a state of a file or directory. The zero value is that of a missing
// file.
type stamp struct {
	inode, size   int64
	mtime, change int64 // in nanoseconds
	mode          uint32
}

// unsettled is the stamp of a file that may change without getting another one. No file
// has it.
var unsettled = stamp{inode: -1}

func (s stamp) regular() bool { return s.mode&unix.S_IFMT == unix.S_IFREG }

// at returns the stamp as it is stored by a process that read the file at that time.
func (s stamp) at(now time.Time) stamp {
	if s.inode != 0 && now.Sub(time.Unix(0, s.change)) < settled {
		return unsettled
	}
	return s
}

// stampOf returns the stamp of a path, relative to a descriptor of its root. It does not
// follow a link.
func stampOf(root int, path string) stamp {
	var st unix.Stat_t
	err := error(unix.EINTR)
	for errors.Is(err, unix.EINTR) {
		err = unix.Fstatat(root, path, &st, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err != nil {
		return stamp{}
	}
	return stamp{int64(st.Ino), st.Size, st.Mtim.Nano(), st.Ctim.Nano(), uint32(st.Mode)} //nolint:unconvert // 16 bits on macOS
}

// stampAll returns the stamps of paths below a root, on all cores.
func stampAll(root *os.File, paths []string) []stamp {
	stamps := make([]stamp, len(paths))
	const chunk = 256
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(paths)/chunk+1) {
		workers.Go(func() {
			for from := range next {
				for i := from; i < min(from+chunk, len(paths)); i++ {
					stamps[i] = stampOf(int(root.Fd()), paths[i])
				}
			}
		})
	}
	for from := 0; from < len(paths); from += chunk {
		next <- from
	}
	close(next)
	workers.Wait()
	return stamps
}
