package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// adds returns a scenario in which the agent of the task "Add NAME" is held as NAME, and then makes a file of that name.
func adds(names ...string) string {
	text := "conversations:\n"
	for _, name := range names {
		text += fmt.Sprintf("- match: Add %s\n  turns:\n  - {hold: %s, tools: [{name: write, input: {path: %s, content: \"%s\\n\"}}]}\n  - {text: done}\n", name, name, name, name)
	}
	return text
}

// landed fails unless each task has landed once, and the origin keeps no session.
func (w *world) landed(names ...string) {
	w.Helper()
	log := w.bare("log", "--format=%s", "main")
	for _, name := range names {
		if got := w.bare("show", "main:"+name); got != name {
			w.Errorf("%s contains %q", name, got)
		}
		if n := strings.Count(log, "Add "+name); n != 1 {
			w.Errorf("%s has landed %d times:\n%s", name, n, log)
		}
	}
	if left := w.live(); left != "" {
		w.Errorf("the origin keeps %s", left)
	}
}

// TestStateLost deletes the state of the server while one session waits for a review, one runs and its desk waits for it, and two run whose desks have ended,
// one of them on another machine. Then coven resume hands the latter to the server again.
func TestStateLost(t *testing.T) {
	w := newWorld(t, adds("asked", "waited", "left", "other"), files())
	w.newPlace("one").worker("-j", "2")
	w.newPlace("two").worker("-j", "2")
	w.release("asked")
	w.desk.coven("run", "-p", "Add asked", "--grimoire", "asked", "--yes").wait(3)
	second := w.newPlace("second")
	second.coven("config", "set", "--user", "run.on", w.server.Address()).wait(0)
	waited := w.desk.coven("run", "-p", "Add waited", "--grimoire", "plain")
	left, other := w.desk.coven("run", "-p", "Add left", "--grimoire", "plain"), second.coven("run", "-p", "Add other", "--grimoire", "plain", "--yes")
	for _, name := range []string{"waited", "left", "other"} {
		w.held(name)
	}
	for _, c := range []*command{left, other} {
		c.signal(syscall.SIGINT)
		c.wait(130)
	}

	w.must(w.server.Kill())
	w.must(os.RemoveAll(filepath.Join(filepath.Dir(w.server.Log()), "data")))
	w.must(w.server.Restart(t.Context()))
	again := w.desk.coven("resume")
	for _, name := range []string{"waited", "left", "other"} {
		w.release(name)
	}
	again.wait(0)
	waited.wait(0)
	w.desk.coven("approve", "p-add-asked").wait(0)
	w.landed("asked", "waited", "left", "other")
	second.coven("resume").wait(0)
	for _, p := range []*place{w.desk, second} {
		w.contains(p.coven("status").wait(0), "landed")
	}
}
