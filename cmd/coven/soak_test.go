package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/crash"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/worktree"
)

// racers is how many covens want the same task.
const racers = 32

// TestSoak lets many covens race for one task, SOAK_ROUNDS times: one of them
// runs it, the others say who has it. In some rounds whoever got the task is
// killed, again and again, and others take it over.
func TestSoak(t *testing.T) {
	if raced {
		t.Skip("a race of processes, not of goroutines: make soak plays it without -race")
	}
	rounds := 3
	if n, err := strconv.Atoi(os.Getenv("SOAK_ROUNDS")); err == nil && n > 0 {
		rounds = n
	}
	g := newArena(t)
	kills := []string{
		"claim.take.before", "claim.take.after", "session.freeze.after", "event.written.session.started:1:lost", "event.after.session.started",
		"script.ended", "event.written.step.completed:1:torn", "land.intent", "land.checkout.after", "land.ref.after", "task.after.rename:2",
		"complete.left", "claim.release.after",
	}
	for n := range rounds {
		id := g.add(fmt.Sprintf("Race %d", n))
		switch n % 3 {
		case 0:
			g.held(id)
		case 1:
			g.free(id)
		default:
			g.killed(id, kills[n/3%len(kills)])
		}
		g.settled(id)
	}
}

// A coven on another machine keeps a task until its lease has run out. The
// machine here is another one by the name in its claim.
func TestLeaseOfAnotherMachine(t *testing.T) {
	g := newArena(t)
	id := g.add("Far away")
	g.killAt(id, "event.after.step.started")
	held := g.takeOver(id, "coven/elsewhere/77", time.Now().Add(time.Minute))
	out, code := g.run(id)
	if code != exitPerson || !strings.Contains(out, "is claimed by coven/elsewhere/77") {
		t.Fatalf("exit code %d:\n%s", code, out)
	}
	if now := g.claim(id); now.Oid != held.Oid {
		t.Fatalf("the claim has changed: %+v", now)
	}
	if _, err := g.repo.Renew(t.Context(), held, time.Now().Add(-time.Minute)); err != nil {
		t.Fatal(err)
	}
	if out, code := g.run(id); code != exitOK {
		t.Fatalf("exit code %d:\n%s", code, out)
	}
	g.settled(id)
}

// A coven that was stopped before it landed, and whose task was taken over
// meanwhile, does not land it: its own check came before that, the transaction
// that moves the target refuses.
func TestLateLanding(t *testing.T) {
	for _, point := range []string{"land.locked", "land.intent", "land.checkout.before", "land.ref.before"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			g := newArena(t)
			id := g.add("Too late")
			before := g.checkout()
			g.open(id)
			late := g.command(id, crash.Env+"="+point+":1:stop")
			late.start(t)
			late.stopped(t)
			g.takeOver(id, "coven/elsewhere/77", time.Now().Add(time.Hour))
			if err := late.cmd.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			out, code := late.end(t)
			if code == exitOK || !strings.Contains(out, "claim was lost") {
				t.Fatalf("exit code %d:\n%s", code, out)
			}
			if after := g.checkout(); after != before {
				t.Errorf("the checkout has changed:\n%s\nbefore:\n%s", after, before)
			}
			// Whoever has it now ends it.
			if _, err := g.repo.Renew(t.Context(), g.claim(id), time.Now().Add(-time.Minute)); err != nil {
				t.Fatal(err)
			}
			if out, code := g.run(id); code != exitOK {
				t.Fatalf("exit code %d:\n%s", code, out)
			}
			g.settled(id)
		})
	}
}

// arena is a repository where covens race.
type arena struct {
	t    *testing.T
	root string
	gate string // a script waits until gate/TASK exists
	env  []string
	repo *worktree.Repo
}

const raceGrimoire = `name: race
steps:
  - name: make
    type: script
    command: while ! test -e "$GATE/"{{.task.id}}; do sleep 0.02; done; echo made > {{.task.id}}
  - {name: land, type: merge}
`

