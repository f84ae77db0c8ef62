package worktree

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// An index that is older than its files' second is refreshed once, and then says the same.
func TestRefreshOnce(t *testing.T) {
	r := sample(t)
	w := add(t, r, "T")
	old := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(w.StatePath(commitIndex), old, old))
	write(t, filepath.Join(w.Path, "file0.txt"), "changed\n")
	stamp := func() time.Time {
		info, err := os.Stat(w.StatePath(commitIndex))
		must(t, err)
		return info.ModTime()
	}
	base := gitIn(t, r.Root, "rev-parse", "main^{tree}")
	first := value[string](t)(plainTree(t.Context(), w))
	refreshed := stamp()
	if refreshed.Equal(old) {
		t.Error("the index is as old as before")
	}
	ix := value[*index](t)(openIndex(w, w.Git(), commitIndex))
	equal(t, "tree of the index", ix.knownTree(), base)
	ix.drop()
	equal(t, "tree", value[string](t)(plainTree(t.Context(), w)), first)
	equal(t, "tree of a look at all", value[Snapshot](t)(TakeSnapshot(t.Context(), w, "s", "")).Tree, first)
	equal(t, "again", stamp(), refreshed)
	must(t, os.Chtimes(w.StatePath(commitIndex), refreshed.Add(-time.Minute), refreshed.Add(-time.Minute)))
	equal(t, "tree", value[string](t)(plainTree(t.Context(), w)), first)
	equal(t, "changed file", gitIn(t, r.Root, "show", first+":file0.txt"), "changed")
}
