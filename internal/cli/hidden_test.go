package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/internal/terminal"
)

// Whoever is told something by coven is told no secret, wherever the words come from.
func TestNobodyIsToldSecrets(t *testing.T) {
	const value = "s3cret-value"
	hide := func(text string) string { return strings.ReplaceAll(text, value, "***") }
	dir := t.TempDir()
	tracker := task.OpenFile(filepath.Join(dir, "issues.jsonl"), dir)
	added, err := tracker.Add(t.Context(), task.New{Title: "T"})
	if err != nil {
		t.Fatal(err)
	}
	claimed := control.NewTaskTracker(project.Item{Task: added, Tracker: tracker}, "", hide)
	for what, err := range map[string]error{
		"note": claimed.Note(t.Context(), "n "+value), "block": claimed.Block(t.Context(), "b "+value),
		"release": claimed.Release(t.Context(), "r "+value), "close": claimed.Close(t.Context(), "c "+value, "0123"),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	out, errs := &bytes.Buffer{}, &bytes.Buffer{}
	p := &project.Project{Env: &project.Environment{Environ: os.Environ}, Hide: hide}
	p.Config = config.Config{Notify: []config.Notice{{Command: "cat > " + dir + "/news; env >> " + dir + "/news"}}}
	a := &App{Environment: p.Env, Out: out, Err: errs, project: p}
	c := &control.Controller{Project: p}
	stop := a.Watch(c, false, terminal.Lines)
	if err := a.Showf("d %s\n", value); err != nil {
		t.Fatal(err)
	}
	c.RunHooks(t.Context(), control.Notification{State: "blocked", Title: value, Detail: "x " + value, Next: "y " + value})
	stop()
	if err := a.Printf("a %s\n", value); err != nil {
		t.Fatal(err)
	}
	a.PrintError(exit.Usagef("next", "e %s", value))
	for name, text := range map[string]string{"screen": out.String(), "errors": errs.String(), "tracker": read(t, dir, "issues.jsonl"), "notify": read(t, dir, "news")} {
		if strings.Contains(text, value) || !strings.Contains(text, "***") {
			t.Errorf("%s: %s", name, text)
		}
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
