package collision

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/event"
)

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Of two results for a pair of sessions, the newer one counts, and it counts for both.
func TestCollisions(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	keep := func(string) bool { return true }
	only := func(ids ...string) map[string]event.Status {
		live := map[string]event.Status{}
		for _, id := range ids {
			live[id] = event.StatusRunning
		}
		return live
	}
	all := only("a", "b", "c")
	at := func(minutes int) time.Time { return time.Date(2026, 1, 1, 0, minutes, 0, 0, time.UTC) }
	if got := Of(root, all); len(got) != 0 {
		t.Errorf("of nothing: %+v", got)
	}
	write := func(id string, with ...Collision) {
		t.Helper()
		ok(t, Write(root, Compared{Session: id, Task: "t-" + id, With: with}, keep))
	}
	write("a", Collision{Session: "b", Task: "t-b", Files: []string{"x", "y"}, Seen: at(1)}, Collision{Session: "c", Task: "t-c", Files: []string{"z"}, Seen: at(1)})
	got := Of(root, all)
	if len(got["a"]) != 2 || len(got["b"]) != 1 || got["b"][0].Task != "t-a" || len(got["b"][0].Files) != 2 || got["c"][0].Session != "a" {
		t.Errorf("of one: %+v", got)
	}
	write("b", Collision{Session: "a", Task: "t-a", Seen: at(2)})
	if got = Of(root, all); len(got["a"]) != 1 || got["a"][0].Task != "t-c" || len(got["b"]) != 0 {
		t.Errorf("a newer result: %+v", got)
	}
	write("a", Collision{Session: "b", Task: "t-b", Files: []string{"x"}, Seen: at(3)})
	if got = Of(root, all); len(got["b"]) != 1 || len(got["c"]) != 0 {
		t.Errorf("a still newer one: %+v", got)
	}
	if got = Of(root, only("a", "c")); len(got["a"]) != 0 {
		t.Errorf("with a session that is over: %+v", got)
	}
	// A conflict with the target remains without the other task, until the session is blocked by it or has taken the target in.
	target := Collision{Target: "refs/heads/main", Files: []string{"x"}, Seen: at(4)}
	write("a", target, Collision{Session: "b", Task: "t-b", Files: []string{"x"}, Seen: at(4)})
	if got = Of(root, only("a")); len(got) != 1 || len(got["a"]) != 1 || got["a"][0].Target != "refs/heads/main" {
		t.Errorf("with the target: %+v", got)
	}
	if got = Of(root, map[string]event.Status{"a": event.StatusBlocked, "b": event.StatusRunning}); len(got["a"]) != 1 || got["a"][0].Task != "t-b" {
		t.Errorf("of a blocked session: %+v", got)
	}
	target.Files = nil
	write("a", target)
	if got = Of(root, all); len(got["a"]) != 0 {
		t.Errorf("after a merge: %+v", got)
	}
	// A damaged file does not count, and the next result removes those of sessions that are over.
	ok(t, os.WriteFile(filepath.Join(root, collisionsDir, "a.json"), []byte("{"), 0o600))
	if got = Of(root, all); len(got["a"]) != 0 {
		t.Errorf("damaged: %+v", got)
	}
	ok(t, Write(root, Compared{Session: "c"}, func(id string) bool { return id == "c" }))
	if entries, err := os.ReadDir(filepath.Join(root, collisionsDir)); err != nil || len(entries) != 1 {
		t.Error(entries, err)
	}
}
