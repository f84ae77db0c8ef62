package worktree

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

// A Holder identifies who holds a lock. If coven was killed but its git child still
// runs, PID is the killed process: the lock is still held for What.
type Holder struct {
	PID   int       `json:"pid"`
	Host  string    `json:"host"`
	Since time.Time `json:"since"`
	What  string    `json:"what"`            // "land T"
	Doing string    `json:"doing,omitempty"` // of a landing: "runs its checks"
}

// maxHolder is larger than any encoded holder.
const maxHolder = 1 << 16

// holderOf uses a shared lock, so that concurrent queries do not block each other.
func holderOf(path string) (Holder, bool) {
	file, err := os.Open(path)
	if err != nil {
		return Holder{}, false // it was never locked
	}
	defer func() { _ = file.Close() }()
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		_ = syscall.Flock(int(file.Fd()), syscall.LOCK_UN)
		return Holder{}, false
	}
	var holder Holder
	// A shorter record over a longer one leaves the rest of that behind it for a moment.
	if json.NewDecoder(io.LimitReader(file, maxHolder)).Decode(&holder) != nil {
		return Holder{}, true // the holder is being written, or could not be written
	}
	return holder, true
}

// sign writes the holder to the lock file for information. A failure does not affect
// the lock.
func (l *lock) sign(what string) {
	host, _ := os.Hostname() // an empty name is fine
	l.holder = Holder{PID: os.Getpid(), Host: host, Since: time.Now().Round(0), What: what}
	l.record()
}

// doing adds what the holder does now to the lock file.
func (l *lock) doing(what string) {
	l.holder.Doing = what
	l.record()
}

func (l *lock) record() {
	raw, err := json.Marshal(l.holder)
	if err != nil {
		return
	}
	if n, err := l.file.WriteAt(append(raw, '\n'), 0); err == nil {
		_ = l.file.Truncate(int64(n))
	}
}
