package e2e_test

import (
	"strings"
	"syscall"
	"testing"
)

// TestUpgrade replaces the workers of two machines while sessions run: the first ends its session before, the second is to stop at once.
func TestUpgrade(t *testing.T) {
	w := newWorld(t, adds("ended", "parked"), files())
	old := w.newPlace("one")
	first := old.worker("-j", "1")
	ended := w.desk.coven("run", "-p", "Add ended", "--grimoire", "plain", "--yes")
	w.held("ended")
	second := w.newPlace("two").worker("-j", "1")
	parked := w.desk.coven("run", "-p", "Add parked", "--grimoire", "plain")
	w.held("parked")

	first.signal(syscall.SIGTERM)
	first.says("taking nothing new")
	second.signal(syscall.SIGTERM)
	second.says("taking nothing new")
	second.signal(syscall.SIGTERM)
	if text := second.wait(0); !strings.Contains(text, "p-add-parked: interrupted") {
		t.Errorf("the second worker said:\n%s", text)
	}
	old.name = "three" // a new worker in the same clone, while the old one ends its session
	third := old.worker("-j", "1")
	third.says("p-add-parked: begin")
	w.release("ended")
	ended.wait(0)
	if text := first.wait(0); !strings.Contains(text, "p-add-ended: over") {
		t.Errorf("the first worker said:\n%s", text)
	}
	w.release("parked")
	parked.wait(0)
	w.landed("ended", "parked")
}

// TestOriginAway stops the origin while sessions run. They wait, and continue without a person.
func TestOriginAway(t *testing.T) {
	w := newWorld(t, adds("early", "late"), files())
	one := w.newPlace("one").worker("-j", "2")
	early := w.desk.coven("run", "-p", "Add early", "--grimoire", "plain", "--yes")
	w.held("early")
	late := w.desk.coven("run", "-p", "Add late", "--grimoire", "asked")
	w.held("late")
	w.stopOrigin()
	w.release("early")
	w.release("late")
	one.says("p-add-early: waiting remote")
	one.says("p-add-late: waiting remote")
	w.startOrigin()
	early.wait(0)
	late.wait(3)
	w.desk.coven("approve", "p-add-late").wait(0)
	w.landed("early", "late")
}
