package worktree

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/coven-run/coven/worktree/commit"
	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/cone"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/isolation"
	"github.com/coven-run/coven/worktree/land"
	"github.com/coven-run/coven/worktree/snapshot"
	"github.com/coven-run/coven/worktree/supply"
)

// wide creates a repository with files at its top and in the directories in, out, in/deep and out/deep.
func wide(t testing.TB) *repo.Repo {
	t.Helper()
	r := sample(t)
	for _, name := range []string{"in/a", "in/b", "in/deep/c", "out/a", "out/b", "out/deep/c", "out/deep/d", "out/only/e"} {
		write(t, filepath.Join(r.Root, name), name+"\n1\n2\n3\n4\n5\n")
	}
	gitIn(t, r.Root, "add", "-A", "--", ".", ":!.coven")
	gitIn(t, r.Root, "commit", "-qm", "wide")
	return r
}

// sparseRepo creates a wide repository whose worktrees contain only the directory in, and the task T.
func sparseRepo(t testing.TB) (*repo.Repo, *repo.Worktree) {
	t.Helper()
	r := wide(t)
	r.Sparse = repo.Sparse{Dirs: []string{"in"}}
	return r, add(t, r, "T")
}

// fileNames lists the files in the worktree.
func fileNames(t testing.TB, w *repo.Worktree) string {
	t.Helper()
	files := value[[]string](t)(content.FilesBelow(w.Path, "."))
	files = slices.DeleteFunc(files, func(name string) bool {
		return name == ".git" || strings.HasPrefix(name, "file") || strings.HasPrefix(name, ".")
	})
	return strings.Join(files, " ")
}

func clean(t testing.TB, w *repo.Worktree) {
	t.Helper()
	equal(t, "status", gitIn(t, w.Path, "status", "--porcelain", "-uall"), "")
}

// A worktree contains the files of its cone. Its task lands its changes, and the landed tree still contains
// all other files.
func TestSparse(t *testing.T) {
	r, w := sparseRepo(t)
	equal(t, "files", fileNames(t, w), "in/a in/b in/deep/c")
	equal(t, "tracker", exists(filepath.Join(w.Path, ".beads", "issues.jsonl")), true)
	clean(t, w)
	equal(t, "tree", value[string](t)(content.Tree(t.Context(), w)), gitIn(t, r.Root, "rev-parse", "main^{tree}"))
	write(t, filepath.Join(w.Path, "in/a"), "mine\n")
	must(t, os.Remove(filepath.Join(w.Path, "in/b")))
	equal(t, "committed", strings.Join(commitAll(t, w, "work").Files, " "), "in/a in/b")
	clean(t, w)
	equal(t, "landed", landAll(t, w), "in/a\nin/b")
	equal(t, "a file outside", gitIn(t, r.Root, "show", "main:out/deep/c"), "out/deep/c\n1\n2\n3\n4\n5")
	ref := value[string](t)(Remove(t.Context(), w, RemoveRequest{Landed: landedTip(t, w)}))
	equal(t, "rescue", ref, "")
}

// Files that a task creates, changes or deletes outside the cone are ordinary changes.
func TestSparseOutside(t *testing.T) {
	r, w := sparseRepo(t)
	write(t, filepath.Join(w.Path, "out/a"), "mine\n")
	write(t, filepath.Join(w.Path, "out/new"), "mine\n")
	write(t, filepath.Join(w.Path, "else/new"), "mine\n")
	equal(t, "committed", strings.Join(commitAll(t, w, "one").Files, " "), "else/new out/a out/new")
	clean(t, w)
	onMain(t, r, "out/deep/c", "theirs\n")
	onMain(t, r, "out/a2", "theirs\n")
	value[integrate.Landing](t)(integrate.Merge(t.Context(), w, targetOf(r, t)))
	equal(t, "files", fileNames(t, w), "else/new in/a in/b in/deep/c out/a out/new")
	clean(t, w)
	must(t, os.Remove(filepath.Join(w.Path, "out/a")))
	equal(t, "committed", strings.Join(commitAll(t, w, "two").Files, " "), "out/a")
	equal(t, "landed", landAll(t, w), "else/new\nout/a\nout/new")
	equal(t, "the target's", gitIn(t, r.Root, "show", "main:out/deep/c"), "theirs")
}

