// Package crash marks the points at which a test may kill coven.
//
// A point is a line between two effects that must survive a kill -9, such as
// "the intent is written" and "the ref has moved". In normal use a point
// costs one string comparison.
package crash

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// Env is the environment variable that names the point to die at: "land.intent",
// or "land.intent:2" for the second time it is reached.
const Env = "COVEN_CRASH_POINT"

var (
	name, count = parse(os.Getenv(Env))
	hits        atomic.Int64
)

// Point kills the process, as kill -9 would, when Env names this point.
func Point(point string) {
	if name == "" || point != name || hits.Add(1) != count {
		return
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // the signal is on its way
}

func parse(value string) (string, int64) {
	point, nth, found := strings.Cut(value, ":")
	if !found {
		return point, 1
	}
	n, err := strconv.ParseInt(nth, 10, 64)
	if err != nil || n < 1 {
		return point, 1
	}
	return point, n
}
