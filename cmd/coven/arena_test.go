package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/claim"
)

// arena is a repository for races between covens.
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
	run, err := shortTemp()
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
		"repo/.coven/config.yaml":         "grimoire: race\nchecks: []\n",
		".config/coven/config.yaml":       "env: {pass: [GATE]}\n",
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

// add adds a task and returns its ID.
func (g *arena) add(title string) string {
	g.t.Helper()
	r := g.coven(nil, "task", "add", title)
	r.start(g.t)
	out, code := r.end()
	if code != exit.OK {
		g.t.Fatalf("task add: %d\n%s", code, out)
	}
	return strings.TrimSpace(out)
}

// open lets the script of the task end.
func (g *arena) open(id string) {
	if err := os.WriteFile(filepath.Join(g.gate, id), nil, 0o644); err != nil {
		g.t.Fatal(err)
	}
}

// racer is a running coven.
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

// end waits for the end of the process. code is -1 if it was killed.
func (r *racer) end() (out string, code int) {
	if err := r.cmd.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		return err.Error(), -2
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
	return r.end()
}

// killAt runs the task with a coven that is killed at a failpoint.
func (g *arena) killAt(id, point string) {
	g.t.Helper()
	r := g.command(id, failpoint.Env+"="+point)
	r.start(g.t)
	if out, code := r.end(); code != -1 {
		g.t.Fatalf("not killed at %s: exit code %d\n%s", point, code, out)
	}
}

// race starts n covens for the same task at once.
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

// takeOver transfers the task's claim to another holder.
func (g *arena) takeOver(id, holder string, expires time.Time) claim.Held {
	g.t.Helper()
	held := g.claim(id)
	next := held.Claim
	next.Holder, next.Expires = holder, expires
	held, err := claim.Acquire(g.t.Context(), g.repo, next, held.Oid)
	if err != nil {
		g.t.Fatal(err)
	}
	return held
}

func (g *arena) claim(id string) claim.Held {
	g.t.Helper()
	held, err := claim.Of(g.t.Context(), g.repo, id)
	if err != nil {
		g.t.Fatal(err)
	}
	return held
}

// checkout returns the visible state of the user's checkout.
func (g *arena) checkout() string {
	return g.git("rev-parse", "HEAD") + "\n" + g.git("status", "--porcelain") + "\n" + g.git("ls-files", "-s")
}

// settled fails unless the task was done exactly once and the race left nothing behind.
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
	if out, code := r.end(); code != exit.OK || !strings.Contains(out, `"status": "closed"`) {
		g.t.Fatalf("%d: %s", code, out)
	}
}

// await calls look until it succeeds.
func await[T any](t *testing.T, look func() (T, bool)) T {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); pause() {
		if seen, ok := look(); ok {
			return seen
		}
	}
	t.Fatal("it never came")
	panic("not reached")
}