// The agent's own git works in the worktree, isolated or not, and preserves the files outside.
func TestSparseAgentsGit(t *testing.T) {
	for _, isolated := range []bool{false, true} {
		t.Run(fmt.Sprint("isolated ", isolated), func(t *testing.T) {
			r, w := sparseRepo(t)
			if isolated {
				must(t, isolation.Begin(t.Context(), w))
			}
			write(t, filepath.Join(w.Path, "in/a"), "mine\n")
			gitIn(t, w.Path, "add", "-A")
			gitIn(t, w.Path, "commit", "-qm", "agent")
			gitIn(t, w.Path, "checkout", "-q", "HEAD~")
			gitIn(t, w.Path, "checkout", "-q", w.Branch)
			clean(t, w)
			gitIn(t, w.Path, "reset", "-q", "--hard")
			must(t, isolation.TakeCommits(t.Context(), w))
			equal(t, "files", fileNames(t, w), "in/a in/b in/deep/c")
			equal(t, "landed", landAll(t, w), "in/a")
			equal(t, "all files", strings.Count(gitIn(t, r.Root, "ls-tree", "-r", "--name-only", "main", "in", "out"), "\n"), 7)
		})
	}
}

// A conflict outside the cone is written to the worktree, and no other file outside is.
func TestSparseConflict(t *testing.T) {
	r, w := sparseRepo(t)
	ctx := t.Context()
	write(t, filepath.Join(w.Path, "out/a"), "mine\n")
	commitAll(t, w, "mine")
	onMain(t, r, "out/a", "theirs\n")
	onMain(t, r, "out/b", "theirs\n")
	_, err := integrate.Merge(ctx, w, targetOf(r, t))
	equal(t, "conflict", strings.Join(wantError[*integrate.ConflictError](t, err).Files, " "), "out/a")
	before := value[snapshot.Snapshot](t)(snapshot.Take(ctx, w, "s", ""))
	c := value[integrate.Conflicted](t)(integrate.MergeConflicted(ctx, w, targetOf(r, t), "s"))
	equal(t, "files", fileNames(t, w), "in/a in/b in/deep/c out/a")
	equal(t, "marked", strings.Contains(read(t, filepath.Join(w.Path, "out/a")), "<<<<<<<"), true)
	equal(t, "status", gitIn(t, w.Path, "diff", "--name-only", "--diff-filter=U"), "out/a")
	gitIn(t, r.Root, "gc", "-q", "--prune=now")
	equal(t, "merged outside", gitIn(t, r.Root, "show", value[string](t)(content.Tree(ctx, w))+":out/b"), "theirs")
	value[snapshot.Snapshot](t)(snapshot.Revert(ctx, w, "s", before.N))
	equal(t, "taken back", read(t, filepath.Join(w.Path, "out/a")), "mine\n")
	c = value[integrate.Conflicted](t)(integrate.MergeConflicted(ctx, w, targetOf(r, t), c.Session))
	write(t, filepath.Join(w.Path, "out/a"), "both\n")
	value[commit.Commit](t)(finish(t, w, c))
	clean(t, w)
	equal(t, "landed", landAll(t, w), "out/a")
	equal(t, "the target's", gitIn(t, r.Root, "show", "main:out/b"), "theirs")
}

