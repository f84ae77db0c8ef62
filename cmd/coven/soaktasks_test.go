package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/fake/fakeapi"
	"github.com/coven-run/coven/internal/process/failpoint"
)

// soakTasks is the number of tasks that start at once.
const soakTasks = 32

// soakAgent is the shell script of each task's agent.
const soakAgent = `mkdir -p made && basename "$PWD" > made/"$(basename "$PWD")"`

// TestSoakTasks starts and ends 32 tasks at once, repeatedly for SOAK_SECONDS: with one coven, with four,
// and with covens that are killed and resumed. Each task lands once, and in the end nothing of them is
// left: no registration, record, branch, claim or process, and no unreferenced object.
func TestSoakTasks(t *testing.T) {
	longRun(t)
	g := newSoak(t)
	until := time.Now().Add(time.Duration(number("SOAK_SECONDS", 30)) * time.Second)
	landed := 0
	for n := 0; n < 3 || time.Now().Before(until); n++ {
		var ids []string
		for i := range soakTasks {
			ids = append(ids, g.add(fmt.Sprintf("Round %d task %d", n, i)))
		}
		switch n % 3 {
		case 0:
			g.runAll(ids)
		case 1:
			g.share(ids)
		default:
			g.interrupted(ids)
		}
		landed += soakTasks
		g.nothingLeft(landed)
		g.rescues(n%3 == 2)
	}
	g.tidy(landed)
}

