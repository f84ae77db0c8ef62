package evaluator

import (
	"encoding/json"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"syscall"
	"time"
)

// Limits for a file.
const (
	maxTime   = 500 * time.Millisecond // processor time
	maxMemory = 128 << 20
	maxInput  = 64 << 20 // size of all files
	maxCalls  = 1000     // depth of nested calls
)

// Exit codes of the child.
const (
	exitBroken = 64 // 2 is Go's own exit code for a crash
	exitTime   = 65
	exitMemory = 66
)

// Main is the child process. It evaluates the files of the request in in, in order, and writes one
// line for each. It returns an exit code.
func Main(in io.Reader, out io.Writer) int {
	var r request
	if err := json.NewDecoder(io.LimitReader(in, maxInput)).Decode(&r); err != nil {
		return exitBroken
	}
	debug.SetMemoryLimit(2 * maxMemory)
	if err := restrict(time.Duration(len(r.Names)+1) * 4 * maxTime); err != nil {
		return exitBroken
	}
	g := &guard{}
	go g.watch()
	encoder := json.NewEncoder(out)
	for _, name := range r.Names {
		if encoder.Encode(reply{name, g.evaluate(r.Files, name)}) != nil {
			return exitBroken // the parent is gone
		}
	}
	return 0
}

// guard interrupts files that exceed a limit, and ends the process if that does not help.
type guard struct {
	mu      sync.Mutex
	stop    func(why any) // interrupts the running file; nil if none is running
	since   time.Duration // processor time at the file's start
	stopped bool
}

func (g *guard) evaluate(files map[string]string, name string) Result {
	p := newProgram(files)
	g.mu.Lock()
	g.stop, g.since, g.stopped = p.vm.Interrupt, processorTime(), false
	g.mu.Unlock()
	result := p.evaluate(name)
	g.mu.Lock()
	stopped := g.stopped
	g.stop = nil
	g.mu.Unlock()
	if stopped {
		runtime.GC() // the file's memory must not count for the next one
	}
	return result
}

const tick = 5 * time.Millisecond

func (g *guard) watch() {
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	for range time.Tick(tick) {
		metrics.Read(heap)
		g.look(processorTime(), heap[0].Value.Uint64())
	}
}

func (g *guard) look(now time.Duration, memory uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	used := now - g.since
	switch {
	case g.stop == nil:
	case used > 2*maxTime: // a built-in function is running and cannot be interrupted
		os.Exit(exitTime)
	case memory > 2*maxMemory:
		os.Exit(exitMemory)
	case used > maxTime && !g.stopped:
		g.stopped = true
		g.stop(tooSlow)
	case memory > maxMemory && !g.stopped:
		g.stopped = true
		g.stop(tooLarge)
	}
}

// processorTime returns the processor time that this process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