// A file outside the cone that one side deleted and the other changed is written.
func TestSparseConflictWithoutAFile(t *testing.T) {
	r, w := sparseRepo(t)
	write(t, filepath.Join(w.Path, "out/a"), "mine\n")
	commitAll(t, w, "mine")
	must(t, os.Remove(filepath.Join(w.Path, "out/a")))
	commitAll(t, w, "deleted")
	onMain(t, r, "out/a", "theirs\n")
	c := value[integrate.Conflicted](t)(integrate.MergeConflicted(t.Context(), w, targetOf(r, t), "s"))
	equal(t, "in conflict", strings.Join(c.Files, " "), "out/a")
	equal(t, "files", fileNames(t, w), "in/a in/b in/deep/c out/a")
}

// A recreated worktree gets the files of its snapshot.
func TestSparseRecreate(t *testing.T) {
	for _, taken := range []bool{false, true} {
		r, w := sparseRepo(t)
		write(t, filepath.Join(w.Path, "in/a"), "mine\n")
		commitAll(t, w, "mine")
		if taken {
			write(t, filepath.Join(w.Path, "out/new"), "new\n")
			write(t, filepath.Join(w.Path, "out/b"), "changed\n")
			value[snapshot.Snapshot](t)(snapshot.Take(t.Context(), w, "s", ""))
		}
		files, tree := fileNames(t, w), value[string](t)(content.Tree(t.Context(), w))
		must(t, file.RemoveAll(w.Path))
		again, _, err := Recreate(t.Context(), r, "T", "s")
		must(t, err)
		equal(t, "files", fileNames(t, again), files)
		equal(t, "tree", value[string](t)(content.Tree(t.Context(), again)), tree)
		if !taken {
			clean(t, again)
		}
	}
}

// The pool gives files only to worktrees with the same cone, and only files that a new worktree would have.
func TestSparsePool(t *testing.T) {
	for name, c := range map[string]struct {
		outside bool
		next    repo.Sparse
		again   bool
	}{
		"the same":         {false, repo.Sparse{Dirs: []string{"in"}}, true},
		"another cone":     {false, repo.Sparse{Dirs: []string{"out/deep"}}, false},
		"all files":        {false, repo.Sparse{}, false},
		"a file outside":   {true, repo.Sparse{Dirs: []string{"in"}}, false},
		"a file was there": {true, repo.Sparse{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := wide(t)
			r.Sparse, r.Pool = repo.Sparse{Dirs: []string{"in"}}, repo.Pool{Bytes: 1 << 30}
			w := add(t, r, "T")
			inode := inodeAt(t, filepath.Join(w.Path, "in/a"))
			write(t, filepath.Join(w.Path, "in/b"), "mine\n")
			if c.outside {
				write(t, filepath.Join(w.Path, "out/b"), "mine\n")
			}
			landAll(t, w)
			equal(t, "rescue", leave(t, r, w), "")
			onMain(t, r, "out/a", "theirs\n")
			onMain(t, r, "in/new", "theirs\n")
			r.Sparse = c.next
			next := add(t, r, "U")
			if exists(filepath.Join(next.Path, "in/a")) {
				equal(t, "used again", inodeAt(t, filepath.Join(next.Path, "in/a")) == inode, c.again)
			}
			pooled, tree := fileNames(t, next), value[string](t)(content.Tree(t.Context(), next))
			clean(t, next)
			r.Pool = repo.Pool{}
			plain := add(t, r, "plain")
			equal(t, "files", pooled, fileNames(t, plain))
			equal(t, "tree", tree, gitIn(t, r.Root, "rev-parse", "main^{tree}"))
		})
	}
}

// If coven's indexes are lost, no file outside the cone counts as deleted.
func TestSparseWithoutIndex(t *testing.T) {
	r, w := sparseRepo(t)
	write(t, filepath.Join(w.Path, "in/a"), "mine\n")
	for _, name := range []string{content.CommitIndex, content.SnapshotIndex} {
		must(t, os.RemoveAll(w.StatePath(name)))
	}
	r = value[*repo.Repo](t)(repo.Open(t.Context(), r.Root))
	w = value[*repo.Worktree](t)(r.Find(t.Context(), "T"))
	equal(t, "landed", landAll(t, w), "in/a")
}