// newSoak returns an arena whose tasks are done by an agent, with a history of some size.
func newSoak(t *testing.T) *arena {
	t.Helper()
	g := newArena(t)
	turns := []fakeapi.Turn{{Tools: []fakeapi.Tool{{Name: "Bash", Input: map[string]any{"command": soakAgent}}}}, {Text: "Made."}, {Text: "Made."}}
	api, err := fakeapi.New(fakeapi.Scenario{Conversations: []fakeapi.Conversation{{Turns: turns}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = api.Close() })
	home := filepath.Dir(g.root)
	g.env = append(g.env, "ANTHROPIC_API_KEY=dummy", "ANTHROPIC_BASE_URL="+api.URL, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1")
	noise, random := make([]byte, 1<<20), rand.New(rand.NewPCG(0, 0))
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	err = errors.Join(
		os.Mkdir(filepath.Join(home, ".fake-claude"), 0o755),
		os.WriteFile(filepath.Join(home, ".config/coven/config.yaml"), []byte("sandbox: {write: [~/.fake-claude]}\n"), 0o600),
		os.WriteFile(filepath.Join(g.root, ".coven/grimoires/race.yaml"), []byte("name: race\nsteps:\n  - {name: make, type: agent, prompt: task}\n  - {name: land, type: merge}\n"), 0o644),
		os.WriteFile(filepath.Join(g.root, "noise"), noise, 0o644),
	)
	if err != nil {
		t.Fatal(err)
	}
	g.git("add", "-A")
	g.git("commit", "-qm", "agents")
	return g
}

// runTasks starts a coven for some tasks.
func (g *arena) runTasks(ids []string, env ...string) *racer {
	g.t.Helper()
	r := g.coven(env, append([]string{"run", "-j", strconv.Itoa(len(ids)), "--auto-approve", "--yes"}, ids...)...)
	r.start(g.t)
	return r
}

// done fails unless a coven has landed its tasks.
func (g *arena) done(r *racer) {
	g.t.Helper()
	if out, code := r.end(); code != exit.OK {
		g.t.Fatalf("exit code %d:\n%s", code, out)
	}
}

// runAll runs all tasks with one coven.
func (g *arena) runAll(ids []string) { g.done(g.runTasks(ids)) }

// share runs the tasks with four covens.
func (g *arena) share(ids []string) {
	var all []*racer
	for part := range 4 {
		all = append(all, g.runTasks(ids[part*len(ids)/4:(part+1)*len(ids)/4]))
	}
	for _, r := range all {
		g.done(r)
	}
}

// interrupted runs half of the tasks with two covens that are killed in the middle, resumes them and runs
// the rest.
func (g *arena) interrupted(ids []string) {
	g.t.Helper()
	half := len(ids) / 2
	all := []*racer{
		g.runTasks(ids[:half], failpoint.Env+"=land.ref.before:5"),
		g.runTasks(ids[half:], failpoint.Env+"=add.registered:9"),
	}
	for _, r := range all {
		if out, code := r.end(); code != -1 {
			g.t.Fatalf("not killed: exit code %d:\n%s", code, out)
		}
	}
	resumed := g.coven(nil, "resume")
	resumed.start(g.t)
	if out, code := resumed.end(); code != exit.OK {
		g.t.Fatalf("exit code %d:\n%s", code, out)
	}
	rest := g.coven(nil, "run", "-j", strconv.Itoa(len(ids)), "--auto-approve", "--yes")
	rest.start(g.t)
	g.done(rest)
}

// nothingLeft fails unless the given number of tasks has landed and nothing except their history is left.
func (g *arena) nothingLeft(tasks int) {
	g.t.Helper()
	if n := g.git("log", "--format=%(trailers:key=Coven-Task,valueonly,separator=%x2C)", "--grep=^Coven-Task: "); len(strings.Fields(n)) != tasks {
		g.t.Fatalf("%d tasks have landed, not %d", len(strings.Fields(n)), tasks)
	}
	if trees := g.git("worktree", "list", "--porcelain"); strings.Count(trees, "worktree ") != 1 {
		g.t.Errorf("git has worktrees:\n%s", trees)
	}
	if left, err := os.ReadDir(filepath.Join(g.root, ".git", "worktrees")); len(left) > 0 {
		g.t.Errorf("registrations are left: %v, %v", left, err)
	}
	for _, dir := range []string{".git/coven/tasks", ".coven/worktrees", "../" + filepath.Base(g.root) + ".coven"} {
		left, err := os.ReadDir(filepath.Join(g.root, dir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			g.t.Fatal(err)
		}
		for _, entry := range left {
			if name := entry.Name(); !strings.HasPrefix(name, ".") && name != "CACHEDIR.TAG" {
				g.t.Errorf("left in %s: %s", dir, name)
			}
		}
	}
	list := g.coven(nil, "worktree", "list", "--json")
	list.start(g.t)
	if out, code := list.end(); code != exit.OK || strings.TrimSpace(out) != "[]" && strings.TrimSpace(out) != "null" {
		g.t.Errorf("coven has worktrees: %d\n%s", code, out)
	}
	if refs := g.git("for-each-ref", "--format=%(refname)", "refs/heads/coven", "refs/coven/claims", "refs/coven/in", "refs/coven/keep"); refs != "" {
		g.t.Errorf("refs are left:\n%s", refs)
	}
	if dirty := g.git("status", "--porcelain"); dirty != "" {
		g.t.Errorf("the checkout is not clean:\n%s", dirty)
	}
	g.noProcess()
	if g.t.Failed() {
		g.t.FailNow()
	}
}

// rescues fails if a rescue was stored. After a kill, coven may store more than necessary.
func (g *arena) rescues(killed bool) {
	g.t.Helper()
	for ref := range strings.FieldsSeq(g.git("for-each-ref", "--format=%(refname)", "refs/coven/rescue")) {
		what := g.git("log", "--stat", "--diff-merges=first-parent", "-1", ref)
		if !killed {
			g.t.Fatalf("stored, although it has landed: %s\n%s", ref, what)
		}
		g.t.Logf("stored after a kill: %s\n%s", ref, what)
		g.git("update-ref", "-d", ref)
	}
}

// noProcess fails if a process of the arena is left. A process that coven has killed may take a moment to
// end.
func (g *arena) noProcess() {
	g.t.Helper()
	if runtime.GOOS != "linux" {
		return
	}
	var last string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); pause() {
		if last = g.processes(); last == "" {
			return
		}
	}
	g.t.Errorf("processes are left:\n%s", last)
}

// processes lists the processes that name the arena's directory in their environment, arguments or
// working directory.
func (g *arena) processes() string {
	dir := []byte(filepath.Dir(g.root))
	all, _ := filepath.Glob("/proc/[0-9]*")
	var found strings.Builder
	for _, proc := range all {
		if filepath.Base(proc) == strconv.Itoa(os.Getpid()) {
			continue
		}
		environ, _ := os.ReadFile(filepath.Join(proc, "environ")) // it may have ended
		args, _ := os.ReadFile(filepath.Join(proc, "cmdline"))
		cwd, _ := os.Readlink(filepath.Join(proc, "cwd"))
		if bytes.Contains(environ, dir) || bytes.Contains(args, dir) || strings.HasPrefix(cwd, string(dir)) {
			fmt.Fprintf(&found, "%s %q in %s\n", filepath.Base(proc), args, cwd)
		}
	}
	return found.String()
}

// tidy fails unless the repository is intact, and its objects take at most 20 percent more space than the
// packed landed history, in addition to those of snapshots and unreferenced ones. coven has no command yet
// that removes these: until then, git repack packs the referenced objects, and the test reports the rest
// and the size of coven's reflog, and limits them per task.
func (g *arena) tidy(tasks int) {
	g.t.Helper()
	g.git("fsck", "--strict")
	g.git("repack", "-q", "-d", "-l")
	g.git("pack-refs", "--all")
	landed := filepath.Join(g.t.TempDir(), "landed.git")
	g.git("clone", "-q", "--bare", "--no-local", "--single-branch", "--branch", "main", g.root, landed)
	least := bytesIn(g.t, landed)
	git := filepath.Join(g.root, ".git")
	packed, objects, size := bytesIn(g.t, filepath.Join(git, "objects", "pack")), bytesIn(g.t, filepath.Join(git, "objects")), bytesIn(g.t, git)
	snapshots := g.onDisk("refs/coven/snapshots", "main")
	g.t.Logf("%d tasks: %d KB, of which packs %d, snapshots in them %d, objects that nothing keeps %d, coven's own files %d; the landed history has %d",
		tasks, size>>10, packed>>10, snapshots>>10, (objects-packed)>>10, bytesIn(g.t, filepath.Join(git, "coven"))>>10, least>>10)
	if packed-snapshots > least+least/5 {
		g.t.Errorf("the packs have %d bytes without snapshots; the landed history has %d", packed-snapshots, least)
	}
	if each := (size - packed) / int64(tasks); each > 8<<10 {
		g.t.Errorf("a task leaves %d bytes that nothing keeps", each)
	}
}

// onDisk returns the size of the objects that are reachable from refs but not from a branch.
func (g *arena) onDisk(refs, branch string) (size int64) {
	g.t.Helper()
	counted := map[string]bool{}
	for line := range strings.Lines(g.git("rev-list", "--objects", branch)) {
		counted[strings.Fields(line)[0]] = true
	}
	var only strings.Builder
	for line := range strings.Lines(g.git("rev-list", "--objects", "--glob="+refs)) {
		if oid := strings.Fields(line)[0]; !counted[oid] {
			only.WriteString(oid + "\n")
		}
	}
	cmd := exec.CommandContext(g.t.Context(), "git", "cat-file", "--batch-check=%(objectsize:disk)")
	cmd.Dir, cmd.Stdin = g.root, strings.NewReader(only.String())
	out, err := cmd.Output()
	if err != nil {
		g.t.Fatal(err)
	}
	for field := range strings.FieldsSeq(string(out)) {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			g.t.Fatal(err)
		}
		size += n
	}
	return size
}

// bytesIn returns the total size of the files in dir.
func bytesIn(t *testing.T, dir string) (size int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return size
}
