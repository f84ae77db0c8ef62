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
	w := newWorld(t, "conversations:\n- match: Look\n  turns: [{text: all is well, usage: {input: 1000, output: 1}}]\n", all)
	w.newPlace("one").worker()
	text := w.desk.coven("run", "t-1", "--yes").wait(0)
	w.contains(text, "completed: nothing changed")
	w.contains(w.desk.coven("status", "--all").wait(0), "nothing changed")
	w.desk.coven("resume").wait(0)
	if left := w.live(); left != "" {
		t.Errorf("the origin keeps %s", left)
	}
	w.contains(w.git(w.desk.dir, "diff", "HEAD", "--", ".beads/issues.jsonl"), "nothing changed")
	w.contains(w.desk.coven("cost", "--json").wait(0), `"tokens_input": 1000`)
}

// TestCost compares the usage at the desk with that at the machine which lands.
func TestCost(t *testing.T) {
	w := newWorld(t, "conversations:\n- match: Add it\n  turns:\n  - {tools: [{name: write, input: {path: it, content: x}}], usage: {input: 100000, output: 1}}\n  - {text: done, usage: {input: 200000, output: 1}}\n", files())
	one := w.newPlace("one")
	one.worker()
	w.contains(w.desk.coven("run", "-p", "Add it", "--grimoire", "plain", "--yes").wait(0), "completed: landed")
	cost := []string{"cost", "--json", "--by", "agent"}
	there, here := one.coven(cost...).wait(0), w.desk.coven(cost...).wait(0)
	w.contains(here, `"tokens_input": 300000`, `"cost_usd": 0.6`)
	if there != here {
		t.Errorf("the machine says:\n%s\nthe desk says:\n%s", there, here)
	}
	w.desk.coven("resume").wait(0)
	if again := w.desk.coven(cost...).wait(0); again != here {
		t.Errorf("now the desk says:\n%s", again)
	}
}