// A worktree can have the cone of the main checkout.
func TestSparseAsMain(t *testing.T) {
	r := wide(t)
	r.Sparse = repo.Sparse{Main: true}
	w := add(t, r, "full")
	equal(t, "all", fileNames(t, w), "dir/deep/x.txt in/a in/b in/deep/c out/a out/b out/deep/c out/deep/d out/only/e")
	gitIn(t, r.Root, "sparse-checkout", "set", "--cone", "in", "out/deep")
	r = value[*repo.Repo](t)(repo.Open(t.Context(), r.Root))
	r.Sparse = repo.Sparse{Main: true}
	w = add(t, r, "T")
	equal(t, "files", fileNames(t, w), "in/a in/b in/deep/c out/a out/b out/deep/c out/deep/d")
	clean(t, w)
	equal(t, "git's own list", gitIn(t, w.Path, "sparse-checkout", "list"), ".beads\n.coven\nin\nout/deep")
	gitIn(t, w.Path, "sparse-checkout", "reapply")
	equal(t, "files again", fileNames(t, w), "in/a in/b in/deep/c out/a out/b out/deep/c out/deep/d")
	write(t, filepath.Join(w.Path, "in/a"), "mine\n")
	equal(t, "landed", landAll(t, w), "in/a")
	equal(t, "main", gitIn(t, r.Root, "status", "--porcelain"), "?? .coven/")

	gitIn(t, r.Root, "sparse-checkout", "set", "--no-cone", "*.txt")
	_, err := Add(t.Context(), r, AddRequest{TaskID: "U", Base: "main"})
	if err == nil || !strings.Contains(err.Error(), "cone mode") {
		t.Fatal(err)
	}
}

// git interprets the patterns in the same way as coven.
func TestConePatterns(t *testing.T) {
	c := &cone.Cone{Dirs: []string{"a/b", "a/c/d", "odd*[x]\\", "q?"}}
	back := value[*cone.Cone](t)(cone.Parse(c.Patterns()))
	slices.Sort(back.Dirs)
	equal(t, "dirs", fmt.Sprint(back.Dirs), fmt.Sprint([]string{".beads", ".coven", "a/b", "a/c/d", "odd*[x]\\", "q?"}))
	files := []string{"f", "a/f", "a/b/f", "a/b/x/f", "a/c/f", "a/c/d/f", "a/x/f", "ab/f", "odd*[x]\\/f", "oddy/f", "q?/f", "qq/f", ".beads/f"}
	r := sample(t)
	for _, name := range files {
		write(t, filepath.Join(r.Root, name), "x")
	}
	gitIn(t, r.Root, "add", "-A")
	gitIn(t, r.Root, "config", "core.sparseCheckout", "true")
	gitIn(t, r.Root, "config", "core.sparseCheckoutCone", "true")
	write(t, filepath.Join(r.GitDir, "info", "sparse-checkout"), c.Patterns())
	gitIn(t, r.Root, "read-tree", "-m", "-u", gitIn(t, r.Root, "write-tree"))
	for _, name := range files {
		equal(t, name, !exists(filepath.Join(r.Root, name)), c.Skips(name))
	}
}

// twins applies the same operations to a sparse and to a full worktree.
type twins struct {
	t      *testing.T
	random *rand.Rand
	repos  [2]*repo.Repo
	trees  [2]*repo.Worktree
	n      int
	saved  [][2]int // numbers of snapshots
}

// After random histories, a sparse worktree has the same trees as a full one. SPARSE_SEED repeats one
// history.
func TestSparseTwins(t *testing.T) {
	oneAtATime(t)
	seeds, first := 4, 0
	if isLong() {
		seeds = 20
	}
	if text := os.Getenv("SPARSE_SEED"); text != "" {
		first, seeds = value[int](t)(strconv.Atoi(text)), 1
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(first+seed), func(t *testing.T) {
			t.Parallel()
			c := &twins{t: t, random: rand.New(rand.NewPCG(uint64(first+seed), 3)), repos: [2]*repo.Repo{wide(t), wide(t)}}
			c.repos[0].Sparse = repo.Sparse{Dirs: []string{"in"}}
			c.both(func(i int) { c.trees[i] = add(t, c.repos[i], "T") })
			for range 40 {
				c.step()
			}
			c.land()
		})
	}
}

