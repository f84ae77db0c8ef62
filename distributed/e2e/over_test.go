package e2e_test

import "testing"

// files are the first commit of most tests. The model is asked by coven's own loop.
func files() map[string]string {
	return map[string]string{
		"README":                      "the shop\n",
		".coven/config.yaml":          "provider: anthropic-loop\ndefault_model: sonnet\nrun: {remote: origin}\n",
		".coven/grimoires/plain.yaml": "name: plain\nsteps:\n- {name: work, type: agent, prompt: implement}\n- {name: land, type: merge, require_review: false}\n",
		".coven/grimoires/asked.yaml": "name: asked\nsteps:\n- {name: work, type: agent, prompt: implement, expect: changes}\n- {name: land, type: merge}\n",
	}
}

// TestNothingChanged runs a task that needs no change. The desk completes it, and reopens the task.
func TestNothingChanged(t *testing.T) {
	all := files()
	all[".beads/issues.jsonl"] = `{"_type":"issue","id":"t-1","title":"Look","status":"open","issue_type":"task","labels":["grimoire:plain"],"created_at":"2026-01-01T00:00:00Z"}` + "\n"
	w := newWorld(t, "conversations:\n- match: Look\n  turns: [{text: all is well}]\n", all)
	w.newPlace("one").worker()
	text := w.desk.coven("run", "t-1", "--yes").wait(0)
	w.contains(text, "completed: nothing changed")
	w.contains(w.desk.coven("status", "--all").wait(0), "nothing changed")
	w.desk.coven("resume").wait(0)
	if left := w.live(); left != "" {
		t.Errorf("the origin keeps %s", left)
	}
	w.contains(w.git(w.desk.dir, "diff", "HEAD", "--", ".beads/issues.jsonl"), "nothing changed")
}
