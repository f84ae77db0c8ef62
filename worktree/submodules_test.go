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
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/land"
	"github.com/coven-run/coven/worktree/snapshot"
)

// allowed permits git to clone submodules from other directories.
func allowed(args ...string) []string {
	return append([]string{"-c", "protocol.file.allow=always"}, args...)
}

// superproject creates a repository with the submodule lib, which is cloned from upstream.
func superproject(t testing.TB) (r *repo.Repo, upstream string) {
	t.Helper()
	upstream = value[string](t)(filepath.EvalSymlinks(t.TempDir()))
	gitIn(t, upstream, "init", "-q", "-b", "main")
	write(t, filepath.Join(upstream, "lib.c"), "1\n")
	write(t, filepath.Join(upstream, "other.c"), "other\n")
	gitIn(t, upstream, "add", "-A")
	gitIn(t, upstream, "commit", "-qm", "lib")
	r = sample(t)
	gitIn(t, r.Root, allowed("submodule", "--quiet", "add", upstream, "lib")...)
	gitIn(t, r.Root, "commit", "-qm", "add lib")
	return r, upstream
}

// populate checks out the submodules in the worktree, as an agent does.
func populate(t testing.TB, w *repo.Worktree) {
	t.Helper()
	gitIn(t, w.Path, allowed("submodule", "--quiet", "update", "--init")...)
}

// bump creates a commit in the submodule's upstream and makes main use it.
func bump(t testing.TB, r *repo.Repo, upstream string) string {
	t.Helper()
	gitIn(t, upstream, "commit", "-q", "--allow-empty", "-m", "upstream")
	oid := gitIn(t, upstream, "rev-parse", "main")
	gitIn(t, r.Root, "update-index", "--cacheinfo", "160000,"+oid+",lib")
	gitIn(t, r.Root, "commit", "-qm", "bump lib")
	return oid
}

func linkAt(t testing.TB, r *repo.Repo, treeish string) string {
	t.Helper()
	line := gitIn(t, r.Root, "ls-tree", treeish, "lib")
	if line == "" {
		return ""
	}
	return strings.Fields(line)[2]
}

// landAll commits, integrates and lands the worktree, and returns the files that landed.
func landAll(t testing.TB, w *repo.Worktree) string {
	t.Helper()
	value[commit.Commit](t)(commit.Create(t.Context(), w, commit.Request{Message: "all", TargetTip: targetOf(w.Repo, t).Tip}))
	c := value[integrate.Landing](t)(integrate.Merge(t.Context(), w, targetOf(w.Repo, t)))
	value[integrate.Landing](t)(landTask(t, w, c, land.Squash))
	return gitIn(t, w.Repo.Root, "diff", "--name-only", c.Old, "main")
}

// A task that has a submodule checked out does not move it back after the target has moved it.
func TestSubmoduleStaysBehind(t *testing.T) {
	r, upstream := superproject(t)
	w := add(t, r, "T")
	populate(t, w)
	write(t, filepath.Join(w.Path, "a"), "a")
	write(t, filepath.Join(w.Path, "lib", "lib.c"), "an edit\n")
	commitAll(t, w, "first")
	head := gitIn(t, filepath.Join(w.Path, "lib"), "rev-parse", "HEAD")
	moved := bump(t, r, upstream)
	value[integrate.Landing](t)(integrate.Merge(t.Context(), w, targetOf(r, t)))
	write(t, filepath.Join(w.Path, "b"), "b")
	c := commitAll(t, w, "second")
	equal(t, "files", strings.Join(c.Files, " "), "b")
	equal(t, "landed", landAll(t, w), "a\nb")
	equal(t, "submodule", linkAt(t, r, "main"), moved)
	equal(t, "its checkout", gitIn(t, filepath.Join(w.Path, "lib"), "rev-parse", "HEAD"), head)
	equal(t, "the edit", read(t, filepath.Join(w.Path, "lib", "lib.c")), "an edit\n")
}

// The agent's own `git commit -a` commits the old commit of the submodule; coven corrects that.
func TestSubmoduleCommittedByTheAgent(t *testing.T) {
	r, upstream := superproject(t)
	w := add(t, r, "T")
	populate(t, w)
	write(t, filepath.Join(w.Path, "file0.txt"), "mine\n")
	commitAll(t, w, "first")
	moved := bump(t, r, upstream)
	value[integrate.Landing](t)(integrate.Merge(t.Context(), w, targetOf(r, t)))
	write(t, filepath.Join(w.Path, "file1.txt"), "mine\n")
	gitIn(t, w.Path, "commit", "-qam", "all of it")
	equal(t, "files of the agent", gitIn(t, w.Path, "show", "--format=", "--name-only"), "file1.txt\nlib")
	equal(t, "landed", landAll(t, w), "file0.txt\nfile1.txt")
	equal(t, "submodule", linkAt(t, r, "main"), moved)
}

