package e2e_test

import "testing"

// asking are the first commit of a task whose agent asks before it writes.
func asking() map[string]string {
	all := files()
	all[".coven/agents/careful.md"] = "---\nname: careful\ndescription: Asks before it writes\npermissions: [FilesystemRead, FilesystemWrite]\nrequires_approval: [FilesystemWrite]\n---\nYou are careful.\n"
	all[".coven/grimoires/careful.yaml"] = "name: careful\nsteps:\n- {name: work, type: agent, agent: careful, prompt: implement}\n- {name: land, type: merge, require_review: false}\n"
	return all
}

// TestAsk answers the question of an agent at the desk. The machine that asked first was lost.
func TestAsk(t *testing.T) {
	w := newWorld(t, "conversations:\n- match: Add it\n  turns:\n  - {tools: [{name: write, input: {path: it, content: \"it\\n\"}}]}\n  - {text: done}\n", asking())
	one := w.newPlace("one").worker()
	run := w.desk.coven("run", "-p", "Add it", "--grimoire", "careful", "--yes")
	asks := func(pattern string) {
		t.Helper()
		w.eventually("the desk shows the question", func() bool { return tells(w.desk.coven("approvals", "list").wait(0), pattern) })
	}
	asks("p-add-it 1: user > careful")
	w.contains(w.desk.coven("status").wait(0), "waiting (approval)")
	one.destroy()
	two := w.newPlace("two").worker()
	two.says("p-add-it: begin")
	asks("p-add-it 2: user > careful")
	w.contains(w.desk.coven("approvals", "approve", "p-add-it", "1").wait(1), "question 1 of p-add-it is answered: interrupted")
	w.desk.coven("approvals", "approve", "p-add-it", "2").wait(0)
	run.wait(0)
	w.landed("it")
}
