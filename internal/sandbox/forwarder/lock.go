package forwarder

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// lockPoll is the interval at which acquiring a held lock is retried.
const lockPoll = 100 * time.Millisecond

// errLocked means that another process holds a lock.
var errLocked = errors.New("locked")

// dirLock is a lock in the format of npm's proper-lockfile: a directory that exists while
// the lock is held. Its modification time identifies the holder and shows that it is alive.
type dirLock struct {
	path  string
	taken time.Time // modification time of the directory
}

// tryLock acquires a lock. It first removes a lock that is older than stale, because its holder is dead.
func tryLock(path string, stale time.Duration) (*dirLock, error) {
	for range 2 {
		err := os.Mkdir(path, 0o755)
		if err == nil {
			info, err := os.Stat(path)
			if err != nil {
				return nil, err
			}
			return &dirLock{path, info.ModTime()}, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		info, err := os.Stat(path)
		if err == nil && time.Since(info.ModTime()) <= stale {
			return nil, errLocked
		}
		if err == nil {
			_ = os.Remove(path) // fails if it is not an empty directory, and then Mkdir fails, too
		}
	}
	return nil, errLocked
}

// waitLock waits to acquire a lock. It returns ctx's error, or errLocked once enough
// reports that the lock is not needed any more. enough may be nil.
func waitLock(ctx context.Context, path string, stale time.Duration, enough func() bool) (*dirLock, error) {
	var lock *dirLock
	err := poll(ctx, enough, func() (err error) { lock, err = tryLock(path, stale); return err })
	return lock, err
}

// poll calls try until it returns another error than errLocked or enough returns true.
func poll(ctx context.Context, enough func() bool, try func() error) error {
	ticker := time.NewTicker(lockPoll)
	defer ticker.Stop()
	for {
		err := try()
		if !errors.Is(err, errLocked) || enough != nil && enough() {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// held reports whether the lock has not been taken over by another process.
func (l *dirLock) held() bool {
	info, err := os.Stat(l.path)
	return err == nil && info.ModTime().Equal(l.taken)
}

func (l *dirLock) release() {
	if l.held() {
		_ = os.Remove(l.path) // a leftover lock expires
	}
}

// refreshLocks are the locks of a refresh.
type refreshLocks struct {
	ours *os.File // the CLI's directory, locked among coven processes
	cli  []*dirLock
}

// lock acquires the locks of a refresh in the CLI's order. Before them, it acquires a lock that only
// coven uses. That lock ends with its process, and so arbitrates between several coven processes that find
// the lock of a dead process. When enough returns true because another process has refreshed the login,
// lock returns empty locks.
func (o *oauth) lock(ctx context.Context, enough func() bool) (*refreshLocks, error) {
	locks := &refreshLocks{}
	err := locks.take(ctx, o.dir, enough)
	if errors.Is(err, errLocked) { // enough returned true
		return locks, nil
	}
	if err == nil {
		return locks, nil
	}
	locks.release()
	if ctx.Err() != nil {
		return nil, &loginError{text: "the login is being refreshed by another process", again: true}
	}
	return nil, &loginError{text: "cannot refresh the login: cannot lock it: " + plain(err), again: true}
}

func (l *refreshLocks) take(ctx context.Context, dir string, enough func() bool) error {
	ours, err := os.Open(dir)
	if err != nil {
		return err
	}
	l.ours = ours
	if err := poll(ctx, enough, func() error { return tryFlock(ours) }); err != nil {
		return err
	}
	return poll(ctx, enough, func() error { return l.takeCLI(dir) })
}

// takeCLI acquires the locks of the CLI: the current one, and the one of former versions,
// which is next to the directory and may be impossible to create.
func (l *refreshLocks) takeCLI(dir string) error {
	first, err := tryLock(filepath.Join(dir, refreshLock), refreshLockStale)
	if err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		real = dir
	}
	second, err := tryLock(real+".lock", refreshLockStale)
	if errors.Is(err, errLocked) {
		first.release()
		return err
	}
	l.cli = []*dirLock{first}
	if err == nil {
		l.cli = append(l.cli, second)
	}
	return nil
}

// tryFlock locks a directory. It succeeds on network file systems without support for locks.
func tryFlock(dir *os.File) error {
	if errors.Is(syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK) {
		return errLocked
	}
	return nil
}

// held reports whether the CLI's locks have not been taken over by another process.
func (l *refreshLocks) held() bool {
	for _, lock := range l.cli {
		if !lock.held() {
			return false
		}
	}
	return len(l.cli) > 0
}

func (l *refreshLocks) release() {
	for i := len(l.cli) - 1; i >= 0; i-- {
		l.cli[i].release()
	}
	if l.ours != nil {
		_ = l.ours.Close()
	}
}
