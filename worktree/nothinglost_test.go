package worktree

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/isolation"
	"github.com/coven-run/coven/worktree/pool"
	"github.com/coven-run/coven/worktree/rescue"
	"github.com/coven-run/coven/worktree/snapshot"
)

// TestNothingLost destroys random worktrees while git fails. Each case creates a repository with a task's
// worktree in a random state and lists everything that exists without using coven's code (see
// inventory_test.go). Then it runs an operation that removes or overwrites files in a separate process, in
// which one of the git processes fails (see faults, and testdata/failinggit). Whether or not the operation
// succeeds, everything must either be in its old place or be restorable with coven rescue restore or coven
// revert. Then the same operation is run again without a fault: it must succeed, and again nothing may be
// lost.
//
// LOST_CASES is the number of cases, by default 16; `make soak` runs 5,000. LOST_SEED runs a single case.
func TestNothingLost(t *testing.T) {
	oneAtATime(t)
	if seed, err := strconv.ParseUint(os.Getenv("LOST_SEED"), 10, 64); err == nil {
		t.Log(runCase(t, t.TempDir(), seed))
		return
	}
	all := seeds(16, 140)
	if n, err := strconv.ParseUint(os.Getenv("LOST_CASES"), 10, 64); err == nil {
		all = seeds(n, n)
	}
	next, stop := iter.Pull(all)
	defer stop()
	var mu sync.Mutex
	cases := 0
	var counts sync.Map // the operations that were run
	t.Run("cases", func(t *testing.T) {
		for range runtime.GOMAXPROCS(0) {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				for {
					mu.Lock()
					seed, ok := next()
					if ok {
						cases++
					}
					mu.Unlock()
					if !ok {
						return
					}
					t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
						kind := runCase(t, t.TempDir(), seed)
						counts.Store(kind, true)
					})
				}
			})
		}
	})
	for _, op := range destructions() {
		if _, ran := counts.Load(op.name); !ran && cases >= 140 {
			t.Errorf("no case of %s was run", op.name)
		}
	}
}

type doomedCase struct {
	t        *testing.T
	random   *rand.Rand
	op       destruction
	dir      string
	repo     *repo.Repo
	w        *repo.Worktree
	script   []string                   // the actions so far, for the report
	exported map[string]map[string]item // the stored files, by commit
}

const (
	lostTask    = "T"
	lostSession = "s"
)

func (c *doomedCase) log(format string, args ...any) {
	c.script = append(c.script, fmt.Sprintf(format, args...))
}

// chance returns true with a probability of n percent.
func (c *doomedCase) chance(n int) bool { return c.random.IntN(100) < n }

func pick[T any](c *doomedCase, all ...T) T { return all[c.random.IntN(len(all))] }

// runCase runs the case with this seed and returns the name of its operation.
func runCase(t *testing.T, dir string, seed uint64) (name string) {
	t.Helper()
	c := &doomedCase{t: t, random: rand.New(rand.NewPCG(seed, 16)), dir: value[string](t)(filepath.EvalSymlinks(dir)), exported: map[string]map[string]item{}}
	defer func() {
		if t.Failed() {
			t.Logf("LOST_SEED=%d\n%s", seed, strings.Join(c.script, "\n"))
		}
	}()
	c.op = pick(c, destructions()...)
	f := pick(c, faults()...)
	at := 1 + c.random.IntN(c.random.IntN(60)+1)
	c.makeRepository()
	c.makeWork()
	c.op.prepare(c)
	before := c.takeInventory()
	if c.op.exempt != nil {
		c.op.exempt(c, before)
	}
	c.log("%s, git process %d: %s", c.op.name, at, f)

	out := c.destroy(f, at)
	c.log("it said: %s", out)
	c.mustHave(before, "after the fault")
	if out = c.destroy("", 0); out != "" && !strings.Contains(out, "ignored files of") {
		t.Errorf("it does not work again: %s", out)
	}
	c.mustHave(before, "after it was done again")
	if c.op.reverts && out == "" {
		c.revertsTo(before)
	}
	return c.op.name
}

// A destruction is an operation that removes or overwrites files of a worktree.
type destruction struct {
	name    string
	lands   bool              // the work has landed
	ends    bool              // the worktree is isolated
	reverts bool              // coven revert undoes it
	prepare func(*doomedCase) // prepares the worktree for the operation
	run     func(context.Context, *repo.Repo) error
	// exempt removes the items from the inventory that the user has permitted to lose.
	exempt func(*doomedCase, *inventory)
}

func nothing(*doomedCase) {}

