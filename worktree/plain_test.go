package worktree

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/isolation"
	"github.com/coven-run/coven/worktree/rescue"
	"github.com/coven-run/coven/worktree/snapshot"
	"github.com/coven-run/coven/worktree/tripwire"
)

// A single listing gives the same result as the slower ways, for any state of the worktree.
func TestUnchangedTreeIsExact(t *testing.T) {
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
			for i := range 501 {
				write(t, filepath.Join(w.Path, "many", fmt.Sprint(i)), "x")
			}
		},
		"an empty directory": func(_ *repo.Repo, w *repo.Worktree) { must(t, os.MkdirAll(filepath.Join(w.Path, "empty"), 0o755)) },
		"a link for a dir": func(_ *repo.Repo, w *repo.Worktree) {
			if os.Rename(filepath.Join(w.Path, "dir"), filepath.Join(w.Repo.Root, "moved.log")) != nil {
				return // it already is one
			}
			target, err := filepath.Rel(w.Path, filepath.Join(w.Repo.Root, "moved.log"))
			must(t, err)
			must(t, os.Symlink(target, filepath.Join(w.Path, "dir")))
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
			value[snapshot.Snapshot](t)(snapshot.Take(t.Context(), w, "before", ""))
		}
		what := []string{names[int(seed)%len(names)]}
		for range random.IntN(3) * int(seed) / (2 * len(names)) { // at first, only one
			what = append(what, names[random.IntN(len(names))])
		}
		for _, name := range what {
			edits[name](r, w)
		}
		tree, unchanged := content.UnchangedTree(t.Context(), w)
		base := gitIn(t, r.Root, "rev-parse", "main^{tree}")
		holdsOnly := content.HoldsOnly(t.Context(), w, base)
		got := value[snapshot.Snapshot](t)(snapshot.Take(t.Context(), w, "s", ""))

		must(t, os.RemoveAll(w.StatePath(content.SnapshotIndex)))
		r.Memo.Trees.Clear()
		ix, want, err := content.OpenStaged(t.Context(), w, nil)
		must(t, err)
		ix.Drop()
		equal(t, "snapshot after "+strings.Join(what, ", "), got.Tree, want)
		if unchanged {
			seen++
			equal(t, "one listing after "+strings.Join(what, ", "), tree, want)
		}
		if got.Clean {
			clean++
			equal(t, "commit after "+strings.Join(what, ", "), value[string](t)(content.Tree(t.Context(), w)), got.Tree)
		}
		if holdsOnly {
			only++
			equal(t, "tree after "+strings.Join(what, ", "), value[string](t)(content.Tree(t.Context(), w)), base)
			hides, err := hidesPath(t.Context(), w, base, rescue.CapIgnored)
			must(t, err)
			equal(t, "hides after "+strings.Join(what, ", "), hides, false)
		}
	}
	if seen < cases/8 || only < 1 || seen == cases || clean != seen {
		t.Errorf("%d of %d were seen in one listing, %d had nothing else, %d had nothing to commit", seen, cases, only, clean)
	}
}

// A new worktree is not compared again for the first snapshot if no program can have run in it. For every
// later snapshot it is.
func TestSavedFirst(t *testing.T) {
	r := sample(t)
	r.Pool = repo.Pool{Bytes: 1 << 30}
	base := gitIn(t, r.Root, "rev-parse", "main^{tree}")
	for name, c := range map[string]struct {
		before   func(w *repo.Worktree)
		compared bool
	}{
		"nothing":  {func(*repo.Worktree) {}, false},
		"isolated": {func(w *repo.Worktree) { must(t, isolation.Begin(t.Context(), w)) }, true},
		"watched": {func(w *repo.Worktree) {
			value[*tripwire.Mark](t)(tripwire.Watch(t.Context(), w, tripwire.WatchOptions{}))
		}, true},
		"looked at":  {func(w *repo.Worktree) { value[string](t)(content.Tree(t.Context(), w)) }, true},
		"other bits": {func(*repo.Worktree) { gitIn(t, r.Root, "config", "core.autocrlf", "input") }, true},
	} {
		w := value[*repo.Worktree](t)(Add(t.Context(), r, AddRequest{TaskID: "T", Base: "main", SavedFirst: true}))
		c.before(w)
		write(t, filepath.Join(w.Path, "file1.txt"), "edited")
		first := value[snapshot.Snapshot](t)(snapshot.Take(t.Context(), w, name, ""))
		equal(t, name, first.Tree != base, c.compared)
		second := value[snapshot.Snapshot](t)(snapshot.Take(t.Context(), w, name, ""))
		equal(t, name+", again", second.Tree != base, true)
		must(t, isolation.TakeCommits(t.Context(), w))
		value[string](t)(Remove(t.Context(), w, RemoveRequest{}))
		_ = exec.Command("git", "-C", r.Root, "config", "--unset", "core.autocrlf").Run()
	}
}

// The first snapshot contains the bytes of the files, even if git has converted them.
func TestSavedFirstConverts(t *testing.T) {
	r := sample(t)
	onMain(t, r, ".gitattributes", "*.txt text eol=crlf\n")
	w := value[*repo.Worktree](t)(Add(t.Context(), r, AddRequest{TaskID: "T", Base: "main", SavedFirst: true}))
	s := value[snapshot.Snapshot](t)(snapshot.Take(t.Context(), w, "s", ""))
	text := read(t, filepath.Join(w.Path, "file0.txt"))
	equal(t, "converted", strings.Contains(text, "\r\n"), true)
	equal(t, "saved", gitIn(t, r.Root, "cat-file", "-s", s.Tree+":file0.txt"), fmt.Sprint(len(text)))
}