func newArena(t *testing.T) *arena {
	t.Helper()
	dir := t.TempDir()
	run, err := os.MkdirTemp("", "cv") // sockets have short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(run) })
	g := &arena{t: t, root: filepath.Join(dir, "repo"), gate: filepath.Join(dir, "gate")}
	g.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "XDG_RUNTIME_DIR=" + run, "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=T", "GIT_AUTHOR_EMAIL=t@example.invalid", "GIT_COMMITTER_NAME=T", "GIT_COMMITTER_EMAIL=t@example.invalid",
		"GATE=" + g.gate,
	}
	for file, text := range map[string]string{
		"repo/.gitignore":                 ".beads\n.coven/run\n.coven/sessions\n.coven/worktrees\n.coven/.gitignore\n",
		"repo/.coven/config.yaml":         "grimoire: race\nchecks: []\nenv: {pass: [GATE]}\n",
		"repo/.coven/grimoires/race.yaml": raceGrimoire,
		"gate/open":                       "",
	} {
		name := filepath.Join(dir, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for _, argv := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"commit", "-q", "-m", "first"}} {
		g.git(argv...)
	}
	if g.repo, err = worktree.Open(t.Context(), g.root); err != nil {
		t.Fatal(err)
	}
	return g
}

func (g *arena) git(args ...string) string {
	g.t.Helper()
	cmd := exec.CommandContext(g.t.Context(), "git", args...)
	cmd.Dir, cmd.Env = g.root, g.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		g.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// add adds a task and returns its id.
func (g *arena) add(title string) string {
	g.t.Helper()
	r := g.coven(nil, "task", "add", title)
	r.start(g.t)
	out, code := r.end(g.t)
	if code != exitOK {
		g.t.Fatalf("task add: %d\n%s", code, out)
	}
	return strings.TrimSpace(out)
}

// open lets the task's script end.
func (g *arena) open(id string) {
	if err := os.WriteFile(filepath.Join(g.gate, id), nil, 0o644); err != nil {
		g.t.Fatal(err)
	}
}

// racer is one coven.
type racer struct {
	cmd *exec.Cmd
	out bytes.Buffer
}

func (g *arena) coven(env []string, args ...string) *racer {
	ctx, cancel := context.WithTimeout(g.t.Context(), patience)
	g.t.Cleanup(cancel)
	r := &racer{cmd: exec.CommandContext(ctx, "coven", args...)}
	r.cmd.Dir, r.cmd.Env, r.cmd.Stdout, r.cmd.Stderr = g.root, append(env, g.env...), &r.out, &r.out
	return r
}

func (g *arena) command(id string, env ...string) *racer {
	return g.coven(env, "run", id, "--auto-approve")
}

func (r *racer) start(t *testing.T) {
	t.Helper()
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
}

// end waits for the end: code is -1 when it was killed.
func (r *racer) end(t *testing.T) (out string, code int) {
	t.Helper()
	err := r.cmd.Wait()
	if err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return r.out.String(), r.cmd.ProcessState.ExitCode()
}

// stopped waits until the process is stopped.
func (r *racer) stopped(t *testing.T) {
	t.Helper()
	await(t, func() (bool, bool) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		return true, bytes.Contains(stat, []byte(") T "))
	})
}

// run runs the task to its end, with an open gate.
func (g *arena) run(id string) (out string, code int) {
	g.t.Helper()
	g.open(id)
	r := g.command(id)
	r.start(g.t)
	return r.end(g.t)
}

// killAt runs the task with a coven that is killed at a point.
func (g *arena) killAt(id, point string) {
	g.t.Helper()
	r := g.command(id, crash.Env+"="+point)
	r.start(g.t)
	if out, code := r.end(g.t); code != -1 {
		g.t.Fatalf("not killed at %s: exit code %d\n%s", point, code, out)
	}
}

// race starts covens at once, and returns them when all have ended but keep of
// them.
func (g *arena) race(id string, n int, env ...string) []*racer {
	g.t.Helper()
	all := make([]*racer, n)
	for i := range all {
		all[i] = g.command(id, env...)
	}
	for _, r := range all {
		r.start(g.t)
	}
	return all
}

// refused says that a coven that did not get the task says who has it.
func (g *arena) refused(out string, code int) {
	g.t.Helper()
	for _, reason := range []string{"is claimed by", "another coven is working on it", "has changed meanwhile", "is closed"} {
		if code == exitPerson && strings.Contains(out, reason) && strings.Contains(out, "next: ") {
			return
		}
	}
	g.t.Fatalf("exit code %d of a coven that did not get the task:\n%s", code, out)
}

