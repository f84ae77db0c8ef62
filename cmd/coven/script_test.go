package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/coven-run/coven/internal/fake/fakeapi"
	"github.com/coven-run/coven/internal/fake/fakebd"
	"github.com/coven-run/coven/internal/file/tempdir"
	"github.com/coven-run/coven/internal/process/clock"
	"github.com/coven-run/coven/plugins/builtin/scripted"
)

// patience limits how long a script waits for an expected event. It is far above the normal time.
// PATIENCE=10s shortens the wait while working on a script.
var patience = func() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("PATIENCE")); err == nil {
		return d
	}
	return 2 * time.Minute
}()

type apisKey struct{}

// apis holds the fake model APIs of a script. The last one is in use.
type apis struct{ servers []*fakeapi.Server }

func (a *apis) last(ts *testscript.TestScript) *fakeapi.Server {
	if len(a.servers) == 0 {
		ts.Fatalf("no fakeapi was started")
	}
	return a.servers[len(a.servers)-1]
}

func (a *apis) close() {
	for _, s := range a.servers {
		_ = s.Close()
	}
}

// scriptCommands returns the additional commands of scripts.
func scriptCommands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"action":     cmdAction,
		"fakeapi":    cmdFakeAPI,
		"fakegithub": cmdFakeGitHub,
		"held":       cmdHeld,
		"release":    cmdRelease,
		"requests":   cmdRequests,
		"pty":        cmdPty,
		"browse":     cmdBrowse,
		"chromium":   cmdChromium,
		"await":      cmdAwait,
		"killcoven":  cmdKill,
		"gitrepo":    cmdGitRepo,
		"clear":      cmdClear,
		"same":       cmdSame,
		"gated":      cmdGated,
		"watched":    cmdWatched,
		"idle":       cmdIdle,
		"unspoken":   cmdUnspoken,
		"beads":      cmdBeads,
		"crowd":      cmdCrowd,
		"checkout":   cmdCheckout,
		"inventory":  cmdInventory,
		"signal":     cmdSignal,
		"doomed":     cmdDoomed,
		"outcome":    cmdOutcome,
		"once":       cmdOnce,
		"hasten":     cmdHasten,
		"remember":   cmdRemember,
		"receipts":   cmdReceipts,
		"later":      cmdLater,
		"guide":      cmdGuide,
		"first":      cmdFirst,
		"example":    cmdExample,
		"gocache":    cmdGoCache,
		"zoo":        animals.put,
		"extinct":    cmdExtinct,
		"stops":      cmdStops,
		"modules":    cmdModules,
		"serve":      cmdServe,
		"holds":      cmdHolds,
		"explained":  cmdExplained,
		"collector":  cmdCollector,
		"outsider":   cmdOutsider,
		"spans":      cmdSpans,
		"tampered":   cmdTampered,
	}
}

// cmdFakeAPI implements fakeapi SCENARIO: it starts a fake model API that plays the file.
func cmdFakeAPI(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, "fakeapi SCENARIO")
	scenario, err := fakeapi.Load(ts.MkAbs(args[0]))
	ts.Check(err)
	server, err := fakeapi.New(scenario)
	ts.Check(err)
	a := ts.Value(apisKey{}).(*apis)
	a.servers = append(a.servers, server)
	ts.Setenv("ANTHROPIC_BASE_URL", server.URL)
	ts.Setenv("OPENAI_BASE_URL", server.URL+"/v1")
}

// cmdHeld implements held NAME: it waits until the model is held at NAME.
func cmdHeld(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, "held NAME")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ts.Check(ts.Value(apisKey{}).(*apis).last(ts).WaitHeld(ctx, args[0]))
}

// cmdHasten implements hasten FACTOR: it accelerates the clock of waiting covens.
func cmdHasten(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, "hasten FACTOR")
	ts.Setenv(clock.Env, fmt.Sprintf("%s@%d", args[0], time.Now().Unix()))
}

// cmdRemember implements remember VAR: it sets the variable to the single output line of the last command,
// such as the ID of a new task.
func cmdRemember(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, "remember VAR")
	line := strings.TrimSuffix(ts.ReadFile("stdout"), "\n")
	if line == "" || strings.Contains(line, "\n") {
		ts.Fatalf("the last command did not print one line: %q", line)
	}
	ts.Setenv(args[0], line)
}

// cmdRelease implements release NAME: it lets the model continue.
func cmdRelease(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, "release NAME")
	ts.Value(apisKey{}).(*apis).last(ts).Release(args[0])
}

// cmdRequests implements requests FILE: it writes the requests to the model as JSON lines.
func cmdRequests(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, "requests FILE")
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, r := range ts.Value(apisKey{}).(*apis).last(ts).Requests() {
		ts.Check(enc.Encode(r))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b.Bytes(), 0o644))
}