// destructions lists the operations that coven's commands call: worktree remove, reject, cancel, retry, run
// over leftovers and the removal after a landing call Remove, the latter with a pool; doctor --fix calls
// Remove and Clear; revert, retry --from and the resumption of a step call Revert and Restore; resume calls
// Recreate for a missing worktree; a review that changed commits calls PutTip; the step of an agent ends
// with TakeCommits.
func destructions() []destruction {
	find := func(do func(context.Context, *repo.Worktree) error) func(context.Context, *repo.Repo) error {
		return func(ctx context.Context, r *repo.Repo) error {
			w, err := r.Find(ctx, lostTask)
			if err != nil {
				return err
			}
			return do(ctx, w)
		}
	}
	remove := func(req RemoveRequest) func(context.Context, *repo.Repo) error {
		return func(ctx context.Context, r *repo.Repo) error {
			w, err := Leftover(ctx, r, lostTask)
			if errors.Is(err, repo.ErrNoWorktree) {
				return nil
			}
			if err == nil {
				_, err = Remove(ctx, w, req)
			}
			return err
		}
	}
	clearAll := func(ctx context.Context, r *repo.Repo) error {
		all, err := FindStale(ctx, r, nobody)
		for _, s := range all {
			_, clearErr := Clear(ctx, r, s)
			err = errors.Join(err, clearErr)
		}
		return err
	}
	return []destruction{
		{name: "remove", prepare: nothing, run: remove(RemoveRequest{Note: "lost"})},
		{name: "remove --keep-big", prepare: nothing, run: remove(RemoveRequest{KeepBig: true})},
		{name: "remove --drop-ignored", prepare: nothing, run: remove(RemoveRequest{DropIgnored: true}), exempt: exemptIgnored},
		{name: "remove what has landed", lands: true, prepare: nothing, exempt: exemptLanded, run: func(ctx context.Context, r *repo.Repo) error {
			tip, err := os.ReadFile(filepath.Join(os.Getenv("LOST"), "landed"))
			if err != nil {
				return err
			}
			return remove(RemoveRequest{Landed: string(tip)})(ctx, r)
		}},
		{name: "remove what has landed, for the pool", lands: true, prepare: nothing, exempt: exemptLanded, run: func(ctx context.Context, r *repo.Repo) error {
			tip, err := os.ReadFile(filepath.Join(os.Getenv("LOST"), "landed"))
			if err != nil {
				return err
			}
			r.Pool = repo.Pool{Bytes: 1 << 30}
			defer pool.Wait(r)
			return remove(RemoveRequest{Landed: string(tip)})(ctx, r)
		}},
		{name: "remove a deleted worktree", prepare: deleteFiles, run: remove(RemoveRequest{})},
		{
			name: "revert", prepare: nothing, reverts: true,
			run: find(func(ctx context.Context, w *repo.Worktree) error {
				_, err := snapshot.Revert(ctx, w, lostSession, 1)
				return err
			}),
		},
		{
			name: "revert a path", prepare: nothing, reverts: true,
			run: find(func(ctx context.Context, w *repo.Worktree) error {
				_, err := snapshot.Revert(ctx, w, lostSession, 1, "dir")
				if errors.As(err, new(*snapshot.NoPathError)) {
					return nil
				}
				return err
			}),
		},
		{
			name: "revert files", prepare: nothing, reverts: true,
			run: find(func(ctx context.Context, w *repo.Worktree) error {
				var err error
				for _, name := range []string{"file0.txt", "file1.txt", "new", "dir/new"} {
					if _, failed := snapshot.Revert(ctx, w, lostSession, 1, name); !errors.As(failed, new(*snapshot.NoPathError)) {
						err = errors.Join(err, failed)
					}
				}
				return err
			}),
		},
		{
			name: "restore a commit", prepare: nothing, reverts: true,
			run: find(func(ctx context.Context, w *repo.Worktree) error {
				_, err := snapshot.Restore(ctx, w, lostSession, "main")
				return err
			}),
		},
		{name: "collect", ends: true, prepare: nothing, run: find(func(ctx context.Context, w *repo.Worktree) error {
			err := isolation.TakeCommits(ctx, w)
			if refused := (*isolation.CommitsError)(nil); errors.As(err, &refused) {
				return nil // they stay in the private directory
			}
			return err
		})},
		{name: "recreate", prepare: deleteFiles, run: func(ctx context.Context, r *repo.Repo) error {
			_, _, err := Recreate(ctx, r, lostTask, lostSession)
			if errors.As(err, new(*LeftoverError)) {
				return nil
			}
			return err
		}},
		{name: "clear a registration", prepare: deleteFiles, run: clearAll},
		{name: "clear a directory", prepare: forgetWorktree, run: clearAll},
		{name: "clear a branch", prepare: leaveBranch, run: clearAll},
		{name: "put a branch back", prepare: nothing, run: find(func(ctx context.Context, w *repo.Worktree) error {
			head, err := w.Repo.Head(ctx)
			if err == nil {
				_, err = PutTip(ctx, w, head, "lost")
			}
			return err
		})},
	}
}

// deleteFiles removes the directory of the worktree, as a user might by mistake.
func deleteFiles(c *doomedCase) {
	must(c.t, os.RemoveAll(c.w.Path))
	c.log("the directory of the worktree is deleted")
}

// forgetWorktree leaves a directory that is unknown to coven and git.
func forgetWorktree(c *doomedCase) {
	must(c.t, errors.Join(os.RemoveAll(c.w.StatePath()), os.RemoveAll(c.w.Admin), os.Remove(filepath.Join(c.w.Path, ".git"))))
	gitIn(c.t, c.repo.Root, "update-ref", "-d", names.HeadsPrefix+c.w.Branch)
	c.log("record, registration and branch are deleted")
}

