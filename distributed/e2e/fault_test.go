package e2e_test

import (
	"path/filepath"
	"syscall"
	"testing"
)

// TestOtherRemote changes the remote of a worker's clone, where no session is. Another machine runs them.
func TestOtherRemote(t *testing.T) {
	w := newWorld(t, adds("it"), files())
	w.release("it")
	wrong := w.newPlace("wrong")
	other := filepath.Join(w.root, "git", "acme", "other.git")
	w.git(w.root, "init", "-q", "--bare", other)
	first := wrong.worker()
	w.git(wrong.dir, "remote", "set-url", "origin", other)
	run := w.desk.coven("run", "-p", "Add it", "--grimoire", "plain", "--yes")
	first.says("the address of origin has changed")
	w.eventually("the list names the machine", func() bool {
		list := w.desk.coven("worker", "list", "--on", w.server.Address()).wait(0)
		return tells(list, `p-add-it +waiting \(machine\) +wrong `)
	})
	first.signal(syscall.SIGTERM)
	first.wait(0)
	w.newPlace("right").worker()
	run.wait(0)
	w.landed("it")
}

// TestNoNamespace runs a task without the namespace on the server. No session begins.
func TestNoNamespace(t *testing.T) {
	w := newWorld(t, adds("it"), files())
	w.desk.env = append(w.desk.env, "TEMPORAL_NAMESPACE=missing")
	run := w.desk.coven("run", "-p", "Add it", "--grimoire", "plain", "--yes")
	w.contains(run.wait(3), "missing", "coven worker namespace")
	if left := w.live(); left != "" {
		t.Errorf("the origin keeps %s", left)
	}
}