func (c *twins) both(do func(i int)) {
	for i := range c.trees {
		do(i)
	}
}

func (c *twins) step() {
	c.n++
	steps := []func(){c.write, c.write, c.write, c.remove, c.remove, c.target, c.commit, c.agent, c.integrate, c.snapshot, c.snapshot, c.revert, c.revert, c.restore, c.recreate, c.forget}
	steps[c.random.IntN(len(steps))]()
	c.same()
}

// same checks that both worktrees have the same tree, and the same bytes for files that both contain.
func (c *twins) same() {
	c.t.Helper()
	var got [2]string
	c.both(func(i int) { got[i] = value[string](c.t)(content.Tree(c.t.Context(), c.trees[i])) })
	if got[0] != got[1] {
		gitIn(c.t, c.repos[0].Root, "fetch", "-q", c.repos[1].Root)
		c.t.Fatalf("the trees differ:\n%s\nfull:\n%s", gitIn(c.t, c.repos[0].Root, "ls-tree", "-r", got[0]), gitIn(c.t, c.repos[1].Root, "ls-tree", "-r", got[1]))
	}
	for _, name := range value[[]string](c.t)(content.FilesBelow(c.trees[0].Path, ".")) {
		if name != ".git" {
			equal(c.t, name, read(c.t, filepath.Join(c.trees[0].Path, name)), read(c.t, filepath.Join(c.trees[1].Path, name)))
		}
	}
}

func (c *twins) name() string {
	all := []string{"in/a", "in/b", "in/deep/c", "in/n", "out/a", "out/b", "out/deep/c", "out/deep/d", "out/n", "new/n", "file1.txt"}
	return all[c.random.IntN(len(all))]
}

func (c *twins) write() {
	name := c.name()
	text := fmt.Sprint(name, "\n1\n2\n3\n4\n5\n", c.n, "\n")
	c.t.Log("write", name)
	c.both(func(i int) { write(c.t, filepath.Join(c.trees[i].Path, name), text) })
}

// remove deletes a file that both contain.
func (c *twins) remove() {
	name := c.name()
	if !exists(filepath.Join(c.trees[0].Path, name)) {
		return
	}
	c.t.Log("remove", name)
	c.both(func(i int) { must(c.t, os.Remove(filepath.Join(c.trees[i].Path, name))) })
}

func (c *twins) target() {
	name := c.name()
	c.t.Log("the target changes", name)
	c.both(func(i int) {
		onMain(c.t, c.repos[i], name, fmt.Sprint("theirs ", c.n, "\n", name, "\n1\n2\n3\n4\n5\n"))
	})
}

func (c *twins) commit() {
	c.t.Log("commit")
	c.both(func(i int) {
		value[commit.Commit](c.t)(commit.Create(c.t.Context(), c.trees[i], commit.Request{Message: "m", TargetTip: targetOf(c.repos[i], c.t).Tip}))
	})
	clean(c.t, c.trees[0])
}

// agent commits with the worktree's own git.
func (c *twins) agent() {
	c.commit()
	c.t.Log("the agent commits")
	c.both(func(i int) {
		write(c.t, filepath.Join(c.trees[i].Path, "in", "agent"), fmt.Sprint(c.n))
		gitIn(c.t, c.trees[i].Path, "add", "-A")
		gitIn(c.t, c.trees[i].Path, "commit", "-qm", "agent")
	})
}

