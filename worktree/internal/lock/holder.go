package lock

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

// A Holder identifies the process that holds a lock. If coven was killed but its git child still runs, PID
// is that of the killed coven.
type Holder struct {
	PID   int       `json:"pid"`
	Host  string    `json:"host"`
	Since time.Time `json:"since"`
	What  string    `json:"what"`            // "land T"
	Doing string    `json:"doing,omitempty"` // current work of a landing: "runs its checks"
}

// maxHolder is larger than any encoded holder.
const maxHolder = 1 << 16

// HolderOf returns the holder according to a lock file. The bool reports whether the lock is held. The
// Holder is zero while it is being written.
func HolderOf(path string) (Holder, bool) {
	file, err := os.Open(path)
	if err != nil {
		return Holder{}, false // it was never locked
	}
	defer func() { _ = file.Close() }()
	// Use a shared lock, so that concurrent queries do not block each other.
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		_ = syscall.Flock(int(file.Fd()), syscall.LOCK_UN)
		return Holder{}, false
	}
	var holder Holder
	// When a shorter record replaces a longer one, the rest of the latter remains for a moment.
	if json.NewDecoder(io.LimitReader(file, maxHolder)).Decode(&holder) != nil {
		return Holder{}, true
	}
	return holder, true
}

// sign writes the holder to the lock file. This is only information: the lock does not depend on it.
func (l *Lock) sign(operation string) {
	host, _ := os.Hostname() // an empty name is fine
	l.holder = Holder{PID: os.Getpid(), Host: host, Since: time.Now().Round(0), What: operation}
	l.record()
}

// SetDoing records the holder's current work in the lock file.
func (l *Lock) SetDoing(what string) {
	l.holder.Doing = what
	l.record()
}

func (l *Lock) record() {
	raw, err := json.Marshal(l.holder)
	if err != nil {
		return
	}
	if n, err := l.file.WriteAt(append(raw, '\n'), 0); err == nil {
		_ = l.file.Truncate(int64(n))
	}
}
