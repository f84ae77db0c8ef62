package e2e_test

import (
	"strings"
	"syscall"
	"testing"
)

// desks returns the processes that connect the covens of a place to the server.
func (p *place) desks() []int { return p.processes("coven-worker\x00desk\x00") }

// TestDeskGone ends covens that wait for a session: with its connection, by a signal, by Ctrl-C. The session goes on, and the next coven waits for it.
func TestDeskGone(t *testing.T) {
	w := newWorld(t, adds("it"), files())
	one := w.newPlace("one").worker()
	run := w.desk.coven("run", "-p", "Add it", "--grimoire", "plain", "--yes")
	w.held("it")
	run.signal(syscall.SIGKILL)
	<-run.ended
	for _, end := range []func(*command){
		func(c *command) {
			_ = syscall.Kill(w.desk.desks()[0], syscall.SIGKILL)
			c.wait(3)
		},
		func(c *command) {
			c.signal(syscall.SIGKILL)
			<-c.ended
		},
		func(c *command) {
			c.signal(syscall.SIGINT)
			w.contains(c.wait(130), "running: on ")
		},
	} {
		w.eventually("nothing is left of the coven", func() bool { return len(w.desk.desks()) == 0 })
		again := w.desk.coven("resume", "p-add-it")
		w.eventually("coven waits for the session", func() bool { return len(w.desk.desks()) == 1 })
		if text := w.desk.coven("status").wait(0); !strings.Contains(text, "running") || strings.Contains(text, "coven resume") {
			t.Error(text)
		}
		end(again)
	}
	again := w.desk.coven("resume", "p-add-it")
	w.release("it")
	again.wait(0)
	w.landed("it")
	if n := strings.Count(one.out.String(), "begin"); n != 1 {
		t.Errorf("the session has begun %d times:\n%s", n, one.out)
	}
}

// TestRunAgain kills coven run while workers have its sessions. One lands before the next coven run, and is shown there; the other one runs. That coven run waits for it.
func TestRunAgain(t *testing.T) {
	all := files()
	for _, id := range []string{"t-1", "t-2"} {
		all[".beads/issues.jsonl"] += `{"_type":"issue","id":"` + id + `","title":"Add ` + id + `","status":"open","issue_type":"task","labels":["grimoire:plain"],"created_at":"2026-01-01T00:00:00Z"}` + "\n"
	}
	w := newWorld(t, adds("t-1", "t-2"), all)
	one := w.newPlace("one").worker()
	run := w.desk.coven("run", "--yes", "-j", "2")
	w.held("t-1")
	w.held("t-2")
	run.signal(syscall.SIGKILL)
	<-run.ended
	w.eventually("nothing is left of the coven", func() bool { return len(w.desk.desks()) == 0 })
	w.release("t-1")
	w.eventually("t-1 has landed", func() bool { return strings.Contains(w.bare("log", "--format=%s", "main"), "Add t-1") })
	w.contains(w.desk.coven("why", "t-1").wait(0), "another machine has landed it as ")
	again := w.desk.coven("run", "--yes", "-j", "2")
	again.says("t-1 +completed: landed")
	w.contains(w.desk.coven("status").wait(0), "running")
	w.release("t-2")
	w.contains(again.wait(0), "t-2  completed: landed")
	w.landed("t-1", "t-2")
	if n := strings.Count(one.out.String(), "begin"); n != 2 {
		t.Errorf("sessions have begun %d times:\n%s", n, one.out)
	}
	if left := w.bare("for-each-ref", "--format=%(refname)", "refs/coven/rescue"); left != "" {
		t.Errorf("the origin keeps %s", left)
	}
}

// TestResumeOn runs a task with --on only once. coven resume --on shows it again, and the workers run its next steps.
func TestResumeOn(t *testing.T) {
	w := newWorld(t, adds("it"), files())
	on := w.server.Address()
	first := w.newPlace("first") // without run.on
	run := first.coven("run", "-p", "Add it", "--grimoire", "asked", "--yes", "--on", on)
	w.eventually("the server has the session", func() bool { return strings.Contains(first.coven("worker", "list", "--on", on).wait(0), "p-add-it") })
	w.contains(first.coven("status").wait(0), "coven resume p-add-it --on "+on)
	run.signal(syscall.SIGINT)
	w.contains(run.wait(130), "next: coven resume p-add-it --on "+on)
	w.newPlace("one").worker()
	w.held("it")
	again := first.coven("resume", "p-add-it", "--on", on)
	w.eventually("coven waits for the session", func() bool { return len(first.desks()) == 1 })
	w.release("it")
	w.contains(again.wait(3), "waiting (review)")
}
