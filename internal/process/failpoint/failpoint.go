// Package failpoint marks the points at which a test may kill coven.
//
// A point is a line between two effects that must survive a kill -9, such as
// "the intent is written" and "the ref has moved". In normal use a point
// costs one comparison.
//
// A test runs a scenario once with TraceEnv set, which lists the points that are reached,
// and then once for each point with Env set. See docs/architecture.md, Crash points.
package failpoint

import (
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// Env is the environment variable that names the point at which the process is killed:
// "land.intent", or "land.intent:2" for the second time it is reached. At a point
// of Unsynced, "NAME:2:lost" also discards the bytes that are not on disk yet, as a
// power failure would, and "NAME:2:torn" discards the second half of them. "NAME:2:stop"
// stops the process until it gets SIGCONT.
const Env = "COVEN_CRASH_POINT"

// TraceEnv is the environment variable that names a file. The name of each
// reached point is appended to it, one per line. Several processes may share it.
const TraceEnv = "COVEN_CRASH_TRACE"

// The variants of a point.
const (
	lost = "lost"
	torn = "torn"
	stop = "stop"
)

var (
	target = parse(os.Getenv(Env))
	trace  = os.Getenv(TraceEnv)
	armed  = target.point != "" || trace != ""

	mu   sync.Mutex
	hits int
)

// selection selects a point and the action there.
type selection struct {
	point string
	hit   int    // 1 for the first
	way   string // variant; empty to kill without discarding bytes
}

// Point kills the process, like kill -9, if Env names this point.
func Point(point string) {
	if armed {
		reach(point, nil, 0)
	}
}

// Unsynced is a Point at which the bytes of file after offset synced are written but
// not on disk yet.
func Unsynced(point string, file *os.File, synced int64) {
	if armed {
		reach(point, file, synced)
	}
}

func reach(point string, file *os.File, synced int64) {
	mu.Lock()
	defer mu.Unlock()
	if trace != "" {
		note(point)
	}
	if point != target.point {
		return
	}
	if hits++; hits != target.hit {
		return
	}
	if target.way == stop {
		stopSelf()
		return
	}
	if file != nil && target.way != "" {
		shorten(file, synced)
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // wait for the signal
}

// stopSelf stops the process until it gets SIGCONT.
func stopSelf() {
	on := make(chan os.Signal, 1)
	signal.Notify(on, syscall.SIGCONT)
	defer signal.Stop(on)
	_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	<-on // this thread may keep running for a moment
}

// note appends to the trace immediately, because the process may be killed next.
func note(point string) {
	f, err := os.OpenFile(trace, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err == nil {
		_, err = f.WriteString(point + "\n")
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		panic("crash: trace: " + err.Error()) // otherwise the test would miss a point
	}
}

// shorten discards the bytes of file that a power failure could lose.
func shorten(file *os.File, synced int64) {
	info, err := file.Stat()
	if err == nil {
		size := synced
		if target.way == torn {
			size += (info.Size() - synced) / 2
		}
		err = file.Truncate(size)
	}
	if err != nil {
		panic("crash: cut the tail: " + err.Error())
	}
}

func parse(value string) selection {
	parts := strings.SplitN(value, ":", 3)
	a := selection{point: parts[0], hit: 1}
	if len(parts) > 1 {
		if n, err := strconv.Atoi(parts[1]); err == nil && n > 0 {
			a.hit = n
		}
	}
	if len(parts) > 2 && slices.Contains([]string{lost, torn, stop}, parts[2]) {
		a.way = parts[2]
	}
	return a
}
