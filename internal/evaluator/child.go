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

// What a file may use.
const (
	maxTime   = 500 * time.Millisecond // of the processor
	maxMemory = 128 << 20
	maxInput  = 64 << 20 // of all files
	maxCalls  = 1000     // that are in progress
)

// Why the child ended.
const (
	exitBroken = 64 // and Go's own for a crash is 2
	exitTime   = 65
	exitMemory = 66
)

// Main is the child: it evaluates the files of the request that in has, in order, and writes a
// line about each. It returns an exit code.
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
			return exitBroken // nobody reads it
		}
	}
	return 0
}

// guard interrupts files that use too much, and ends the process if that does not help.
type guard struct {
	mu      sync.Mutex
	stop    func(why any) // the file that is running; nil: none is
	since   time.Duration // of the processor
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
		runtime.GC() // what it used must not count for the next one
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
	case used > 2*maxTime: // it did not stop: a built-in function runs
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

// processorTime returns how long this process has run.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
