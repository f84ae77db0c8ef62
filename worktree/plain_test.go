package worktree

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/worktree/internal/repo"
)

// What one listing says is what the longer ways say, whatever W is like.
func TestPlainTreeIsExact(t *testing.T) {
	oneAtATime(t)
	edits := map[string]func(r *repo.Repo, w *repo.Worktree){
		"nothing":         func(*repo.Repo, *repo.Worktree) {},
		"an ignored file": func(_ *repo.Repo, w *repo.Worktree) { write(t, filepath.Join(w.Path, "x.log"), "x") },
		"an ignored dir":  func(_ *repo.Repo, w *repo.Worktree) { write(t, filepath.Join(w.Path, "build/x"), "x") },
		"an untracked":    func(_ *repo.Repo, w *repo.Worktree) { write(t, filepath.Join(w.Path, "new"), "x") },
		"a change":        func(_ *repo.Repo, w *repo.Worktree) { write(t, filepath.Join(w.Path, "file0.txt"), "x") },
		"a deletion":      func(_ *repo.Repo, w *repo.Worktree) { must(t, os.RemoveAll(filepath.Join(w.Path, "file1.txt"))) },
		"a mode":          func(_ *repo.Repo, w *repo.Worktree) { must(t, os.Chmod(filepath.Join(w.Path, "file2.txt"), 0o755)) },
		"a touch": func(_ *repo.Repo, w *repo.Worktree) {
			must(t, os.Chtimes(filepath.Join(w.Path, "file3.txt"), time.Now(), time.Now()))
		},
		"hidden attributes": func(r *repo.Repo, w *repo.Worktree) {
			write(t, filepath.Join(r.GitDir, "info", "exclude"), ".gitattributes\n")
			write(t, filepath.Join(w.Path, "dir", ".gitattributes"), "* text eol=crlf\n")
			write(t, filepath.Join(w.Path, "dir", "deep", "x.txt"), "x\r\n")
		},
		"attributes of the repository": func(r *repo.Repo, w *repo.Worktree) {
			write(t, filepath.Join(r.GitDir, "info", "attributes"), "*.txt text eol=crlf\n")
			write(t, filepath.Join(w.Path, "file4.txt"), "one\r\ntwo\r\nthree 4\r\n")
		},
		"autocrlf": func(r *repo.Repo, w *repo.Worktree) {
			gitIn(t, r.Root, "config", "core.autocrlf", "input")
			write(t, filepath.Join(w.Path, "file5.txt"), "one\r\ntwo\r\nthree 5\r\n")
		},
		"the tracker's file":  func(_ *repo.Repo, w *repo.Worktree) { write(t, filepath.Join(w.Path, ".beads/issues.jsonl"), "v2\n") },
		"a session":           func(_ *repo.Repo, w *repo.Worktree) { write(t, filepath.Join(w.Path, ".coven/sessions/s"), "s\n") },
		"a repository":        func(_ *repo.Repo, w *repo.Worktree) { gitIn(t, w.Path, "init", "-q", "nested") },
		"a git directory":     func(_ *repo.Repo, w *repo.Worktree) { gitIn(t, w.Path, "init", "-q", "dir") },
		"a deleted directory": func(_ *repo.Repo, w *repo.Worktree) { must(t, os.RemoveAll(filepath.Join(w.Path, "dir"))) },
		"a directory for a file": func(_ *repo.Repo, w *repo.Worktree) {
			must(t, os.RemoveAll(filepath.Join(w.Path, "file6.txt")))
			write(t, filepath.Join(w.Path, "file6.txt/deep"), "x")
		},
		"ignored, and committed": func(_ *repo.Repo, w *repo.Worktree) {
			write(t, filepath.Join(w.Path, "kept.log"), "x")
			gitIn(t, w.Path, "add", "-f", "kept.log")
			gitIn(t, w.Path, "commit", "-qm", "the agent's own")
		},
		"many files": func(_ *repo.Repo, w *repo.Worktree) {
			for i := range maxFew + 1 {
				write(t, filepath.Join(w.Path, "many", fmt.Sprint(i)), "x")
			}
		},
		"an empty directory": func(_ *repo.Repo, w *repo.Worktree) { must(t, os.MkdirAll(filepath.Join(w.Path, "empty"), 0o755)) },
		"a link for a dir": func(_ *repo.Repo, w *repo.Worktree) {
			if os.Rename(filepath.Join(w.Path, "dir"), filepath.Join(w.Repo.Root, "moved.log")) != nil {
				return // it is one already
			}
			must(t, os.Symlink("../../../moved.log", filepath.Join(w.Path, "dir")))
		},
	}
	names := slices.Sorted(maps.Keys(edits))
	cases, seen, only, clean := 0, 0, 0, 0
	for seed := range seeds(uint64(len(names)), 72) {
		cases++
		random := rand.New(rand.NewPCG(seed, 3))
		r := sample(t)
		w := add(t, r, "T")
		if random.IntN(2) == 0 {
			value[Snapshot](t)(TakeSnapshot(t.Context(), w, "before", ""))
		}
		what := []string{names[int(seed)%len(names)]}
		for range random.IntN(3) * int(seed) / (2 * len(names)) { // at first, one alone
			what = append(what, names[random.IntN(len(names))])
		}
		for _, name := range what {
			edits[name](r, w)
		}
		tree, plain := plainTree(t.Context(), w)
		base := gitIn(t, r.Root, "rev-parse", "main^{tree}")
		holdsOnly := holdsOnly(t.Context(), w, base)
		got := value[Snapshot](t)(TakeSnapshot(t.Context(), w, "s", ""))

		must(t, os.RemoveAll(w.StatePath(snapshotIndex)))
		r.Memo.Trees.Clear()
		ix, want, err := stagedRaw(t.Context(), w, nil)
		must(t, err)
		ix.drop()
		equal(t, "snapshot after "+strings.Join(what, ", "), got.Tree, want)
		if plain == nil {
			seen++
			equal(t, "one listing after "+strings.Join(what, ", "), tree, want)
		}
		if got.Clean {
			clean++
			equal(t, "commit after "+strings.Join(what, ", "), value[string](t)(CurrentTree(t.Context(), w)), got.Tree)
		}
		if holdsOnly {
			only++
			equal(t, "tree after "+strings.Join(what, ", "), value[string](t)(CurrentTree(t.Context(), w)), base)
			hides, err := hidesPath(t.Context(), w, base, capIgnored)
			must(t, err)
			equal(t, "hides after "+strings.Join(what, ", "), hides, false)
		}
	}
	if seen < cases/3 || only < 1 || seen == cases || clean < 1 || clean > seen/2 {
		t.Errorf("%d of %d were seen in one listing, %d had nothing else, %d had nothing to commit", seen, cases, only, clean)
	}
}
