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

// lockPoll is how often a lock that is held is tried again.
const lockPoll = 100 * time.Millisecond

// errLocked means that another process holds a lock.
var errLocked = errors.New("locked")

// dirLock is a lock as npm's proper-lockfile takes it: a directory that exists while
// the lock is held. Its modification time tells who holds it, and that the holder lives.
type dirLock struct {
	path  string
	taken time.Time // modification time of the directory
}

// tryLock takes a lock. One that is older than stale is removed first: its holder died.
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
			_ = os.Remove(path) // fails if it is not an empty directory; then Mkdir does, too
		}
	}
	return nil, errLocked
}

// waitLock takes a lock, or returns ctx's error, or errLocked once enough, which may be
// nil, reports that the lock is not needed any more.
func waitLock(ctx context.Context, path string, stale time.Duration, enough func() bool) (*dirLock, error) {
	var lock *dirLock
	err := poll(ctx, enough, func() (err error) { lock, err = tryLock(path, stale); return err })
	return lock, err
}

// poll calls try until it does not return errLocked.
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

// held reports whether nobody has taken the lock away.
func (l *dirLock) held() bool {
	info, err := os.Stat(l.path)
	return err == nil && info.ModTime().Equal(l.taken)
}

func (l *dirLock) release() {
	if l.held() {
		_ = os.Remove(l.path) // what is left expires
	}
}

// refreshLocks are the locks of a refresh.
type refreshLocks struct {
	ours *os.File // the CLI's directory, locked between processes of coven
	cli  []*dirLock
}

// lock takes the locks of a refresh in the CLI's order, and before them one that only
// coven takes: it ends with its process, and so decides between several covens that find
// the lock of a dead process. enough ends the wait: another process has refreshed. Then
// the locks are empty.
func (o *oauth) lock(ctx context.Context, enough func() bool) (*refreshLocks, error) {
	locks := &refreshLocks{}
	err := locks.take(ctx, o.dir, enough)
	if errors.Is(err, errLocked) { // enough
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

// takeCLI takes the locks of the CLI: its present one, and the one of former versions,
// which is beside the directory and may be impossible to make.
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

// tryFlock locks a directory. Some network file systems cannot: that is no reason to fail.
func tryFlock(dir *os.File) error {
	if errors.Is(syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK) {
		return errLocked
	}
	return nil
}

// held reports whether nobody has taken the locks away.
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