// cmdAwait implements await FILE REGEXP: it waits until the file matches. FILE may be a glob.
func cmdAwait(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2, "await FILE REGEXP")
	re, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	var seen []byte
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); pause() {
		files, err := filepath.Glob(ts.MkAbs(args[0]))
		ts.Check(err)
		for _, file := range files {
			if seen, err = os.ReadFile(file); err == nil && re.Match(seen) {
				return
			}
		}
	}
	ts.Fatalf("%s never matched %s:\n%s", args[0], args[1], seen)
}

// pause waits a moment between two polls.
func pause() { <-time.After(20 * time.Millisecond) }

// cmdLater implements later DURATION: for the commands that follow, it sets the clock to this much later
// than now and stops it, so that ages on the screen are the same in every run.
func cmdLater(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, "later DURATION")
	d, err := time.ParseDuration(args[0])
	ts.Check(err)
	ts.Setenv(clock.Env, fmt.Sprintf("0.000001@%d", time.Now().Add(d).Unix()))
}

// cmdKill implements killcoven REPO: it kills the coven that writes the session of a task with SIGKILL.
func cmdKill(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, "killcoven REPO")
	for _, p := range covens(ts.MkAbs(args[0]), "run", "resume", "approve") {
		ts.Check(syscall.Kill(p.pid, syscall.SIGKILL))
		ts.Setenv("KILLED", "1")
		return
	}
	ts.Fatalf("no coven runs in %s", args[0])
}

// cmdGitRepo implements gitrepo DIR: it creates a repository from the files in DIR, with one commit on
// main.
func cmdGitRepo(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, "gitrepo DIR")
	ts.Check(os.MkdirAll(ts.MkAbs(args[0]), 0o755))
	for _, argv := range [][]string{
		{"init", "-q", "-b", "main"},
		{"add", "-A"},
		{"commit", "-q", "--allow-empty", "-m", "first"},
	} {
		git(ts, args[0], argv...)
	}
}

// cmdClear implements clear REPO: a run must have left nothing: no process, worktree, branch, claim, lock
// or directory of sockets.
func cmdClear(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, "clear REPO")
	repo := ts.MkAbs(args[0])
	var left []string
	for deadline := time.Now().Add(patience); ; pause() {
		left = left[:0]
		for _, p := range processes(ts.MkAbs(".")) {
			if p.pid != os.Getpid() {
				left = append(left, fmt.Sprintf("process %d %q", p.pid, p.argv))
			}
		}
		if len(left) == 0 || time.Now().After(deadline) {
			break
		}
	}
	if trees := git(ts, repo, "worktree", "list", "--porcelain"); strings.Count(trees, "worktree ") != 1 {
		left = append(left, trees)
	}
	left = append(left, strings.Fields(git(ts, repo, "for-each-ref", "--format=%(refname)", "refs/heads/coven", "refs/coven/claims", "refs/coven/in", "refs/coven/keep"))...)
	for _, pattern := range []string{".git/*.lock", ".git/refs/*.lock", ".git/refs/heads/*.lock", ".coven/worktrees/[^.]*", ".coven/worktrees/.trash-*", "../*.coven/[^.C]*", "../*.coven/.trash-*", ".git/worktrees/*"} {
		found, err := filepath.Glob(filepath.Join(repo, pattern))
		ts.Check(err)
		left = append(left, found...)
	}
	if ts.Getenv("KILLED") != "" {
		// A process that the killed coven was starting can keep its lock until after coven resume has looked.
		tempdir.Sweep(ts.Getenv("XDG_RUNTIME_DIR"))
	}
	sockets, err := filepath.Glob(filepath.Join(ts.Getenv("XDG_RUNTIME_DIR"), "*"))
	ts.Check(err)
	left = append(left, sockets...)
	if len(left) > 0 {
		ts.Fatalf("left behind:\n%s", strings.Join(left, "\n"))
	}
}

// cmdSame implements same A B: two files must have the same content and mode.
func cmdSame(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2, "same A B")
	a, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	b, err := os.ReadFile(ts.MkAbs(args[1]))
	ts.Check(err)
	if !bytes.Equal(a, b) {
		ts.Fatalf("%s and %s differ:\n%q\n%q", args[0], args[1], a, b)
	}
}

// cmdIdle implements idle REPO: no process may work in or below the directory any more.
func cmdIdle(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, "idle REPO")
	for deadline := time.Now().Add(patience); ; pause() {
		left := processes(ts.MkAbs(args[0]))
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("still at work: %v", left)
		}
	}
}

