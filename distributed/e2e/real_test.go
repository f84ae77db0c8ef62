package e2e_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestQualityLoop begins a quality loop with the real Claude Code CLI on one machine, which is lost in the second round. Another machine goes on with the same
// findings, verdicts and memories of the reviewers. The scenario is that of cmd/coven/testdata/real/handover.txtar.
func TestQualityLoop(t *testing.T) {
	w := qualityLoop(t, strings.NewReplacer(), (*command).destroy)
	if first := w.fixed(); strings.Contains(first, "An earlier agent worked") { // the remote knows only the end of the step before
		t.Errorf("the agent is told:\n%s", first)
	}
}

// TestQualityLoopParked is like TestQualityLoop, but the first machine is drained. Then the next agent is told about the conversation, too.
func TestQualityLoopParked(t *testing.T) {
	later := strings.NewReplacer("- hold: two\n        tools:", "- tools:", "- tools: [{name: Write, input: {file_path: \"${CWD}/color\", content: \"blue", "- hold: two\n        tools: [{name: Write, input: {file_path: \"${CWD}/color\", content: \"blue")
	w := qualityLoop(t, later, func(c *command) {
		c.signal(syscall.SIGTERM)
		c.says("taking nothing new")
		c.signal(syscall.SIGTERM)
		c.wait(0)
	})
	w.contains(w.fixed(), "An earlier agent worked on this task. Its conversation cannot be continued.", "color")
}

// qualityLoop plays the scenario, with replacements, on two machines. lose ends the worker of the first one in the second round.
func qualityLoop(t *testing.T, other *strings.Replacer, lose func(*command)) *world {
	t.Helper()
	cli := os.Getenv("COVEN_REAL_CLAUDE")
	if _, err := os.Stat(cli); err != nil && os.Getenv("COVEN_REQUIRE_REAL_CLAUDE") != "" {
		t.Fatal(err)
	} else if err != nil {
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
	w := newWorld(t, other.Replace(scenario), all)
	programs := t.TempDir()
	w.must(os.Symlink(cli, filepath.Join(programs, "claude")))
	w.env[0] = "PATH=" + programs + ":" + strings.TrimPrefix(w.env[0], "PATH=")
	w.desk.env = append(w.desk.env, w.env[0])
	one := w.newPlace("one").worker()
	painted := w.desk.coven("run", "-p", "Paint it", "--auto-approve", "--yes")
	w.held("two")
	w.asked = len(w.requests())
	lose(one)
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
	return w
}

// fixed checks the requests of the second machine: it fixes the finding of the second round, and asks the reviewer about it. It returns the first of them.
func (w *world) fixed() string {
	w.Helper()
	after := w.requests()[w.asked:]
	w.contains(after[0], "What they found", "error: color:1: not blue, is green (sharp)", "The arbiter says: still worth it")
	w.contains(strings.Join(after, "\n"), "What you found the last time", "- error: color:1: not blue, is green")
	if strings.Contains(strings.Join(after, "\n"), "is red") {
		w.Errorf("the first round was repeated:\n%s", after)
	}
	return after[0]
}

// requests returns the turns for which the model was asked: their texts.
func (w *world) requests() []string {
	w.Helper()
	var all []struct {
		Kind     string `json:"kind"`
		Messages []struct {
			Content []struct {
				Text string `json:"text"`
			} `json:"content"`
		} `json:"messages"`
	}
	w.must(json.Unmarshal([]byte(w.ask(http.MethodGet, "requests", http.StatusOK)), &all))
	var texts []string
	for _, one := range all {
		if one.Kind != "turn" {
			continue
		}
		var text strings.Builder
		for _, m := range one.Messages {
			for _, block := range m.Content {
				text.WriteString(block.Text + "\n")
			}
		}
		texts = append(texts, text.String())
	}
	return texts
}
