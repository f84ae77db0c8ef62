package e2e_test

import (
	"strings"
	"syscall"
	"testing"

	"go.temporal.io/sdk/client"

	"github.com/coven-run/coven/distributed/session"
)

// rename gives a session that no machine has run the name that earlier versions gave it.
func (w *world) rename(task string) {
	w.Helper()
	c, queue := w.server.Dial(w), session.Queue("acme/shop", 3, "")
	w.must(c.TerminateWorkflow(w.Context(), "127.0.0.1/acme/shop.git/"+task, "", "it has a new name"))
	t := session.Task{Repository: "acme/shop", Task: task, Ref: "refs/coven/live/" + task, Plan: 3, Heartbeat: heartbeat}
	_, err := c.SignalWithStartWorkflow(w.Context(), t.ID(), session.Wake, nil, client.StartWorkflowOptions{ID: t.ID(), TaskQueue: queue, Memo: map[string]any{"status": "new", "needs": ""}}, session.Name, t)
	w.must(err)
}

// TestFormerName continues sessions that an earlier version has begun, under the former name of the repository, and cancels one.
func TestFormerName(t *testing.T) {
	w := newWorld(t, adds("it", "gone"), files())
	for _, name := range []string{"it", "gone"} {
		run := w.desk.coven("run", "-p", "Add "+name, "--grimoire", "asked", "--yes")
		w.eventually("the session is listed", func() bool {
			return strings.Contains(w.desk.coven("worker", "list", "--on", w.server.Address()).wait(0), "p-add-"+name)
		})
		run.signal(syscall.SIGINT)
		run.wait(130)
		w.rename("p-add-" + name)
	}
	w.newPlace("one").worker()
	w.held("it")
	w.held("gone")
	list := w.desk.coven("worker", "list", "--on", w.server.Address()).wait(0)
	for _, name := range []string{"it", "gone"} {
		if !tells(list, "(?m)^p-add-"+name+" +running") {
			t.Errorf("%s is not listed:\n%s", name, list)
		}
	}
	w.desk.coven("cancel", "p-add-gone").wait(0)
	again := w.desk.coven("resume", "p-add-it")
	w.release("it")
	again.wait(3)
	w.desk.coven("approve", "p-add-it").wait(0)
	w.landed("it")
	list = w.desk.coven("worker", "list", "--on", w.server.Address()).wait(0)
	if strings.Contains(list, "p-add-") {
		t.Errorf("sessions are left at the server:\n%s", list)
	}
}