// cmdUnspoken implements unspoken DIR REGEXP: processes must be working in or below the directory, and the
// arguments of none of them may match.
func cmdUnspoken(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2, "unspoken DIR REGEXP")
	pattern := regexp.MustCompile(args[1])
	at := processes(ts.MkAbs(args[0]))
	if len(at) == 0 {
		ts.Fatalf("nothing works in %s", args[0])
	}
	for _, p := range at {
		if line := strings.Join(p.argv, " "); pattern.MatchString(line) {
			ts.Fatalf("process %d has %q in its arguments: %s", p.pid, pattern.FindString(line), line)
		}
	}
}

// cmdBeads implements beads N FILE: it writes N tasks like those in repositories that have used beads for a
// long time.
func cmdBeads(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2, "beads N FILE")
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	ts.Check(os.MkdirAll(filepath.Dir(ts.MkAbs(args[1])), 0o755))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), fakebd.Issues(n), 0o644))
}

// cmdCrowd implements crowd DIR MOST: between 1 and MOST processes of the fake bd must have run at once on
// the beads in DIR.
func cmdCrowd(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2, "crowd DIR MOST")
	limit, err := strconv.Atoi(args[1])
	ts.Check(err)
	most, err := fakebd.MaxAtOnce(ts.MkAbs(args[0]))
	ts.Check(err)
	if most < 1 || most > limit {
		ts.Fatalf("%d processes of bd ran at once", most)
	}
}

// cmdGated implements gated EVENTS: the gate must have decided about exactly the tool calls in the agent's
// stream. It writes "TOOL allowed|refused" lines to the file "gate".
func cmdGated(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, "gated EVENTS")
	files, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	if len(files) != 1 {
		ts.Fatalf("%s is %d files", args[0], len(files))
	}
	text, err := os.ReadFile(files[0])
	ts.Check(err)
	streamed, decided, lines := map[string]string{}, map[string]string{}, []string{}
	for line := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n") {
		var e struct {
			Type string
			Data struct {
				ID, Name, Tool string
				Allowed        bool
			}
		}
		ts.Check(json.Unmarshal([]byte(line), &e))
		switch e.Type {
		case "agent.tool":
			streamed[e.Data.ID] = e.Data.Name
		case "gate.decided":
			decided[e.Data.ID] = e.Data.Tool
			word := map[bool]string{true: "allowed", false: "refused"}[e.Data.Allowed]
			lines = append(lines, e.Data.Tool+" "+word)
		}
	}
	if fmt.Sprint(streamed) != fmt.Sprint(decided) {
		ts.Fatalf("the stream shows %v, the gate decided %v", streamed, decided)
	}
	ts.Check(os.WriteFile(ts.MkAbs("gate"), []byte(strings.Join(lines, "\n")+"\n"), 0o644))
}

func want(ts *testscript.TestScript, neg bool, args []string, n int, usage string) {
	if neg || len(args) != n {
		ts.Fatalf("usage: %s", usage)
	}
}

func git(ts *testscript.TestScript, dir string, args ...string) string {
	cmd := exec.CommandContext(context.Background(), "git", args...)
	cmd.Dir = ts.MkAbs(dir)
	cmd.Env = environment(ts)
	out, err := cmd.CombinedOutput()
	if err != nil {
		ts.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// environment returns the environment of commands that the script executes.
func environment(ts *testscript.TestScript) []string {
	var env []string
	if options := os.Getenv("GORACE"); options != "" { // see race_test.go
		env = append(env, "GORACE="+options)
	}
	for _, key := range []string{
		"PATH", "HOME", "USER", "TERM", "LANG", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME",
		"GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL",
		"GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "CLAUDE_CODE_MAX_RETRIES", "COVEN_CRASH_POINT", "COVEN_CONTAINMENT", "COVEN_CLOCK_SCALE", "GH_ENTERPRISE_TOKEN", "PAGER", "NO_COLOR", scripted.Variable,
	} {
		if value := ts.Getenv(key); value != "" {
			env = append(env, key+"="+value)
		}
	}
	return env
}

func lookPath(name, path string) (string, error) {
	for dir := range strings.SplitSeq(path, string(os.PathListSeparator)) {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, exec.ErrNotFound)
}

// proc is a process on this machine.
type proc struct {
	pid  int
	argv []string
}

// processes lists the processes that work in or below a directory.
func processes(dir string) []proc {
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	var found []proc
	for _, entry := range entries {
		cwd, err := os.Readlink(filepath.Join(entry, "cwd"))
		if err != nil || cwd != dir && !strings.HasPrefix(cwd, dir+"/") && !strings.HasPrefix(cwd, dir+".coven/") {
			continue
		}
		line, err := os.ReadFile(filepath.Join(entry, "cmdline"))
		if err != nil || len(line) == 0 {
			continue // gone, or a zombie
		}
		pid := 0
		if _, err := fmt.Sscanf(filepath.Base(entry), "%d", &pid); err != nil && !errors.Is(err, io.EOF) {
			continue
		}
		found = append(found, proc{pid: pid, argv: strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")})
	}
	return found
}
