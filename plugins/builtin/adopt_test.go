package builtin_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/coven-run/coven/plugins/builtin"
)

const conversation = "11111111-2222-4333-8444-555555555555"

// adopted makes a user with a conversation, prepares the task's directory, and adopts.
func adopted(t *testing.T, prepare func(state string) error) (state string) {
	t.Helper()
	home, tasks := t.TempDir(), t.TempDir()
	file := filepath.Join(home, ".claude", "projects", "p", conversation+".jsonl")
	state = filepath.Join(tasks, "state", "claude")
	err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("private\n"), 0o600), prepare(state),
		builtin.AdoptConversation("claude", conversation, state, func(name string) string {
			return map[string]string{"HOME": home}[name]
		}))
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// The first agent of a task gets the conversation that an earlier version of coven left with
// the user.
func TestAdopt(t *testing.T) {
	state := adopted(t, func(string) error { return nil })
	raw, err := os.ReadFile(filepath.Join(state, "projects", "p", conversation+".jsonl"))
	if err != nil || string(raw) != "private\n" {
		t.Errorf("the conversation: %q, %v", raw, err)
	}
	entries, err := os.ReadDir(filepath.Dir(state))
	if err != nil || len(entries) != 1 {
		t.Errorf("beside it: %v, %v", entries, err)
	}
}

// Once an agent could write the directory, coven writes nothing through its links, and gives it
// no conversation whose ID it may have chosen.
func TestAdoptNothingForAgents(t *testing.T) {
	outside := t.TempDir()
	state := adopted(t, func(state string) error {
		return errors.Join(os.MkdirAll(state, 0o700), os.Symlink(outside, filepath.Join(state, "projects")))
	})
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) > 0 {
		t.Errorf("outside: %v, %v", entries, err)
	}
	if entries, err = os.ReadDir(state); err != nil || len(entries) != 1 {
		t.Errorf("the task's directory: %v, %v", entries, err)
	}
}
