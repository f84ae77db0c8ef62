package control

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/control/hooks"
	trackers "github.com/coven-run/coven/internal/control/tracker"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/task"
)

// Trackers and notify commands receive no secrets.
func TestSecretsAreHidden(t *testing.T) {
	const value = "s3cret-value"
	hide := func(text string) string { return strings.ReplaceAll(text, value, "***") }
	dir := t.TempDir()
	tracker := task.OpenFile(filepath.Join(dir, "issues.jsonl"), dir)
	added, err := tracker.Add(t.Context(), task.New{Title: "T"})
	if err != nil {
		t.Fatal(err)
	}
	claimed := trackers.Tracker{Item: project.Item{Task: added, Tracker: tracker}, Hide: hide, Landed: func(context.Context) {}}
	for what, err := range map[string]error{
		"note": claimed.Note(t.Context(), "n "+value), "block": claimed.Block(t.Context(), "b "+value),
		"release": claimed.Release(t.Context(), "r "+value), "close": claimed.Close(t.Context(), "c "+value, "0123"),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	p := &project.Project{Env: &project.Environment{Environ: os.Environ}, Hide: hide}
	p.Config = config.Config{Notify: []config.Notice{{Command: "cat > " + dir + "/notification; env >> " + dir + "/notification"}}}
	c := &Controller{Project: p, Observer: Observer{Notice: func(n Notice) { t.Errorf("notify: %s", n.Text) }}}
	c.runHooks(t.Context(), hooks.Notification{State: "blocked", Title: value, Detail: "x " + value, Next: "y " + value})
	for _, name := range []string{"issues.jsonl", "notification"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), value) || !strings.Contains(string(text), "***") {
			t.Errorf("%s: %s", name, text)
		}
	}
}