// Later changes of the submodule by the agent are its work, even a deliberate return to the old commit, if
// coven has seen HEAD at another commit in between.
func TestSubmoduleMovedLater(t *testing.T) {
	r, upstream := superproject(t)
	w := add(t, r, "T")
	populate(t, w)
	lib := filepath.Join(w.Path, "lib")
	old := gitIn(t, lib, "rev-parse", "HEAD")
	moved := bump(t, r, upstream)
	value[integrate.Landing](t)(integrate.Merge(t.Context(), w, targetOf(r, t)))
	populate(t, w)
	equal(t, "head", gitIn(t, lib, "rev-parse", "HEAD"), moved)
	write(t, filepath.Join(w.Path, "a"), "a")
	equal(t, "files", strings.Join(commitAll(t, w, "no move").Files, " "), "a")
	gitIn(t, lib, "checkout", "-q", old)
	equal(t, "files", strings.Join(commitAll(t, w, "back").Files, " "), "lib")
	equal(t, "submodule", linkAt(t, r, w.Branch), old)
}

// If the target removes the submodule, its checkout stays, and its files do not become the task's.
func TestSubmoduleRemovedByTheTarget(t *testing.T) {
	r, _ := superproject(t)
	w := add(t, r, "T")
	populate(t, w)
	write(t, filepath.Join(w.Path, "a"), "a")
	commitAll(t, w, "first")
	gitIn(t, r.Root, "rm", "-q", "lib")
	gitIn(t, r.Root, "commit", "-qm", "no lib")
	value[integrate.Landing](t)(integrate.Merge(t.Context(), w, targetOf(r, t)))
	write(t, filepath.Join(w.Path, "b"), "b")
	equal(t, "files", strings.Join(commitAll(t, w, "second").Files, " "), "b")
	equal(t, "landed", landAll(t, w), "a\nb")
	equal(t, "its file", read(t, filepath.Join(w.Path, "lib", "lib.c")), "1\n")
}

// The same while an agent resolves a conflict, and when the resolution is reverted.
func TestSubmoduleInAConflictedMerge(t *testing.T) {
	r, upstream := superproject(t)
	ctx := t.Context()
	w := add(t, r, "T")
	populate(t, w)
	old := linkAt(t, r, "main")
	write(t, filepath.Join(w.Path, "file0.txt"), "mine\n")
	commitAll(t, w, "mine")
	onMain(t, r, "file0.txt", "theirs\n")
	moved := bump(t, r, upstream)
	before := value[snapshot.Snapshot](t)(snapshot.Take(ctx, w, "s", ""))
	c := value[integrate.Conflicted](t)(integrate.MergeConflicted(ctx, w, targetOf(r, t), "s"))
	equal(t, "merged", linkAt(t, r, value[string](t)(content.Tree(ctx, w))), moved)
	value[snapshot.Snapshot](t)(snapshot.Revert(ctx, w, "s", before.N))
	equal(t, "taken back", linkAt(t, r, value[string](t)(content.Tree(ctx, w))), old)
	c = value[integrate.Conflicted](t)(integrate.MergeConflicted(ctx, w, targetOf(r, t), c.Session))
	write(t, filepath.Join(w.Path, "file0.txt"), "both\n")
	value[commit.Commit](t)(finish(t, w, c))
	equal(t, "landed", landAll(t, w), "file0.txt")
	equal(t, "submodule", linkAt(t, r, "main"), moved)
}

