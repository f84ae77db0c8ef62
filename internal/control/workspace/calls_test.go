package workspace

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coven-run/coven/worktree/snapshot"
)

// The snapshot before a call contains all changes of earlier calls, even if calls overlap and a person
// saves the worktree.
func TestBeforeCall(t *testing.T) {
	s := newWorkspace(t)
	if _, err := s.Enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	root, err := filepath.EvalSymlinks(s.Worktree.Path)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	running := map[string]string{} // file by call ID; empty for any file
	change := func(file string) {
		if file == "" {
			file = filepath.Join(root, fmt.Sprint("other", random.IntN(3)))
		}
		if err := os.WriteFile(file, fmt.Append(nil, random.IntN(4)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 150 {
		switch at := random.IntN(8); {
		case at < 2 && len(running) > 0: // a running call changes a file
			for _, file := range running {
				change(file)
				break
			}
		case at == 2:
			for id, file := range running { // a call ends
				change(file)
				delete(running, id)
				s.AfterCall(id)
				break
			}
		case at == 3:
			change("") // a change by a person
		case at == 4:
			if _, _, err := s.SnapshotIfChanged(t.Context(), "timer"); err != nil {
				t.Fatal(err)
			}
		default:
			id, file := fmt.Sprint(i), ""
			if random.IntN(4) > 0 {
				file = filepath.Join(root, fmt.Sprint("file", random.IntN(3)))
			}
			got, err := s.BeforeCall(t.Context(), id, file, "before")
			if err != nil {
				t.Fatal(err)
			}
			want, err := snapshot.Take(t.Context(), s.Worktree, "everything", "")
			if err != nil || got.Tree != want.Tree {
				t.Fatalf("call %d: the snapshot has %s, the worktree is %s %v; running: %v", i, got.Tree, want.Tree, err, running)
			}
			running[id] = file
			if s.Changing() != hasAny(running) {
				t.Fatalf("changing: %v; running: %v", s.Changing(), running)
			}
		}
	}
}

func hasAny(running map[string]string) bool {
	for _, file := range running {
		if file == "" {
			return true
		}
	}
	return false
}

// The state of a file says where its content is stored.
func TestFileIn(t *testing.T) {
	s := newWorkspace(t)
	if _, err := s.Enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Snapshot(t.Context(), "as before the first step"); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{".gitignore": "x*\n", "x": "ignored", "y": "not"} {
		if err := os.WriteFile(filepath.Join(s.Worktree.Path, name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	snapshot, err := s.Snapshot(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, name := range []string{"x", "y", "z"} {
		f, err := s.FileIn(t.Context(), snapshot, filepath.Join(s.Worktree.Path, name))
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, strings.TrimSpace(f.Path+" "+f.State+" "+f.Mode))
	}
	if got := strings.Join(found, ", "); got != "x ignored, y untracked 100755, z absent" {
		t.Error(got)
	}
}
