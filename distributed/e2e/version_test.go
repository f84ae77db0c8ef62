package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// newer builds a coven whose plans have the next version, and returns its directory.
func (w *world) newer() string {
	w.Helper()
	file, err := filepath.Abs("../../grimoires/plan.go")
	w.must(err)
	text, err := os.ReadFile(file)
	w.must(err)
	changed := strings.Replace(string(text), "PlanVersion = 3\n", "PlanVersion = 4\n", 1)
	if changed == string(text) {
		w.Fatal("the version of plans is no longer 3")
	}
	dir := w.TempDir()
	overlay := filepath.Join(dir, "overlay.json")
	w.must(os.WriteFile(filepath.Join(dir, "plan.go"), []byte(changed), 0o644))
	w.must(os.WriteFile(overlay, []byte(`{"Replace": {"`+file+`": "`+filepath.Join(dir, "plan.go")+`"}}`), 0o644))
	w.must(build("../..", filepath.Join(dir, "coven"), "-overlay", overlay, "./cmd/coven"))
	return dir
}

// TestNewerPlan runs a task with a newer coven while only an older one serves. That one gets and continues nothing. A newer one does.
func TestNewerPlan(t *testing.T) {
	w := newWorld(t, adds("one"), files())
	newer := w.newer()
	old := w.newPlace("old")
	worker := old.worker()
	list := func() string {
		text := w.desk.start(filepath.Join(bin, "coven-worker"), "list", "--on", w.server.Address()).wait(0)
		return strings.Join(strings.Fields(text), " ")
	}
	w.contains(list(), "machine old serves plan-3")
	begun := w.desk.start(filepath.Join(newer, "coven"), "run", "-p", "Add one", "--grimoire", "plain", "--yes")
	w.eventually("the session is listed", func() bool {
		return strings.Contains(list(), "p-add-one new: no machine serves plan-4")
	})

	text := old.coven("resume", "p-add-one", "--remote", "origin", "--yes", "--take-over").wait(3)
	w.contains(text, "plan version 4 is newer than 3, the newest that this coven supports")
	if strings.Contains(text, "--delete") {
		t.Errorf("the old coven proposes to delete the session:\n%s", text)
	}
	old.coven("config", "set", "--user", "run.on", w.server.Address()).wait(0)
	w.contains(old.coven("resume").wait(3), "plan version 4 is newer than 3")

	w.newPlace("new").worker("--coven", filepath.Join(newer, "coven"))
	w.held("one")
	text = list()
	w.contains(text, "p-add-one running", "machine new serves plan-4")
	if strings.Contains(text, "no machine") {
		t.Errorf("the list says:\n%s", text)
	}
	w.release("one")
	begun.wait(0)
	w.landed("one")
	if strings.Contains(worker.out.String(), "p-add-one") {
		t.Errorf("the old worker has got it:\n%s", worker.out)
	}
}
