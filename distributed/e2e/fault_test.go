package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
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

// TestNestedGroups runs a task while only a machine serves a repository that has the same last two parts in its address. It does not get the session.
func TestNestedGroups(t *testing.T) {
	w := newWorld(t, adds("it"), files())
	w.release("it")
	w.must(os.MkdirAll(filepath.Join(w.root, "git", "b", "acme"), 0o755))
	w.git(w.root, "clone", "-q", "--bare", w.bare("rev-parse", "--absolute-git-dir"), filepath.Join(w.root, "git", "b", "acme", "shop.git"))
	wrong := w.newPlace("wrong")
	w.git(wrong.dir, "remote", "set-url", "origin", fmt.Sprintf("git://127.0.0.1:%d/b/acme/shop.git", w.port))
	other := wrong.start(filepath.Join(bin, "coven-worker"), "--on", w.server.Address(), "--name", "wrong")
	other.says(" serves 127.0.0.1/b/acme/shop.git on ")
	run := w.desk.coven("run", "-p", "Add it", "--grimoire", "plain", "--yes")
	w.eventually("the session waits", func() bool {
		list := w.desk.coven("worker", "list", "--on", w.server.Address()).wait(0)
		return tells(list, `p-add-it +new: no machine serves plan-[0-9]+ `)
	})
	if list := wrong.coven("worker", "list", "--on", w.server.Address()).wait(0); strings.Contains(list, "p-add-it") {
		t.Errorf("the other repository has it:\n%s", list)
	}
	w.newPlace("right").worker()
	run.wait(0)
	w.landed("it")
	if text := other.out.String(); strings.Contains(text, "p-add-it") {
		t.Errorf("the machine of the other repository has got it:\n%s", text)
	}
}

// TestSameName runs a task on a machine whose remote has the same name, but is another repository.
func TestSameName(t *testing.T) {
	w := newWorld(t, adds("it"), files())
	wrong := w.newPlace("wrong")
	other := filepath.Join(w.root, "other", "acme", "shop.git")
	w.git(w.root, "init", "-q", "--bare", other)
	w.git(wrong.dir, "remote", "set-url", "origin", other)
	w.git(wrong.dir, "config", "coven.repository", "127.0.0.1/acme/shop.git")
	wrong.worker()
	w.contains(w.desk.coven("run", "-p", "Add it", "--grimoire", "plain", "--yes").wait(3), "no machine has run task p-add-it")
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

// TestDeskFull fills the disk of the desk before a session lands. The desk says so, and completes the session when there is room.
func TestDeskFull(t *testing.T) {
	w := newWorld(t, adds("it"), files())
	w.newPlace("one").worker()
	small := filepath.Join(w.root, "small")
	w.must(os.Mkdir(small, 0o755))
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=32m"); err != nil {
		t.Skipf("no file system of a test's own can be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(small, syscall.MNT_DETACH) })
	w.desk.dir = filepath.Join(small, "clone")
	w.git(w.root, "clone", "-q", w.bare("rev-parse", "--absolute-git-dir"), w.desk.dir)
	w.git(w.desk.dir, "remote", "set-url", "origin", fmt.Sprintf("git://127.0.0.1:%d/acme/shop.git", w.port))
	run := w.desk.coven("run", "-p", "Add it", "--grimoire", "plain", "--yes")
	w.held("it")
	rest := filepath.Join(small, "rest")
	f, err := os.Create(rest)
	for w.must(err); err == nil; {
		_, err = f.Write(make([]byte, 4096))
	}
	w.must(f.Close())
	w.release("it")
	w.contains(run.wait(3), "the disk is full")
	w.must(os.Remove(rest))
	w.desk.coven("resume").wait(0)
	w.landed("it")
}
