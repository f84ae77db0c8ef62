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

// TestMissingLabel runs a task that needs a label which no machine has. The desk says so, and not any more while the only machine that has it is busy.
func TestMissingLabel(t *testing.T) {
	all := files()
	for _, id := range []string{"t-1", "t-2"} {
		all[".beads/issues.jsonl"] += `{"_type":"issue","id":"` + id + `","title":"Add ` + id + `","status":"open","issue_type":"task","labels":["grimoire:plain","needs:big gpu"],"created_at":"2026-01-01T00:00:00Z"}` + "\n"
	}
	w := newWorld(t, adds("t-1", "t-2"), all)
	run := w.desk.coven("run", "t-1", "--yes")
	on := w.server.Address()
	w.eventually("the desk says that there is no machine", func() bool {
		return tells(w.desk.coven("status").wait(0), "t-1 +waiting .worker. .*coven worker --on "+on+" --label 'big gpu'")
	})
	w.contains(w.desk.coven("why", "t-1").wait(0), "no machine on "+on+" has the label big gpu, which the task needs", "next: coven worker --on "+on+" --label 'big gpu'")
	w.contains(w.desk.coven("status", "--json").wait(0), "has the label big gpu")
	w.newPlace("one").worker("-j", "1", "--label", "big gpu")
	w.held("t-1")
	second := w.desk.coven("run", "t-2", "--yes")
	w.eventually("the second one waits for the machine", func() bool {
		return tells(w.desk.coven("worker", "list", "--on", on).wait(0), "t-2 +(new|running) ")
	})
	w.contains(w.desk.coven("why", "t-2").wait(0), "the workers on "+on+" run it")
	w.release("t-1")
	w.release("t-2")
	run.wait(0)
	second.wait(0)
	w.landed("t-1", "t-2")
	w.must(w.server.Kill())
	w.desk.coven("why", "t-2").wait(0)
}