// leaveBranch leaves nothing except the branch.
func leaveBranch(c *doomedCase) {
	must(c.t, errors.Join(os.RemoveAll(c.w.StatePath()), os.RemoveAll(c.w.Admin), os.RemoveAll(c.w.Path)))
	c.log("all but the branch is deleted")
}

// exemptIgnored removes ignored files and nested git directories from an inventory if they exceed the
// limit: the user has seen their names.
func exemptIgnored(c *doomedCase, before *inventory) {
	total := 0
	for name := range before.files {
		if strings.HasPrefix(name, ".git/modules/") || strings.HasSuffix(name, "/.git") {
			before.ignored[name] = true
		}
	}
	for name := range before.ignored {
		total += len(before.files[name].content)
	}
	if total <= rescue.MaxIgnored {
		return
	}
	for name := range before.ignored {
		delete(before.files, name)
	}
}

// exemptLanded removes the commits that landed as a single one, and files that git stores with the landed
// content, for example with other line endings.
func exemptLanded(c *doomedCase, before *inventory) {
	tip := read(c.t, filepath.Join(c.dir, "lost", "landed"))
	delete(before.commits, tip)
	for name, it := range before.files {
		if it.kind == 'l' {
			continue
		}
		has := c.gitOutput(c.repo.GitDir, "rev-parse", "--verify", "--quiet", tip+":"+name)
		if has != "" && c.oidOf(name, it.content) == has {
			delete(before.files, name)
		}
	}
}

// oidOf returns the object ID that git would store for a file.
func (c *doomedCase) oidOf(name, content string) string {
	c.t.Helper()
	cmd := exec.Command("git", "hash-object", "--stdin", "--path="+name)
	cmd.Dir, cmd.Stdin = c.repo.Root, strings.NewReader(content)
	out, err := cmd.Output()
	must(c.t, err)
	return strings.TrimSpace(string(out))
}

// revertsTo checks that one of the snapshots taken by the operation has exactly the files of before.
func (c *doomedCase) revertsTo(before *inventory) {
	c.t.Helper()
	all := value[[]snapshot.Snapshot](c.t)(snapshot.List(c.t.Context(), c.w.Repo, lostSession))
	for _, s := range slices.Backward(all) {
		value[snapshot.Snapshot](c.t)(snapshot.Revert(c.t.Context(), c.w, lostSession, s.N))
		if now := c.takeInventory(); maps.EqualFunc(now.files, before.files, sameItem) {
			return
		}
	}
	c.t.Errorf("no snapshot of %d restores the state before", len(all))
}

// faults lists the ways in which git process number AT fails.
func faults() []string {
	return []string{
		"fails",           // it exits with code 128 before it does anything
		"answer lost",     // it does its work, but exits with code 128 and without output
		"killed",          // it is killed before it does anything
		"killed after",    // it does its work, then is killed
		"coven killed",    // coven is killed when it starts the process
		"coven killed on", // coven is killed when the process has ended
		"disk full",       // from now on, git cannot write any file
		"disk nearly full",
		"objects gone", // from now on, neither git nor coven can read objects
		"none",
	}
}

// destroy runs an operation with a fault in a separate process and returns its error.
func (c *doomedCase) destroy(fault string, at int) string {
	c.t.Helper()
	state := filepath.Join(c.dir, "lost")
	program := filepath.Join(state, "bin", "git")
	must(c.t, os.MkdirAll(filepath.Dir(program), 0o755))
	must(c.t, errors.Join(os.WriteFile(filepath.Join(state, "calls"), []byte("0\n"), 0o644), os.WriteFile(program, []byte(read(c.t, "testdata/failinggit")), 0o755)))
	objects := filepath.Join(c.repo.GitDir, "objects")
	cmd := exec.Command(os.Args[0], "lost", c.repo.Root, c.op.name)
	cmd.Env = append(os.Environ(),
		"PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"), "LOST="+state, "LOST_GIT="+value[string](c.t)(exec.LookPath("git")),
		"LOST_AT="+strconv.Itoa(cmp.Or(at, 1<<30)), "LOST_FAULT="+fault, "LOST_OBJECTS="+objects,
	)
	out, err := cmd.CombinedOutput()
	if exists(filepath.Join(state, "objects")) {
		must(c.t, errors.Join(os.RemoveAll(objects), os.Rename(filepath.Join(state, "objects"), objects)))
	}
	if call, _ := os.ReadFile(filepath.Join(state, "call")); fault != "" {
		c.log("of %q git processes, this one: %q", strings.TrimSpace(read(c.t, filepath.Join(state, "calls"))), call)
	}
	if err == nil {
		return ""
	}
	return fmt.Sprintf("%v: %s", err, bytes.TrimSpace(out))
}

// destroyer is the main function of destroy's process.
func destroyer(args []string) int {
	ctx := context.Background()
	r, err := repo.Open(ctx, args[0])
	if err == nil {
		all := destructions()
		err = all[slices.IndexFunc(all, func(op destruction) bool { return op.name == args[1] })].run(ctx, r)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
