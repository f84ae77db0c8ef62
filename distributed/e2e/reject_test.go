package e2e_test

import (
	"net/http"
	"strings"
	"syscall"
	"testing"
)

// rejectable are the first commit of a task that waits for a review.
func rejectable() map[string]string {
	all := files()
	all[".beads/issues.jsonl"] = `{"_type":"issue","id":"t-1","title":"Add it","status":"open","issue_type":"task","labels":["grimoire:asked"],"created_at":"2026-01-01T00:00:00Z"}` + "\n"
	return all
}

// second returns another desk, where a session of the first one is.
func (w *world) second(task string, code int) *place {
	w.Helper()
	p := w.newPlace("second")
	p.coven("config", "set", "--user", "run.on", w.server.Address()).wait(0)
	p.coven("resume", task, "--remote", "origin", "--yes").wait(code)
	return p
}

// TestRejectElsewhere rejects a session at another desk than the one that began it. That one follows, and can run the task again, on the machine that ran the first session.
func TestRejectElsewhere(t *testing.T) {
	w := newWorld(t, adds("it"), rejectable())
	w.release("it")
	one := w.newPlace("one").worker()
	w.desk.coven("run", "t-1", "--yes").wait(3)
	second := w.second("t-1", 3)
	w.contains(second.coven("reject", "t-1", "--reason", "too plain").wait(0), "everything it made is stored as refs/coven/rescue/t-1/")
	if text := second.coven("status").wait(0); strings.Contains(text, "worktrees") {
		t.Errorf("the worktree is left:\n%s", text)
	}
	w.contains(w.desk.coven("why", "t-1").wait(0), "it ended on another machine, without landing: rejected: too plain", "next: coven cancel t-1")
	w.contains(w.desk.coven("status").wait(0), "coven cancel t-1")
	w.desk.coven("cancel", "t-1").wait(0)
	w.contains(w.desk.coven("why", "t-1").wait(0), "rejected: too plain", "next: coven run t-1")
	w.contains(w.desk.coven("task", "show", "t-1").wait(0), "open")
	w.desk.coven("run", "t-1", "--yes").wait(3)
	w.contains(w.ask(http.MethodGet, "requests", http.StatusOK), "too plain")
	w.desk.coven("approve", "t-1").wait(0)
	w.landed("it")
	if n := strings.Count(one.out.String(), "t-1: begin"); n > 5 {
		t.Errorf("the machine has tried %d times:\n%s", n, one.out)
	}
}

// TestCancelLate cancels a session at the first desk after another one has cancelled it and runs the task again. The new session goes on.
func TestCancelLate(t *testing.T) {
	w := newWorld(t, adds("it"), rejectable())
	w.release("it")
	one := w.newPlace("one").worker()
	w.desk.coven("run", "t-1", "--yes").wait(3)
	second := w.second("t-1", 3)
	second.coven("cancel", "t-1").wait(0)
	one.signal(syscall.SIGTERM)
	one.wait(0)
	again := second.coven("run", "t-1", "--yes")
	list := func() string { return second.coven("worker", "list", "--on", w.server.Address()).wait(0) }
	w.eventually("the new session waits for a machine", func() bool { return tells(list(), "t-1 +new") })
	w.desk.coven("cancel", "t-1").wait(0)
	w.contains(w.desk.coven("why", "t-1").wait(0), "cancelled: by ann")
	if text := list(); !tells(text, "t-1 +new") {
		t.Errorf("the new session was recalled:\n%s", text)
	}
	w.newPlace("two").worker()
	again.wait(3)
	w.desk.coven("resume", "t-1", "--remote", "origin").wait(3)
	w.desk.coven("approve", "t-1").wait(0)
	w.landed("it")
	second.coven("resume").wait(0)
	w.contains(second.coven("status").wait(0), "landed")
}

// TestCancelWatched cancels a session at another desk while a machine runs it and the first desk waits for it. Then the first desk can end it and run the task again.
func TestCancelWatched(t *testing.T) {
	w := newWorld(t, adds("it"), rejectable())
	w.newPlace("one").worker()
	run := w.desk.coven("run", "t-1", "--yes")
	w.held("it")
	second := w.newPlace("second")
	second.coven("config", "set", "--user", "run.on", w.server.Address()).wait(0)
	watch := second.coven("resume", "t-1", "--remote", "origin", "--yes", "--take-over")
	w.eventually("the second desk has the session", func() bool { return tells(second.coven("status").wait(0), "t-1 +(running|waiting)") })
	second.coven("cancel", "t-1").wait(0)
	<-run.ended
	<-watch.ended
	w.contains(second.coven("why", "t-1").wait(0), "cancelled: by ann", "next: coven run t-1")
	if why := w.desk.coven("why", "t-1").wait(0); strings.Contains(why, "on another machine") { // the first desk has looked before the second one ended it
		w.contains(why, "it ended on another machine, without landing: cancelled by ann")
		w.desk.coven("cancel", "t-1").wait(0)
	}
	w.contains(w.desk.coven("why", "t-1").wait(0), "cancelled: by ann", "next: coven run t-1")
	w.contains(w.desk.coven("task", "show", "t-1").wait(0), "open")
	w.release("it")
	w.desk.coven("run", "t-1", "--yes").wait(3)
	w.desk.coven("approve", "t-1").wait(0)
	w.landed("it")
}