// A revert undoes the task's move of a submodule to a new commit. The submodule's checkout does not move.
func TestRevertSubmodule(t *testing.T) {
	r, _ := superproject(t)
	ctx := t.Context()
	w := add(t, r, "T")
	populate(t, w)
	lib := filepath.Join(w.Path, "lib")
	before := linkAt(t, r, "main")
	first := value[snapshot.Snapshot](t)(snapshot.Take(ctx, w, "s", "Submodule: a note that looks like it"))
	write(t, filepath.Join(lib, "lib.c"), "2\n")
	gitIn(t, lib, "commit", "-qam", "two")
	head := gitIn(t, lib, "rev-parse", "HEAD")
	write(t, filepath.Join(w.Path, "a"), "a")
	undo := value[snapshot.Snapshot](t)(snapshot.Revert(ctx, w, "s", first.N))
	equal(t, "note", value[[]snapshot.Snapshot](t)(snapshot.List(ctx, w.Repo, "s"))[0].Note, "Submodule: a note that looks like it")
	equal(t, "reverted", linkAt(t, r, value[string](t)(content.Tree(ctx, w))), before)
	equal(t, "its file", read(t, filepath.Join(lib, "lib.c")), "1\n")
	equal(t, "its HEAD", gitIn(t, lib, "rev-parse", "HEAD"), head)
	value[snapshot.Snapshot](t)(snapshot.Revert(ctx, w, "s", undo.N, "a"))
	equal(t, "one path", linkAt(t, r, value[string](t)(content.Tree(ctx, w))), before)
	value[snapshot.Snapshot](t)(snapshot.Revert(ctx, w, "s", undo.N))
	equal(t, "undone", linkAt(t, r, value[string](t)(content.Tree(ctx, w))), head)
	equal(t, "undone file", read(t, filepath.Join(lib, "lib.c")), "2\n")

	commit := value[string](t)(w.Tip(ctx))
	value[snapshot.Snapshot](t)(snapshot.Restore(ctx, w, "s", commit))
	equal(t, "restored", linkAt(t, r, value[string](t)(content.Tree(ctx, w))), before)
	must(t, file.RemoveAll(w.Path))
	again, from, err := Recreate(ctx, r, "T", "s")
	must(t, err)
	equal(t, "recreated", from.Commit != "", true)
	equal(t, "without a submodule", linkAt(t, r, value[string](t)(content.Tree(ctx, again))), before)
}

// linkCase is a random history of a task with a submodule, and its expected state.
type linkCase struct {
	t        *testing.T
	random   *rand.Rand
	r        *repo.Repo
	w        *repo.Worktree
	upstream string
	n        int

	head    string // of the submodule in the worktree, empty if not checked out
	counts  string // the commit that it counts as
	tip     string // on the task's branch
	base    string // on the target at the last integration
	target  string
	pending bool // the target has changed since
	files   map[string]bool
	saved   map[int]string // by number of a snapshot: the commit that it counted as
}

// Random histories: after any sequence of operations on a submodule, exactly the task's changes land.
// LINK_SEED repeats one history.
func TestSubmoduleHistories(t *testing.T) {
	oneAtATime(t)
	seeds := 4
	if isLong() {
		seeds = 100
	}
	first := 0
	if text := os.Getenv("LINK_SEED"); text != "" {
		first, seeds = value[int](t)(strconv.Atoi(text)), 1
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(first+seed), func(t *testing.T) {
			t.Parallel()
			c := newLinkCase(t, uint64(first+seed))
			for range 25 {
				c.step()
			}
			c.finish()
		})
	}
}

func newLinkCase(t *testing.T, seed uint64) *linkCase {
	r, upstream := superproject(t)
	c := &linkCase{t: t, random: rand.New(rand.NewPCG(seed, 5)), r: r, upstream: upstream, w: add(t, r, "T"), files: map[string]bool{}, saved: map[int]string{}}
	c.target = linkAt(t, r, "main")
	c.base, c.tip, c.counts = c.target, c.target, c.target
	claimFor(t, r, "T")
	return c
}

func (c *linkCase) lib() string { return filepath.Join(c.w.Path, "lib") }

func (c *linkCase) step() {
	c.n++
	steps := []func(){c.populate, c.agentCommits, c.agentCommits, c.agentCommitsAll, c.bump, c.bump, c.edit, c.commit, c.integrateAgain, c.snapshot, c.snapshot, c.revert, c.revert, c.restore, c.kill}
	steps[c.random.IntN(len(steps))]()
	c.check()
}

func (c *linkCase) check() {
	c.t.Helper()
	equal(c.t, "counts as", linkAt(c.t, c.r, value[string](c.t)(content.Tree(c.t.Context(), c.w))), c.counts)
	if c.head != "" {
		equal(c.t, "HEAD", gitIn(c.t, c.lib(), "rev-parse", "HEAD"), c.head)
	}
}

// populate checks out the commit in the index of the worktree's own git.
func (c *linkCase) populate() {
	c.t.Log("populate")
	populate(c.t, c.w)
	if head := gitIn(c.t, c.lib(), "rev-parse", "HEAD"); head != c.head {
		c.head, c.counts = head, head
	}
}

func (c *linkCase) agentCommits() {
	if c.head == "" {
		return
	}
	c.t.Log("the agent commits in the submodule")
	write(c.t, filepath.Join(c.lib(), fmt.Sprint("agent", c.n)), "x")
	gitIn(c.t, c.lib(), "add", "-A")
	gitIn(c.t, c.lib(), "commit", "-qm", "agent")
	gitIn(c.t, c.lib(), "push", "-q", "origin", fmt.Sprint("HEAD:refs/heads/agent", c.n))
	c.head = gitIn(c.t, c.lib(), "rev-parse", "HEAD")
	c.counts = c.head
}

