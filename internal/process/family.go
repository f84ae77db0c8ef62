package process

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"
)

// lookPause is how long a family goes unobserved. A look takes about a millisecond.
const lookPause = 200 * time.Millisecond

// family is a tree as the process table shows it, where no namespace holds it and
// no orphan is adopted. A process belongs to it when its parent does, when it
// shares a session with one that does, and then for as long as it lives.
//
// The table is looked at every lookPause. A process that starts a session of its own,
// and whose parent ends before the next look, is not found.
type family struct {
	root int // whose descendants they are; not one of them
	list func() (processTable, error)
	kill func(pid int, signal syscall.Signal) error

	mu   sync.Mutex
	seen kin
}

// kin is what is known of a family from the last look.
type kin struct {
	members  map[int]int64 // the living, with the time they started
	sessions map[int]bool  // in which there was one of them
	groups   map[int]bool  // likewise
}

// newFamily is the tree below this process whose main process is that one. Main
// leads a session and a group: their number is no other's as long as one of them
// lives.
func newFamily(main int) *family {
	only := map[int]bool{main: true}
	return &family{
		root: os.Getpid(), list: processes, kill: syscall.Kill, seen: kin{sessions: only, groups: only},
	}
}

// followFamily is a family that is observed from now on.
func followFamily(main int) *family {
	f := newFamily(main)
	go f.follow()
	return f
}

// follow looks at the table for as long as this process lives, so that members are
// known when their parents end.
func (f *family) follow() {
	for range time.Tick(lookPause) {
		f.mu.Lock()
		f.look()
		f.mu.Unlock()
	}
}

// signal signals all members, by groups: a group is reached whole, with those that
// were forked meanwhile.
func (f *family) signal(signal syscall.Signal) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.look()
	for group := range f.seen.groups {
		_ = f.kill(-group, signal) // ESRCH: it is gone
	}
}

// lingers reports whether a member is alive that this process may end: what a set-uid
// program became is not waited for.
func (f *family) lingers() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.look() {
		for pid := range f.seen.members {
			if !errors.Is(f.kill(pid, 0), syscall.EPERM) {
				return true
			}
		}
		return false
	}
	for group := range f.seen.groups {
		if f.kill(-group, 0) == nil {
			return true
		}
	}
	return false
}

// look brings what is known up to date, and reports whether it could. A session or a
// group without a living member is forgotten: its number may become another's.
func (f *family) look() bool {
	table, err := f.list()
	if err != nil {
		return false
	}
	f.seen = f.seen.next(table, f.root)
	return true
}

// next finds the family in a newer table.
func (k kin) next(table processTable, root int) kin {
	belongs := k.find(table, root)
	found := kin{members: map[int]int64{}, sessions: map[int]bool{}, groups: map[int]bool{}}
	outside := table[root]
	for pid := range belongs {
		info := table[pid]
		if info.zombie {
			continue
		}
		found.members[pid] = info.started
		if info.session != 0 && info.session != outside.session {
			found.sessions[info.session] = true
		}
		if info.group != 0 && info.group != outside.group { // else it was forked right now
			found.groups[info.group] = true
		}
	}
	return found
}

// find returns the members that a table shows, dead ones too.
func (k kin) find(table processTable, root int) map[int]bool {
	belongs, sessions := map[int]bool{}, map[int]bool{0: false, table[root].session: false}
	for session := range k.sessions {
		sessions[session] = true
	}
	for grown := true; grown; {
		grown = false
		for pid, info := range table {
			started, known := k.members[pid]
			known = known && started == info.started
			related := info.parent == root || belongs[info.parent] || sessions[info.session]
			if pid == root || belongs[pid] || !known && !related {
				continue
			}
			belongs[pid], grown = true, true
			if _, decided := sessions[info.session]; !decided {
				sessions[info.session] = true
			}
		}
	}
	return belongs
}

// endFamily kills the family of a shim that is gone before its tree, in its place.
// What cannot be killed is given up after lastResort.
func endFamily(main int) {
	f := newFamily(main)
	f.root = -1 // nobody
	for end := time.Now().Add(lastResort); f.lingers() && time.Now().Before(end); {
		f.signal(syscall.SIGKILL)
		<-time.After(killPause)
	}
}
