package e2e_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestQualityLoop begins a quality loop with the real Claude Code CLI on one machine, which is lost in the second round. Another machine goes on with the same
// findings, and its agent is told about the earlier conversation. The scenario is that of cmd/coven/testdata/real/handover.txtar.
func TestQualityLoop(t *testing.T) {
	cli := os.Getenv("COVEN_REAL_CLAUDE")
	if _, err := os.Stat(cli); err != nil {
		t.Skip("the real claude is not here: run .ci/claude .tools, and set COVEN_REAL_CLAUDE")
	}
	story, err := os.ReadFile("../../cmd/coven/testdata/real/handover.txtar")
	if err != nil {
		t.Fatal(err)
	}
	scenario, all := "", map[string]string{".coven/config.yaml": "provider: claude\nrun: {remote: origin}\n"}
	for _, part := range strings.Split(string(story), "\n-- ")[1:] {
		name, text, _ := strings.Cut(part, " --\n")
		if name == "scenario.yaml" {
			scenario = text
		} else {
			all[strings.TrimPrefix(name, "one/")] = text + "\n"
		}
	}
	w := newWorld(t, scenario, all)
	programs := t.TempDir()
	w.must(os.Symlink(cli, filepath.Join(programs, "claude")))
	w.env[0] = "PATH=" + programs + ":" + strings.TrimPrefix(w.env[0], "PATH=")
	w.desk.env = append(w.desk.env, w.env[0])
	one := w.newPlace("one").worker()
	painted := w.desk.coven("run", "-p", "Paint it", "--auto-approve", "--yes")
	w.held("two")
	before := len(w.requests())
	one.destroy()
	two := w.newPlace("two").worker()
	two.says("p-paint-it: begin")
	w.release("two")
	w.contains(painted.wait(0), "completed: landed")
	if got := w.bare("show", "main:color"); got != "blue" {
		t.Errorf("the color is %s", got)
	}
	if left := w.live(); left != "" {
		t.Errorf("the origin keeps %s", left)
	}
	after := w.requests()[before:]
	os.WriteFile("/tmp/mem/a/after.json", []byte(strings.Join(after, "\n")), 0o644)
	w.contains(after[0], "not blue, is green (sharp)")
}

// requests returns the requests to the model, as JSON.
func (w *world) requests() []string {
	w.Helper()
	var all []json.RawMessage
	w.must(json.Unmarshal([]byte(w.ask(http.MethodGet, "requests", http.StatusOK)), &all))
	var text []string
	for _, one := range all {
		text = append(text, string(one))
	}
	return text
}
