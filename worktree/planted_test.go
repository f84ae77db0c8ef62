package worktree

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/coven-run/coven/worktree/rescue"
	"github.com/coven-run/coven/worktree/snapshot"
)

// coven does not run a filter that is configured while it is running.
func TestPlantedFilter(t *testing.T) {
	e := watchedRepo(t)
	sprung := filepath.Join(t.TempDir(), "sprung")
	trap := filepath.Join(t.TempDir(), "trap")
	hook(t, trap, fmt.Sprintf("echo \"$0 $@\" >>'%s'\ncat\n", sprung))
	for _, key := range []string{"clean", "smudge", "process"} {
		e.plumbing(t, "config", "filter.evil."+key, trap)
	}
	e.plumbing(t, "config", "filter.evil.required", "true")
	write(t, filepath.Join(e.w.Path, ".gitattributes"), "* filter=evil\n")
	write(t, filepath.Join(e.w.Path, "file0.txt"), "changed\n")
	must(t, os.RemoveAll(sprung))
	first := value[snapshot.Snapshot](t)(snapshot.Take(t.Context(), e.w, "s", ""))
	value[string](t)(rescue.Take(t.Context(), e.w, "n", false))
	commitAll(t, e.w, "m")
	value[snapshot.Snapshot](t)(snapshot.Revert(t.Context(), e.w, "s", first.N))
	if exists(sprung) {
		t.Fatalf("ran %s", read(t, sprung))
	}
}
