package search

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// settled is the minimum age of a file's last change for a reliable stamp, because file systems do
// not distinguish changes in quick succession.
const settled = 2 * time.Second

// A stamp identifies a state of a file or directory. The zero value belongs to a missing
// file.
type stamp struct {
	inode, size   int64
	mtime, change int64 // in nanoseconds
	mode          uint32
}

// unsettled is stored for a file that may change without changing its stamp. It never equals the
// stamp of a file.
var unsettled = stamp{inode: -1}

func (s stamp) regular() bool { return s.mode&unix.S_IFMT == unix.S_IFREG }

// at returns the stamp to store for a file that was read at the time now.
func (s stamp) at(now time.Time) stamp {
	if s.inode != 0 && now.Sub(time.Unix(0, s.change)) < settled {
		return unsettled
	}
	return s
}

// stampOf returns the stamp of a path, relative to the descriptor of its root. It does not
// follow links.
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

// stampAll returns the stamps of paths below a root. It works in parallel.
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