func (c *twins) integrate() {
	c.commit()
	c.t.Log("integrate")
	var failed [2]bool
	c.both(func(i int) {
		_, err := integrate.Merge(c.t.Context(), c.trees[i], targetOf(c.repos[i], c.t))
		if failed[i] = err != nil; failed[i] {
			_ = wantError[*integrate.ConflictError](c.t, err)
		}
	})
	equal(c.t, "conflict", failed[0], failed[1])
	if !failed[0] {
		return
	}
	c.t.Log("resolve a conflict")
	c.both(func(i int) {
		conflict := value[integrate.Conflicted](c.t)(integrate.MergeConflicted(c.t.Context(), c.trees[i], targetOf(c.repos[i], c.t), "s"))
		for _, name := range conflict.Files {
			write(c.t, filepath.Join(c.trees[i].Path, name), fmt.Sprint("resolved ", c.n, "\n"))
		}
		value[commit.Commit](c.t)(finish(c.t, c.trees[i], conflict))
	})
}

func (c *twins) snapshot() {
	c.t.Log("snapshot")
	var numbers [2]int
	c.both(func(i int) {
		numbers[i] = value[snapshot.Snapshot](c.t)(snapshot.Take(c.t.Context(), c.trees[i], "s", "")).N
	})
	c.saved = append(c.saved, numbers)
}

func (c *twins) revert() {
	if len(c.saved) == 0 {
		return
	}
	to := c.saved[c.random.IntN(len(c.saved))]
	c.t.Log("revert to", to)
	var before [2]int
	c.both(func(i int) {
		before[i] = value[snapshot.Snapshot](c.t)(snapshot.Revert(c.t.Context(), c.trees[i], "s", to[i])).N
	})
	c.saved = append(c.saved, before)
}

func (c *twins) restore() {
	c.t.Log("restore")
	c.both(func(i int) {
		value[snapshot.Snapshot](c.t)(snapshot.Restore(c.t.Context(), c.trees[i], "s", value[string](c.t)(c.trees[i].Tip(c.t.Context()))))
	})
}

func (c *twins) recreate() {
	c.snapshot()
	c.t.Log("recreate")
	c.both(func(i int) {
		must(c.t, file.RemoveAll(c.trees[i].Path))
		again, _, err := Recreate(c.t.Context(), c.repos[i], "T", "s")
		must(c.t, err)
		c.trees[i] = again
	})
}

// forget deletes coven's indexes.
func (c *twins) forget() {
	c.commit()
	c.t.Log("lose the indexes")
	c.both(func(i int) {
		for _, name := range []string{content.CommitIndex, content.SnapshotIndex} {
			must(c.t, os.RemoveAll(c.trees[i].StatePath(name)))
		}
	})
}

func (c *twins) land() {
	c.integrate()
	var landed [2]string
	c.both(func(i int) { landed[i] = landAll(c.t, c.trees[i]) })
	equal(c.t, "landed", landed[0], landed[1])
	equal(c.t, "tree", gitIn(c.t, c.repos[0].Root, "rev-parse", "main^{tree}"), gitIn(c.t, c.repos[1].Root, "rev-parse", "main^{tree}"))
}

