package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/worktree/land"
)

// TestTorture kills coven, or its git, at random moments of landings whose files go through a slow filter,
// into a checkout with uncommitted work of the user. A watcher reads the checkout all the time: no file is
// ever missing or partial. After coven resume each task has landed once, and the user's work is unchanged.
// make torture kills 200 times.
func TestTorture(t *testing.T) {
	longRun(t)
	t.Parallel()
	g := newTorture(t)
	g.watch()
	window := g.undisturbed()
	for n := range number("TORTURE_KILLS", 20) {
		g.round(n%2 == 1, window)
	}
	g.end()
	t.Logf("%d killed: %d covens, %d gits; in %d of them the checkout was locked; %d gits left a lock of HEAD; %d looks of the watcher",
		g.covens+g.gits, g.covens, g.gits, g.locked, g.heads, g.looks)
}

// TestTortureDisk fills the disk during landings, so that there is space for only some of the writes. A
// landing succeeds, or reports that the disk is full and changes nothing. When there is space again, coven
// resume lands it. make torture does it 50 times.
func TestTortureDisk(t *testing.T) {
	longRun(t)
	const inside = "COVEN_TORTURE_DISK"
	disk := os.Getenv(inside)
	if disk == "" {
		t.Parallel()
		dir, err := shortTemp()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		if out, err := exec.Command("unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", dir).CombinedOutput(); err != nil {
			t.Skipf("no file system of a test's own can be mounted here: %v: %s", err, out)
		}
		cmd := exec.CommandContext(t.Context(), "unshare", "-rm", "sh", "-c", `mount -t tmpfs -o size=24m tmpfs "$1" && exec "$2" -test.run '^TestTortureDisk$' -test.v -test.timeout 60m`, "sh", dir, os.Args[0])
		cmd.Env = append(os.Environ(), inside+"="+dir)
		out, err := cmd.CombinedOutput()
		t.Logf("%s", out)
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Setenv("TMPDIR", disk)
	g := newTorture(t)
	g.watch()
	points := []string{
		"land.locked", "land.commit", "land.intent", "checkout.begun", "checkout.locked", "checkout.staged", "checkout.recorded",
		"checkout.step.before:2", "checkout.index.before", "land.ref.before", "land.ref.after",
	}
	full := 0
	for n := range number("TORTURE_DISKS", 5) {
		if g.fill(disk, points[n%len(points)]) {
			full++
		}
	}
	g.end()
	t.Logf("%d landings did not fit at first; %d looks of the watcher", full, g.looks)
}

func number(variable string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil && n > 0 {
		return n
	}
	return otherwise
}

// torture is a repository whose landings are disturbed.
type torture struct {
	*arena
	random *rand.Rand
	n      int
	user   string // the user's part of the checkout
	stamps string
	begun  int // number of initial commits

	covens, gits, locked, heads, looks int

	stop chan struct{}
	once sync.Once
	gone sync.WaitGroup
}

const tortureGrimoire = `name: race
steps:
  - name: make
    type: script
    command: sh ./change {{.task.title}}
  - {name: land, type: merge}
`

// change is the script of each task: it changes files that go through a filter, one that alternates between
// file and directory, and one that comes and goes.
const change = `set -e
n=${1#Round }
for f in 1 2 3 4; do yes "round $n" | head -n 20000 > $f.slow; done
if test -d swap; then rm -r swap; yes "round $n" | head -n 100 > swap
else rm swap; mkdir swap; yes "round $n" | head -n 100 > swap/x; fi
if test -e flip; then rm flip; else yes "round $n" | head -n 100 > flip; fi
mkdir -p deep/$n; echo "round $n" > deep/$n/file; chmod +x deep/$n/file
`

func newTorture(t *testing.T) *torture {
	t.Helper()
	seed := uint64(number("TORTURE_SEED", int(time.Now().UnixNano()&0xffffff)))
	t.Logf("TORTURE_SEED=%d", seed)
	g := &torture{arena: newArena(t), random: rand.New(rand.NewPCG(seed, 0)), stop: make(chan struct{})}
	g.write(".coven/grimoires/race.yaml", tortureGrimoire)
	g.write("change", change)
	g.write(".gitattributes", "*.slow filter=slow\n")
	for _, name := range []string{"dirty", "staged", "removed", "as it was"} {
		g.write(name, "old\n")
	}
	g.write("swap", "round 0\n")
	g.git("config", "filter.slow.smudge", "sleep 0.03; cat")
	g.git("config", "filter.slow.clean", "cat")
	g.shell("sh ./change 'Round 0'; git add -A; git commit -qm base")
	g.shell("echo mine > dirty; echo mine > staged; git add staged; echo more > staged; git rm -q --cached removed; echo mine > untracked")
	g.user, g.stamps = g.users()
	g.begun = g.commits()
	return g
}

func (g *torture) write(name, text string) {
	g.t.Helper()
	if err := os.WriteFile(filepath.Join(g.root, name), []byte(text), 0o644); err != nil {
		g.t.Fatal(err)
	}
}

func (g *torture) shell(script string) {
	g.t.Helper()
	cmd := exec.CommandContext(g.t.Context(), "sh", "-ec", script)
	cmd.Dir, cmd.Env = g.root, g.env
	if out, err := cmd.CombinedOutput(); err != nil {
		g.t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

// users returns the user's part: the output of git about the checkout, and the contents and timestamps of
// all files that no landing changes.
func (g *torture) users() (text, stamps string) {
	g.t.Helper()
	text = g.git("--no-optional-locks", "status", "--porcelain", "-uall") + "\n" + g.git("ls-files", "-s", "--", "dirty", "staged", "removed", "as it was")
	for _, name := range []string{"dirty", "staged", "removed", "as it was", "untracked", "change", ".gitattributes", ".gitignore"} {
		raw, err := os.ReadFile(filepath.Join(g.root, name))
		if err != nil {
			g.t.Fatal(err)
		}
		info, err := os.Lstat(filepath.Join(g.root, name))
		if err != nil {
			g.t.Fatal(err)
		}
		text += fmt.Sprintf("\n%s %q", name, raw)
		stamps += fmt.Sprintf("%s %v %v\n", name, info.Mode(), info.ModTime())
	}
	return text, stamps
}

func (g *torture) commits() int {
	g.t.Helper()
	n, err := strconv.Atoi(g.git("rev-list", "--count", "main"))
	if err != nil {
		g.t.Fatal(err)
	}
	return n
}

// watch checks the files all the time until rest.
func (g *torture) watch() {
	g.t.Cleanup(g.rest)
	g.gone.Go(func() {
		for !g.t.Failed() {
			select {
			case <-g.stop:
				return
			default:
			}
			for _, name := range []string{"1.slow", "2.slow", "3.slow", "4.slow"} {
				g.whole(name, 20000)
			}
			g.lookAtSwap()
			if _, err := os.Lstat(filepath.Join(g.root, "flip")); err == nil {
				g.mayBeWhole("flip", 100)
			}
			g.looks++
		}
	})
}

// whole fails if a file is missing or does not consist of the given number of lines of one round.
func (g *torture) whole(name string, lines int) {
	if err := g.lookAt(name, lines); err != nil {
		g.t.Errorf("the watcher: %v", err)
	}
}

func (g *torture) mayBeWhole(name string, lines int) {
	if err := g.lookAt(name, lines); err != nil && !errors.Is(err, fs.ErrNotExist) {
		g.t.Errorf("the watcher: %v", err)
	}
}

func (g *torture) lookAt(name string, lines int) error {
	raw, err := os.ReadFile(filepath.Join(g.root, name))
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(string(raw), "\n")
	if string(raw) != strings.Repeat(first+"\n", lines) || !strings.HasPrefix(first, "round ") {
		return fmt.Errorf("%s is not whole: %d bytes, %q...", name, len(raw), first)
	}
	return nil
}

// lookAtSwap checks that swap is a file or a directory with one file, and never missing. It may change
// between two checks.
func (g *torture) lookAtSwap() {
	info, err := os.Lstat(filepath.Join(g.root, "swap"))
	if err != nil {
		g.t.Errorf("the watcher: %v", err)
		return
	}
	name := "swap"
	if info.IsDir() {
		name = "swap/x"
	}
	err = g.lookAt(name, 100)
	if errors.Is(err, syscall.EISDIR) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fs.ErrNotExist) {
		now, err := os.Lstat(filepath.Join(g.root, "swap"))
		if err == nil && now.IsDir() == info.IsDir() && os.SameFile(now, info) {
			g.t.Errorf("the watcher: swap is neither: %v", err)
		}
		return
	}
	if err != nil {
		g.t.Errorf("the watcher: %v", err)
	}
}

// rest stops the watcher.
func (g *torture) rest() {
	g.once.Do(func() { close(g.stop) })
	g.gone.Wait()
}

func (g *torture) end() {
	g.t.Helper()
	g.rest()
	if n := g.commits(); n != g.begun+g.n {
		g.t.Errorf("%d commits have landed for %d tasks", n-g.begun, g.n)
	}
	g.git("fsck", "--strict", "--connectivity-only")
}

// next adds a task.
func (g *torture) next() string {
	g.n++
	return g.add(fmt.Sprintf("Round %d", g.n))
}

// undisturbed lands once and returns the duration.
func (g *torture) undisturbed() time.Duration {
	g.t.Helper()
	id := g.next()
	trace := filepath.Join(g.t.TempDir(), "trace")
	r := g.command(id, failpoint.TraceEnv+"="+trace)
	r.start(g.t)
	g.traced(r, trace, "land.locked")
	begun := time.Now()
	g.traced(r, trace, "land.return")
	took := time.Since(begun)
	if out, code := r.end(); code != exit.OK {
		g.t.Fatalf("exit code %d:\n%s", code, out)
	}
	g.landed(id)
	return took
}

// traced waits until a coven has reached a failpoint.
func (g *torture) traced(r *racer, trace, point string) {
	g.t.Helper()
	await(g.t, func() (bool, bool) {
		raw, _ := os.ReadFile(trace)
		return syscall.Kill(r.cmd.Process.Pid, 0) == nil, strings.Contains(string(raw), point+"\n")
	})
}

// round kills coven, or its git, at a random moment of a landing.
func (g *torture) round(git bool, window time.Duration) {
	g.t.Helper()
	id := g.next()
	trace := filepath.Join(g.t.TempDir(), "trace")
	r := g.command(id, failpoint.TraceEnv+"="+trace)
	r.start(g.t)
	g.traced(r, trace, "land.locked")
	<-time.After(time.Duration(g.random.Int64N(int64(window)))) // a random moment
	locked := land.LeftByLanding(filepath.Join(g.root, ".git", "index.lock"))
	switch {
	case git && g.killGit(r.cmd.Process.Pid):
		g.gits++
	case r.cmd.Process.Kill() == nil:
		g.covens++
	}
	if locked {
		g.locked++
	}
	_, _ = r.end()
	g.resume(id)
	// A git that is killed just after it has moved the branch leaves its lock of HEAD. coven never removes
	// it, so a person must.
	if git && os.Remove(filepath.Join(g.root, ".git", "HEAD.lock")) == nil {
		g.heads++
	}
	g.landed(id)
}

// killGit kills one of the gits that a coven has started, if it starts one soon.
func (g *torture) killGit(coven int) bool {
	killed := false
	await(g.t, func() (bool, bool) {
		for _, pid := range childrenOf(coven) {
			name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
			if err == nil && strings.TrimSpace(string(name)) == "git" && syscall.Kill(pid, syscall.SIGKILL) == nil {
				killed = true
			}
		}
		_, err := os.Stat(fmt.Sprintf("/proc/%d/task", coven))
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", coven))
		return true, killed || err != nil || strings.Contains(string(stat), ") Z ")
	})
	return killed
}

func childrenOf(pid int) []int {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	var all []int
	for _, file := range files {
		raw, _ := os.ReadFile(file)
		for word := range strings.FieldsSeq(string(raw)) {
			if n, err := strconv.Atoi(word); err == nil {
				all = append(all, n)
			}
		}
	}
	return all
}

// resume follows coven's advice until the task has landed. A git that is killed while it moves a ref leaves
// the lock of the ref, which only a person may remove.
func (g *torture) resume(id string) {
	g.t.Helper()
	remove := regexp.MustCompile(`or if there is none: rm ('[^\n]+\.lock')`)
	var said []string
	for range 4 {
		r := g.coven(nil, "resume", id)
		r.start(g.t)
		out, code := r.end()
		if code == exit.OK {
			return
		}
		if strings.Contains(out, "nothing to resume") || strings.Contains(out, "cannot continue") || strings.Contains(out, "is completed") {
			return // it had ended before it was killed
		}
		said = append(said, fmt.Sprintf("exit code %d:\n%s", code, out))
		locks := remove.FindStringSubmatch(out)
		if locks == nil {
			continue
		}
		for lock := range strings.SplitSeq(strings.Trim(locks[1], "'"), "' '") {
			if strings.HasSuffix(lock, "/index.lock") {
				continue
			}
			if err := os.Remove(lock); err != nil {
				g.t.Fatal(err)
			}
		}
	}
	g.t.Fatalf("%s was not resumed:\n%s", id, strings.Join(said, "\n"))
}

// landed fails unless a task has landed once, and the checkout has the new files and all of the user's.
func (g *torture) landed(id string) {
	g.t.Helper()
	if n := strings.Count("\n"+g.git("log", "--format=%(trailers:key=Coven-Task,valueonly)")+"\n", "\n"+id+"\n"); n != 1 {
		g.t.Fatalf("%s has landed %d times", id, n)
	}
	text, stamps := g.users()
	if text != g.user {
		g.t.Fatalf("%s: the checkout is\n%s\nwant\n%s", id, text, g.user)
	}
	if stamps != g.stamps {
		g.t.Fatalf("%s: the time stamps are\n%s\nwant\n%s", id, stamps, g.stamps)
	}
	want := fmt.Sprintf("round %d\n", g.n)
	for _, name := range []string{"1.slow", "4.slow", fmt.Sprintf("deep/%d/file", g.n)} {
		if raw, err := os.ReadFile(filepath.Join(g.root, name)); err != nil || !strings.HasPrefix(string(raw), want) {
			g.t.Fatalf("%s: %s is %.20q, %v", id, name, raw, err)
		}
	}
	for _, pattern := range []string{".git/*.lock", ".git/coven/moves/*", ".coven-*"} {
		if left, _ := filepath.Glob(filepath.Join(g.root, pattern)); len(left) > 0 {
			g.t.Fatalf("%s: left behind: %v", id, left)
		}
	}
}

// fill stops a landing at a point, leaves little space on the disk, and reports whether the landing ran out
// of space.
func (g *torture) fill(disk, point string) bool {
	g.t.Helper()
	id := g.next()
	name, hit, _ := strings.Cut(point, ":")
	if hit == "" {
		hit = "1"
	}
	r := g.command(id, failpoint.Env+"="+name+":"+hit+":stop")
	r.start(g.t)
	r.stopped(g.t)
	ballast := filepath.Join(disk, "ballast")
	g.leave(disk, ballast, g.random.Int64N(1400<<10))
	if err := r.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		g.t.Fatal(err)
	}
	out, code := r.end()
	full := code != exit.OK
	if full {
		why := g.coven(nil, "why", id)
		why.start(g.t)
		said, _ := why.end()
		if !strings.Contains(said, "the disk is full") || !strings.Contains(said, "next: coven resume "+id) {
			g.t.Fatalf("at %s: exit code %d:\n%s\nwhy:\n%s", point, code, out, said)
		}
	}
	if err := os.Remove(ballast); err != nil {
		g.t.Fatal(err)
	}
	if full {
		g.resume(id)
	}
	g.landed(id)
	return full
}

// leave fills the disk except for room bytes.
func (g *torture) leave(disk, ballast string, room int64) {
	g.t.Helper()
	var st syscall.Statfs_t
	if err := syscall.Statfs(disk, &st); err != nil {
		g.t.Fatal(err)
	}
	free := int64(st.Bavail * uint64(st.Bsize))
	file, err := os.Create(ballast)
	if err != nil {
		g.t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	block := make([]byte, 4<<10)
	for written := int64(0); written < free-room; written += int64(len(block)) {
		if _, err := file.Write(block); err != nil {
			return // it is full
		}
	}
}