// held is a round in which the winner is at work until all others have given up.
func (g *arena) held(id string) {
	g.t.Helper()
	all := g.race(id, racers)
	type end struct {
		out  string
		code int
	}
	ends := make(chan end)
	for _, r := range all {
		go func() {
			out, code := r.end(g.t)
			ends <- end{out, code}
		}()
	}
	for range racers - 1 {
		e := <-ends
		g.refused(e.out, e.code)
	}
	g.open(id)
	if e := <-ends; e.code != exitOK || !strings.Contains(e.out, "completed: landed") {
		g.t.Fatalf("exit code %d of the one that got the task:\n%s", e.code, e.out)
	}
}

// free is a round in which some come when the task is done.
func (g *arena) free(id string) {
	g.t.Helper()
	g.open(id)
	g.won(g.race(id, racers), false)
}

// killed is a round in which a quarter of the covens die at a point if they get
// there; the others come after them.
func (g *arena) killed(id, point string) {
	g.t.Helper()
	g.open(id)
	early := g.race(id, racers/4, crash.Env+"="+point)
	died := 0
	for _, r := range early {
		out, code := r.end(g.t)
		switch {
		case code == -1:
			died++
		case code != exitOK:
			g.refused(out, code)
		}
	}
	if died == 0 {
		g.t.Fatalf("no coven was killed at %s", point)
	}
	g.won(g.race(id, racers-racers/4), true)
}

// won waits for covens, of which one at most runs the task. When it may have
// been done before, they may all be refused.
func (g *arena) won(all []*racer, before bool) {
	g.t.Helper()
	won := 0
	for _, r := range all {
		out, code := r.end(g.t)
		if code != exitOK {
			g.refused(out, code)
			continue
		}
		won++
	}
	if won > 1 || won == 0 && !before {
		g.t.Fatalf("%d covens ran the task", won)
	}
}

// takeOver gives the task's claim to another holder.
func (g *arena) takeOver(id, holder string, expires time.Time) worktree.Held {
	g.t.Helper()
	held := g.claim(id)
	claim := held.Claim
	claim.Holder, claim.Expires = holder, expires
	held, err := g.repo.Claim(g.t.Context(), claim, held.Oid)
	if err != nil {
		g.t.Fatal(err)
	}
	return held
}

func (g *arena) claim(id string) worktree.Held {
	g.t.Helper()
	held, err := g.repo.ClaimOf(g.t.Context(), id)
	if err != nil {
		g.t.Fatal(err)
	}
	return held
}

// checkout is what a person sees of the repository.
func (g *arena) checkout() string {
	return g.git("rev-parse", "HEAD") + "\n" + g.git("status", "--porcelain") + "\n" + g.git("ls-files", "-s")
}

// settled says that the task was done once and that nothing is left of the race.
func (g *arena) settled(id string) {
	g.t.Helper()
	var begun, landed []string
	journals, err := filepath.Glob(filepath.Join(g.root, session.Dir, "*", "events.jsonl"))
	if err != nil {
		g.t.Fatal(err)
	}
	for _, journal := range journals {
		events, err := event.Read(journal)
		if err != nil {
			g.t.Fatal(err)
		}
		for _, e := range events {
			switch {
			case e.Task == id && e.Type == event.SessionStarted:
				begun = append(begun, e.Session)
			case e.Task == id && e.Type == event.LandDone:
				landed = append(landed, e.Session)
			}
		}
	}
	commits := strings.Fields(g.git("log", "--format=%(trailers:key=Coven-Task,valueonly)"))
	n := 0
	for _, task := range commits {
		if task == id {
			n++
		}
	}
	if len(begun) != 1 || len(landed) != 1 || n != 1 {
		g.t.Fatalf("%s: begun %v, landed %v, %d commits", id, begun, landed, n)
	}
	if refs := g.git("for-each-ref", "refs/heads/coven", "refs/coven/claims", "refs/coven/in"); refs != "" {
		g.t.Fatalf("refs are left:\n%s", refs)
	}
	if trees := g.git("worktree", "list", "--porcelain"); strings.Count(trees, "worktree ") != 1 {
		g.t.Fatalf("worktrees are left:\n%s", trees)
	}
	if dirty := g.git("status", "--porcelain"); dirty != "" {
		g.t.Fatalf("the checkout is not clean:\n%s", dirty)
	}
	g.git("fsck", "--connectivity-only")
	r := g.coven(nil, "task", "show", id, "--json")
	r.start(g.t)
	if out, code := r.end(g.t); code != exitOK || !strings.Contains(out, `"status": "closed"`) {
		g.t.Fatalf("%d: %s", code, out)
	}
}