// agentCommitsAll commits the submodule's HEAD, as git does.
func (c *linkCase) agentCommitsAll() {
	c.edit()
	c.t.Log("the agent commits all")
	gitIn(c.t, c.w.Path, "add", "-A")
	gitIn(c.t, c.w.Path, "commit", "-qm", "agent")
	c.tip = linkAt(c.t, c.r, c.w.Branch)
	if c.head == "" {
		c.counts = c.tip
	}
}

func (c *linkCase) edit() {
	c.t.Log("edit")
	name := fmt.Sprint("edit", c.n)
	write(c.t, filepath.Join(c.w.Path, name), "x")
	c.files[name] = true
}

func (c *linkCase) bump() {
	c.t.Log("the target moves the submodule")
	c.target, c.pending = bump(c.t, c.r, c.upstream), true
}

func (c *linkCase) commit() {
	c.t.Log("commit")
	done := value[commit.Commit](c.t)(commit.Create(c.t.Context(), c.w, commit.Request{Message: "m", TargetTip: targetOf(c.r, c.t).Tip}))
	c.tip = c.counts
	equal(c.t, "committed", linkAt(c.t, c.r, done.Tree), c.tip)
}

func (c *linkCase) conflicts() bool {
	return c.tip != c.base && c.target != c.base && c.tip != c.target
}

func (c *linkCase) integrate() bool {
	c.commit()
	c.t.Log("integrate")
	got, err := integrate.Merge(c.t.Context(), c.w, targetOf(c.r, c.t))
	if c.conflicts() {
		equal(c.t, "conflict", strings.Join(wantError[*integrate.ConflictError](c.t, err).Files, " "), "lib")
		return false
	}
	must(c.t, err)
	c.integrated()
	equal(c.t, "integrated", linkAt(c.t, c.r, got.Tree), c.tip)
	return true
}

func (c *linkCase) integrateAgain() { c.integrate() }

func (c *linkCase) integrated() {
	if c.tip == c.base {
		c.tip = c.target
	}
	c.base, c.counts, c.pending = c.target, c.tip, false
}

// kill kills an integration, and repeats it.
func (c *linkCase) kill() {
	c.commit()
	if !c.pending || c.conflicts() {
		return
	}
	points := []string{"integrate.merged", "integrate.commit", "integrate.kept", "integrate.journal", "integrate.worktree", "integrate.ref", "integrate.return"}
	point := points[c.random.IntN(len(points))]
	c.t.Log("kill at", point)
	killAt(c.t, actorCommand(c.r.Root, "T", filepath.Join(c.t.TempDir(), "intent"), land.Squash), point)
	value[integrate.Landing](c.t)(integrate.Merge(c.t.Context(), c.w, targetOf(c.r, c.t)))
	c.integrated()
}

func (c *linkCase) snapshot() {
	c.t.Log("snapshot")
	c.saved[value[snapshot.Snapshot](c.t)(snapshot.Take(c.t.Context(), c.w, "s", "")).N] = c.counts
}

func (c *linkCase) revert() {
	numbers := []int{}
	for n := range c.saved {
		numbers = append(numbers, n)
	}
	if len(numbers) == 0 {
		return
	}
	slices.Sort(numbers)
	n := numbers[c.random.IntN(len(numbers))]
	c.t.Log("revert to", n)
	before := value[snapshot.Snapshot](c.t)(snapshot.Revert(c.t.Context(), c.w, "s", n))
	c.saved[before.N] = c.counts
	c.wentBack(c.saved[n])
}

// restore restores the branch's content.
func (c *linkCase) restore() {
	c.t.Log("restore")
	before := value[snapshot.Snapshot](c.t)(snapshot.Restore(c.t.Context(), c.w, "s", value[string](c.t)(c.w.Tip(c.t.Context()))))
	c.saved[before.N] = c.counts
	c.wentBack(c.tip)
}

func (c *linkCase) wentBack(link string) {
	if c.head != "" {
		c.counts = link
	}
}

// finish lands the task: its changes of the submodule, and no others.
func (c *linkCase) finish() {
	if !c.integrate() {
		return
	}
	want := c.tip != c.target
	got := value[integrate.Landing](c.t)(integrate.Merge(c.t.Context(), c.w, targetOf(c.r, c.t)))
	value[integrate.Landing](c.t)(landTask(c.t, c.w, got, land.Squash))
	landed := strings.Split(gitIn(c.t, c.r.Root, "diff", "--name-only", got.Old, "main"), "\n")
	equal(c.t, "the submodule landed", slices.Contains(landed, "lib"), want)
	equal(c.t, "as", linkAt(c.t, c.r, "main"), c.tip)
	for _, name := range landed {
		if name != "" && name != "lib" && !c.files[name] {
			c.t.Fatalf("%s landed", name)
		}
	}
}
