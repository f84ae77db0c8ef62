// Package crash marks the points at which a test may kill coven.
//
// A point is a line between two effects that must survive a kill -9, such as
// "the intent is written" and "the ref has moved". In normal use a point
// costs one comparison.
//
// A test plays a story once with TraceEnv set, which lists the points that it
// reaches, and then once for each of them with Env set: see
// docs/architecture.md, Crash points.
package crash

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// Env is the environment variable that names the point to die at: "land.intent",
// or "land.intent:2" for the second time that it is reached. At a point of
// Unsynced "NAME:2:lost" loses the bytes that are not on disk yet, as when the
// power goes, and "NAME:2:torn" the second half of them.
const Env = "COVEN_CRASH_POINT"

// TraceEnv is the environment variable that names a file to which each point
// that is reached adds its name, a line. Several processes may share it.
const TraceEnv = "COVEN_CRASH_TRACE"

// What becomes of bytes that are not on disk when the power goes.
const (
	lost = "lost"
	torn = "torn"
)

var (
	target = parse(os.Getenv(Env))
	trace  = os.Getenv(TraceEnv)
	armed  = target.point != "" || trace != ""

	mu   sync.Mutex
	hits int
)

// aim is where to die, and how.
type aim struct {
	point string
	hit   int // 1 for the first
	tail  string
}

// Point kills the process, as kill -9 would, when Env names this point.
func Point(point string) {
	if armed {
		reach(point, nil, 0)
	}
}

// Unsynced is a Point at which the bytes of file from synced on are written and
// not yet on disk.
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
	if file != nil && target.tail != "" {
		shorten(file, synced)
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // the signal is on its way
}

// note writes the line at once: the process may be killed by its next step.
func note(point string) {
	f, err := os.OpenFile(trace, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err == nil {
		_, err = f.WriteString(point + "\n")
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		panic("crash: trace: " + err.Error()) // the test that wants it would miss a point
	}
}

// shorten takes bytes of file away that a power cut could take.
func shorten(file *os.File, synced int64) {
	info, err := file.Stat()
	if err == nil {
		size := synced
		if target.tail == torn {
			size += (info.Size() - synced) / 2
		}
		err = file.Truncate(size)
	}
	if err != nil {
		panic("crash: cut the tail: " + err.Error())
	}
}

func parse(value string) aim {
	parts := strings.SplitN(value, ":", 3)
	a := aim{point: parts[0], hit: 1}
	if len(parts) > 1 {
		if n, err := strconv.Atoi(parts[1]); err == nil && n > 0 {
			a.hit = n
		}
	}
	if len(parts) > 2 && (parts[2] == lost || parts[2] == torn) {
		a.tail = parts[2]
	}
	return a
}
