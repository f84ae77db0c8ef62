package process

import (
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const (
	brief  = 100 * time.Millisecond
	stolid = "trap '' TERM; echo up; while :; do sleep 0.02; done"
)

func TestExitCodeAndSignal(t *testing.T) {
	tests := map[string]Exit{
		"exit 0":        {},
		"exit 42":       {Code: 42},
		"kill -9 $$":    {Code: 137, Signal: syscall.SIGKILL},
		"kill -SEGV $$": {Code: 139, Signal: syscall.SIGSEGV},
	}
	contained(t, func(t *testing.T, l *Launcher) {
		for script, want := range tests {
			child := start(t, l, Spec{Argv: shell(script)})
			if got := wait(t, child); got != want {
				t.Errorf("%s: %+v, want %+v", script, got, want)
			}
			child.Stop(errors.New("too late"))
			if got := child.Wait(); got != want {
				t.Errorf("%s: a late stop changed it to %+v", script, got)
			}
		}
	})
}

func TestStopLetsTheProgramFinish(t *testing.T) {
	contained(t, func(t *testing.T, l *Launcher) {
		child := start(t, l, Spec{Argv: shell("trap 'echo bye; exit 9' TERM; echo up; while :; do sleep 0.02; done"), Grace: limit})
		readLine(t, child.Output())
		first, second := errors.New("first"), errors.New("second")
		child.Stop(first)
		child.Stop(second)
		if got := readAll(t, child.Output()); !strings.HasSuffix(got, "bye\n") {
			t.Errorf("got %q", got)
		}
		if exit := wait(t, child); exit != (Exit{Code: 9, Cause: first}) {
			t.Errorf("exit is %+v", exit)
		}
	})
}

// A killed program does nothing more, even if its grace period is long.
func TestKill(t *testing.T) {
	contained(t, func(t *testing.T, l *Launcher) {
		child := start(t, l, Spec{Argv: shell("trap 'echo bye; exit 9' TERM; echo up; while :; do sleep 0.02; done"), Grace: limit})
		readLine(t, child.Output())
		why := errors.New("why")
		child.Kill(why)
		child.Stop(errors.New("too late"))
		if got := readAll(t, child.Output()); got != "" {
			t.Errorf("got %q", got)
		}
		if exit := wait(t, child); exit != (Exit{Code: 137, Signal: syscall.SIGKILL, Cause: why}) {
			t.Errorf("exit is %+v", exit)
		}
	})
}

func TestTermIgnored(t *testing.T) {
	contained(t, func(t *testing.T, l *Launcher) {
		child := start(t, l, Spec{Argv: shell(stolid), Grace: brief})
		readLine(t, child.Output())
		began := time.Now()
		child.Stop(nil)
		if exit := wait(t, child); exit != (Exit{Code: 137, Signal: syscall.SIGKILL, Cause: ErrStopped}) {
			t.Errorf("exit is %+v", exit)
		}
		if took := time.Since(began); took < brief {
			t.Errorf("killed after %v, before the grace was over", took)
		}
	})
}

// A halted program receives TERM, too.
func TestStopWakesTheHalted(t *testing.T) {
	contained(t, func(t *testing.T, l *Launcher) {
		child := start(t, l, Spec{Argv: shell("trap 'exit 9' TERM; (kill -STOP $$; echo up) & while :; do sleep 0.02; done"), Grace: limit})
		readLine(t, child.Output())
		child.Stop(nil)
		if exit := wait(t, child); exit.Code != 9 {
			t.Errorf("exit is %v", exit)
		}
	})
}

// Processes left behind get TERM and time to react.
func TestLeftoversAreAskedFirst(t *testing.T) {
	adopted(t, func(t *testing.T, l *Launcher) {
		l.leftover = limit
		child := start(t, l, Spec{Argv: shell(`
			setsid sh -c 'trap "echo left; exit" TERM; echo ready; while :; do sleep 0.02; done' &
			read go; exit 4`), Grace: limit})
		readLine(t, child.Output())
		must(io.WriteString(child.Stdin(), "\n"))
		if got := readAll(t, child.Output()); !strings.HasSuffix(got, "left\n") {
			t.Errorf("got %q", got)
		}
		if exit := wait(t, child); exit != (Exit{Code: 4}) {
			t.Errorf("exit is %+v", exit)
		}
	})
}

// A stop after the program has ended, while only leftovers live, is not the cause of its
// end.
func TestStopAfterTheProgramEnded(t *testing.T) {
	adopted(t, func(t *testing.T, l *Launcher) {
		l.leftover = limit
		child := start(t, l, Spec{Argv: shell(`
			setsid sh -c 'trap "echo asked; sleep 0.3; exit" TERM; echo ready; while :; do sleep 0.02; done' &
			read go; exit 4`), Grace: limit})
		readLine(t, child.Output())
		must(io.WriteString(child.Stdin(), "\n"))
		for readLine(t, child.Output()) != "asked" { // the shell may report its sleep first
		}
		child.Stop(nil)
		if exit := wait(t, child); exit != (Exit{Code: 4}) {
			t.Errorf("exit is %+v", exit)
		}
	})
}

func TestTimeout(t *testing.T) {
	contained(t, func(t *testing.T, l *Launcher) {
		child := start(t, l, Spec{Argv: shell("while :; do echo busy; sleep 0.01; done"), Timeout: 3 * brief, Idle: limit})
		readAll(t, child.Output())
		if exit := wait(t, child); !errors.Is(exit.Cause, ErrTimeout) {
			t.Errorf("exit is %v", exit)
		}
	})
}

func TestIdle(t *testing.T) {
	contained(t, func(t *testing.T, l *Launcher) {
		child := start(t, l, Spec{Argv: shell("echo once; sleep 1000"), Idle: 3 * brief, Timeout: limit})
		readAll(t, child.Output())
		if exit := wait(t, child); !errors.Is(exit.Cause, ErrIdle) {
			t.Errorf("exit is %v", exit)
		}
	})
}

// A child with unread output is not idle.
func TestUnreadOutputIsNotIdle(t *testing.T) {
	child := start(t, launcher(t, 0), Spec{Argv: shell("echo unread; sleep 1000")})
	eventually(t, "output waits", child.output.pending)
	if child.stopIdle() {
		t.Error("stopped with output unread")
	}
	readLine(t, child.Output())
	if !child.stopIdle() {
		t.Error("not stopped though all was read")
	}
	if exit := wait(t, child); !errors.Is(exit.Cause, ErrIdle) {
		t.Errorf("exit is %v", exit)
	}
}

func TestPauseHoldsTheClocks(t *testing.T) {
	contained(t, func(t *testing.T, l *Launcher) {
		child := start(t, l, Spec{Argv: shell("read x"), Timeout: limit, Idle: limit})
		calls := []struct {
			call func()
			runs bool
		}{{func() {}, true}, {child.Pause, false}, {child.Pause, false}, {child.Resume, false}, {child.Resume, true}}
		for i, c := range calls {
			c.call()
			if timeout, idle := child.clocks.Running(); timeout != c.runs || idle != c.runs {
				t.Errorf("after call %d timeout runs: %t, idle runs: %t", i, timeout, idle)
			}
		}

		child = start(t, l, Spec{Argv: shell("read x"), Timeout: brief})
		child.Pause()
		child.Resume()
		if exit := wait(t, child); !errors.Is(exit.Cause, ErrTimeout) {
			t.Errorf("exit is %v", exit)
		}
	})
}

func TestExitString(t *testing.T) {
	tests := map[string]Exit{
		"exit code 3":                     {Code: 3},
		"ended by SIGTERM: stopped":       {Code: 143, Signal: syscall.SIGTERM, Cause: ErrStopped},
		"ended by signal 50":              {Code: 178, Signal: 50},
		"coven's process launcher failed": {Code: -1, Err: ErrLauncher},
	}
	for want, exit := range tests {
		if got := exit.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if exit.OK() {
			t.Errorf("%s is OK", want)
		}
	}
	if !(Exit{}).OK() {
		t.Error("exit code 0 is not OK")
	}
}

// OnStop is called once before any signal, and not if a program ends by itself.
func TestOnStop(t *testing.T) {
	contained(t, func(t *testing.T, l *Launcher) {
		var stops atomic.Int32
		child := start(t, l, Spec{
			Argv: shell("trap 'echo term; exit 0' TERM; echo up; while :; do sleep 0.02; done"), Grace: limit,
			Timeout: brief, OnStop: func() { stops.Add(1) },
		})
		readLine(t, child.Output())
		said := readLine(t, child.Output())
		if stops.Load() != 1 {
			t.Errorf("the program was told to stop (%q) and OnStop was called %d times", said, stops.Load())
		}
		child.Stop(errors.New("again"))
		if exit := wait(t, child); !errors.Is(exit.Cause, ErrTimeout) || stops.Load() != 1 {
			t.Errorf("%d calls, exit is %+v", stops.Load(), exit)
		}
		child = start(t, l, Spec{Argv: shell("exit 0"), OnStop: func() { t.Error("stopped") }})
		if exit := wait(t, child); !exit.OK() {
			t.Errorf("exit is %+v", exit)
		}
	})
}
