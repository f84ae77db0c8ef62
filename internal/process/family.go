package process

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"
)

// observePause is the interval at which a family is observed. Reading the process table
// takes about a millisecond.
const observePause = 200 * time.Millisecond

// family finds a process tree in the process table, without a namespace or a
// subreaper. A process belongs to the family if its parent does or if it shares a
// session with a member, and remains a member until it ends.
//
// The table is read every observePause. A process that starts its own session, and
// whose parent ends before the next read, is not found.
type family struct {
	root int // ancestor of all members, not a member itself
	list func() (processTable, error)
	kill func(pid int, signal syscall.Signal) error

	mu   sync.Mutex
	seen familyState
}

// familyState is the last known state of a family.
type familyState struct {
	members  map[int]int64 // living members, with their start times
	sessions map[int]bool  // sessions of members
	groups   map[int]bool  // groups of members
}

// newFamily returns the family with the given main process below this process. main
// leads a session and a group, whose number is not reused while a member lives.
func newFamily(main int) *family {
	only := map[int]bool{main: true}
	return &family{
		root: os.Getpid(), list: processes, kill: syscall.Kill, seen: familyState{sessions: only, groups: only},
	}
}

// followFamily returns a family that is observed continuously.
func followFamily(main int) *family {
	f := newFamily(main)
	go f.follow()
	return f
}

// follow reads the table repeatedly for the life of this process, so that members are
// known when their parents end.
func (f *family) follow() {
	for range time.Tick(observePause) {
		f.mu.Lock()
		f.update()
		f.mu.Unlock()
	}
}

// signal signals all members by process group, which includes members that were forked
// concurrently.
func (f *family) signal(signal syscall.Signal) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.update()
	for group := range f.seen.groups {
		_ = f.kill(-group, signal) // ESRCH: it has ended
	}
}

// lingers reports whether a member is alive that this process may signal. Set-uid
// programs are not waited for.
func (f *family) lingers() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.update() {
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

// update updates the state from the process table, and reports whether it could read it.
// It forgets sessions and groups without living members, because their numbers may be
// reused.
func (f *family) update() bool {
	table, err := f.list()
	if err != nil {
		return false
	}
	f.seen = f.seen.next(table, f.root)
	return true
}

// next finds the family in a newer table.
func (k familyState) next(table processTable, root int) familyState {
	belongs := k.find(table, root)
	found := familyState{members: map[int]int64{}, sessions: map[int]bool{}, groups: map[int]bool{}}
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
		if info.group != 0 && info.group != outside.group { // otherwise it was just forked
			found.groups[info.group] = true
		}
	}
	return found
}

// find returns the members in a table, including dead ones.
func (k familyState) find(table processTable, root int) map[int]bool {
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

// endFamily kills the family of a shim that ended before its tree. It gives up after
// lastResort.
func endFamily(main int) {
	f := newFamily(main)
	f.root = -1 // no process
	for end := time.Now().Add(lastResort); f.lingers() && time.Now().Before(end); {
		f.signal(syscall.SIGKILL)
		<-time.After(killPause)
	}
}
