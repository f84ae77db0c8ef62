package e2e_test

import (
	"path/filepath"
	"testing"
)

// TestNames runs tasks whose names differ only in characters that refs and workflows cannot have, on a machine and with a label that have some, too.
func TestNames(t *testing.T) {
	all := files()
	all[".beads/issues.jsonl"] = ""
	for name, id := range map[string]string{"upper": "A-1", "lower": "a-1", "slash": "x/y", "line": "x_y", "umlaut": "ü:ö", "accent": "û:ö"} {
		all[".beads/issues.jsonl"] += `{"_type":"issue","id":"` + id + `","title":"Add ` + name + `","status":"open","issue_type":"task","labels":["grimoire:plain","needs:größe"],"created_at":"2026-01-01T00:00:00Z"}` + "\n"
	}
	names := []string{"upper", "lower", "slash", "line", "umlaut", "accent"}
	w := newWorld(t, adds(names...), all)
	run := w.desk.coven("run", "--yes", "-n", "6")
	w.eventually("a task waits for a machine", func() bool {
		list := w.desk.coven("worker", "list", "--on", w.server.Address()).wait(0)
		return tells(list, "(A-1|a-1|x/y|x_y|ü:ö|û:ö) +(new|running): no machine serves plan-[0-9]+/größe")
	})
	for _, name := range names {
		w.release(name)
	}
	p := w.newPlace("büro")
	p.start(filepath.Join(bin, "coven-worker"), "--on", w.server.Address(), "--name", "büro", "--label", "größe").says("serves 127.0.0.1/acme/shop.git")
	run.wait(0)
	w.landed(names...)
}