// A kill while the target's changes outside the cone are merged loses none of them, and none counts as a
// change of the task.
func TestSparseSurvivesKill(t *testing.T) {
	oneAtATime(t)
	points := []string{
		"integrate.commit", "integrate.journal", "integrate.worktree", "integrate.ref", "integrate.return",
		"conflicted.recorded", "conflicted.worktree", "conflicted.return",
		"recreate.registered", "recreate.filled",
	}
	for _, point := range points {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			r, w := sparseRepo(t)
			ctx := t.Context()
			write(t, filepath.Join(w.Path, "out/a"), "mine\n")
			commitAll(t, w, "mine")
			onMain(t, r, "out/b", "theirs\n")
			onMain(t, r, "out/new", "theirs\n")
			onMain(t, r, "in/a", "theirs\n")
			conflicts := strings.HasPrefix(point, "conflicted.")
			if conflicts {
				onMain(t, r, "out/a", "theirs\n")
			}
			claimFor(t, r, "T")
			before := value[snapshot.Snapshot](t)(snapshot.Take(ctx, w, "s", ""))
			if strings.HasPrefix(point, "recreate.") {
				must(t, file.RemoveAll(w.Path))
			}
			intent := filepath.Join(t.TempDir(), "intent")
			if !strings.HasPrefix(point, "integrate.") {
				intent = point
			}
			killAt(t, actorCommand(r.Root, "T", intent, land.Squash), point)
			if strings.HasPrefix(point, "recreate.") {
				again, _, err := Recreate(ctx, r, "T", "s")
				must(t, err)
				w = again
			}
			if conflicts {
				value[snapshot.Snapshot](t)(snapshot.Revert(ctx, w, "s", before.N))
				equal(t, "taken back", gitIn(t, r.Root, "diff", "--name-only", w.Branch, value[string](t)(content.Tree(ctx, w))), "")
				c := value[integrate.Conflicted](t)(integrate.MergeConflicted(ctx, w, targetOf(r, t), "s"))
				write(t, filepath.Join(w.Path, "out/a"), "mine\n")
				value[commit.Commit](t)(finish(t, w, c))
			}
			equal(t, "landed", landAll(t, w), "out/a")
			want := "in/a in/b in/deep/c out/a"
			if strings.HasPrefix(point, "recreate.") {
				want = "in/a in/b in/deep/c" // it was committed
			}
			equal(t, "files", fileNames(t, w), want)
			clean(t, w)
		})
	}
}

// A submodule outside the cone is not populated, but is still in the landed tree.
func TestSparseSubmodule(t *testing.T) {
	r, upstream := superproject(t)
	gitIn(t, r.Root, allowed("submodule", "--quiet", "add", upstream, "out/lib")...)
	write(t, filepath.Join(r.Root, "in/a"), "a\n")
	gitIn(t, r.Root, "add", "in")
	gitIn(t, r.Root, "commit", "-qm", "another")
	r.Submodules, r.Sparse = true, repo.Sparse{Dirs: []string{"in", "lib"}}
	w := add(t, r, "T")
	equal(t, "warnings", len(value[supply.Included](t)(supply.IncludedFiles(w)).Warnings), 0)
	equal(t, "files", fileNames(t, w), "in/a lib/.git lib/lib.c lib/other.c")
	write(t, filepath.Join(w.Path, "in/a"), "mine\n")
	value[snapshot.Snapshot](t)(snapshot.Take(t.Context(), w, "s", ""))
	equal(t, "landed", landAll(t, w), "in/a")
	equal(t, "submodule", gitIn(t, r.Root, "rev-parse", "main:out/lib"), linkAt(t, r, "main"))
}

// A revert restores the deletion of a file outside the cone, and the file.
func TestSparseRevertDeletion(t *testing.T) {
	_, w := sparseRepo(t)
	ctx := t.Context()
	write(t, filepath.Join(w.Path, "out/a"), "mine\n")
	commitAll(t, w, "mine")
	there := value[snapshot.Snapshot](t)(snapshot.Take(ctx, w, "s", ""))
	must(t, os.Remove(filepath.Join(w.Path, "out/a")))
	gone := value[snapshot.Snapshot](t)(snapshot.Take(ctx, w, "s", ""))
	tree := value[string](t)(content.Tree(ctx, w))
	value[snapshot.Snapshot](t)(snapshot.Revert(ctx, w, "s", there.N))
	equal(t, "file", read(t, filepath.Join(w.Path, "out/a")), "mine\n")
	clean(t, w)
	value[snapshot.Snapshot](t)(snapshot.Revert(ctx, w, "s", gone.N))
	equal(t, "deleted", value[string](t)(content.Tree(ctx, w)), tree)
	equal(t, "committed", strings.Join(commitAll(t, w, "deleted").Files, " "), "out/a")
}
