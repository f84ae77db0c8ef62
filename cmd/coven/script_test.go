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
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/coven-run/coven/internal/clock"
	"github.com/coven-run/coven/internal/fakeapi"
	"github.com/coven-run/coven/internal/fakebd"
)

// patience bounds how long a script waits for something that must come. It is
// far from what is normal. PATIENCE=10s shortens the wait for one who is at work
// on a script.
var patience = func() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("PATIENCE")); err == nil {
		return d
	}
	return 2 * time.Minute
}()

type apisKey struct{}

// apis are the fake model APIs of a script: the last one is asked.
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

// scriptCommands are what scripts can do beside the built-in commands.
func scriptCommands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"fakeapi":   cmdFakeAPI,
		"held":      cmdHeld,
		"release":   cmdRelease,
		"requests":  cmdRequests,
		"pty":       cmdPty,
		"await":     cmdAwait,
		"killcoven": cmdKill,
		"gitrepo":   cmdGitRepo,
		"clear":     cmdClear,
		"same":      cmdSame,
		"gated":     cmdGated,
		"idle":      cmdIdle,
		"beads":     cmdBeads,
		"crowd":     cmdCrowd,
		"checkout":  cmdCheckout,
		"inventory": cmdInventory,
		"signal":    cmdSignal,
		"doomed":    cmdDoomed,
		"outcome":   cmdOutcome,
		"once":      cmdOnce,
		"hasten":    cmdHasten,
		"guide":     cmdGuide,
		"example":   cmdExample,
		"zoo":       animals.put,
		"extinct":   cmdExtinct,
		"stops":     cmdStops,
		"holds":     cmdHolds,
	}
}

// fakeapi SCENARIO starts a fake model API that plays the file.
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

// held NAME waits until the model is held at NAME.
func cmdHeld(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, "held NAME")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ts.Check(ts.Value(apisKey{}).(*apis).last(ts).WaitHeld(ctx, args[0]))
}

// hasten FACTOR makes the time go faster by which covens wait.
func cmdHasten(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, "hasten FACTOR")
	ts.Setenv(clock.Env, fmt.Sprintf("%s@%d", args[0], time.Now().Unix()))
}

// release NAME lets the model continue.
func cmdRelease(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, "release NAME")
	ts.Value(apisKey{}).(*apis).last(ts).Release(args[0])
}

// requests FILE writes what the model was asked, as JSON lines.
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

// await FILE REGEXP waits until the file matches. FILE may be a glob.
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

// pause lets others work between two looks at the same thing.
func pause() { <-time.After(20 * time.Millisecond) }

// pty [!] [WAIT[=>TYPE] ...] -- COMMAND runs a command on a terminal; each time
// the screen shows WAIT it types TYPE, if given, and a newline; TYPE may be ^C, hangup,
// which closes the terminal, or !COMMAND, which a shell runs elsewhere meanwhile. The screen goes to the file
// "screen". With ! the command must fail; the code goes to the file
// "code".
func cmdPty(ts *testscript.TestScript, neg bool, args []string) {
	at := 0
	for at < len(args) && args[at] != "--" {
		at++
	}
	if at >= len(args)-1 {
		ts.Fatalf("usage: pty [WAIT=>TYPE ...] -- COMMAND")
	}
	program, err := lookPath(args[at+1], ts.Getenv("PATH"))
	ts.Check(err)
	cmd := exec.CommandContext(context.Background(), program, args[at+2:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = environment(ts)
	master, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 120})
	ts.Check(err)
	master, err = unblocked(master)
	ts.Check(err)
	screen := &pane{}
	copied := make(chan struct{})
	go func() { defer close(copied); _, _ = io.Copy(screen, master) }()
	failed := ""
	for _, step := range args[:at] {
		wait, text, types := strings.Cut(step, "=>")
		if !screen.await(wait) {
			failed = "the screen never showed " + wait
			_ = cmd.Process.Kill()
			break
		}
		if !types {
			continue
		}
		if command, ok := strings.CutPrefix(text, "!"); ok {
			meanwhile(ts, command)
			continue
		}
		if text == "hangup" { // the terminal is closed
			_ = master.Close()
			continue
		}
		if text, ok := strings.CutPrefix(text, "^"); ok { // a control character
			text = string(rune(text[0] - '@'))
			if _, err := io.WriteString(master, text); err != nil {
				failed = err.Error()
			}
			continue
		}
		if _, err := io.WriteString(master, text+"\n"); err != nil {
			failed = err.Error()
		}
	}
	err = wait(cmd)
	select {
	case <-copied:
	case <-time.After(time.Second): // a child of the command has the terminal open
	}
	ts.Check(os.WriteFile(ts.MkAbs("screen"), []byte(screen.text()), 0o644))
	ts.Check(os.WriteFile(ts.MkAbs("code"), []byte(fmt.Sprintln(cmd.ProcessState.ExitCode())), 0o644))
	_ = master.Close()
	if failed != "" || (err != nil) != neg {
		ts.Fatalf("%s (ended with %v); the screen:\n%s", failed, err, screen.text())
	}
}

// unblocked is a terminal whose reader does not keep it open when it is closed.
func unblocked(master *os.File) (*os.File, error) {
	fd, err := syscall.Dup(int(master.Fd()))
	if err != nil {
		return nil, err
	}
	if err := syscall.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "terminal"), master.Close()
}

// meanwhile runs a shell command while another command waits.
func meanwhile(ts *testscript.TestScript, command string) {
	cmd := exec.CommandContext(context.Background(), "sh", "-c", command)
	cmd.Dir, cmd.Env = ts.MkAbs("."), environment(ts)
	out, err := cmd.CombinedOutput()
	ts.Logf("%s\n%s", command, out)
	if err != nil {
		ts.Fatalf("meanwhile: %v", err)
	}
}

// wait waits for a command, but not forever.
func wait(cmd *exec.Cmd) error {
	timer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	return cmd.Wait()
}

// pane is what a terminal showed so far.
type pane struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	seen int // await looks only at what came after its last match
}

func (s *pane) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *pane) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

func (s *pane) await(text string) bool {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); pause() {
		s.mu.Lock()
		i := bytes.Index(s.buf.Bytes()[s.seen:], []byte(text))
		if i >= 0 {
			s.seen += i + len(text)
		}
		s.mu.Unlock()
		if i >= 0 {
			return true
		}
	}
	return false
}

// killcoven kills -9 the coven that writes the session of a task: killcoven REPO.
func cmdKill(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, "killcoven REPO")
	for _, p := range covens(ts.MkAbs(args[0]), "run", "resume", "approve") {
		ts.Check(syscall.Kill(p.pid, syscall.SIGKILL))
		return
	}
	ts.Fatalf("no coven runs in %s", args[0])
}

// gitrepo DIR makes a repository of what is in DIR, with one commit on main.
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

// clear REPO says that a run left nothing: no process, worktree, branch, claim,
// lock or directory of sockets.
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
	for _, pattern := range []string{".git/*.lock", ".git/refs/*.lock", ".git/refs/heads/*.lock", ".coven/worktrees/*", ".git/worktrees/*"} {
		found, err := filepath.Glob(filepath.Join(repo, pattern))
		ts.Check(err)
		left = append(left, found...)
	}
	sockets, err := filepath.Glob(filepath.Join(ts.Getenv("XDG_RUNTIME_DIR"), "*"))
	ts.Check(err)
	left = append(left, sockets...)
	if len(left) > 0 {
		ts.Fatalf("left behind:\n%s", strings.Join(left, "\n"))
	}
}

// same A B says that two files hold the same bytes and have the same mode.
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

// idle REPO says that no process works in or below a directory any more.
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

// beads N FILE writes N tasks as they are found in repositories that have used
// beads for long.
func cmdBeads(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2, "beads N FILE")
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	ts.Check(os.MkdirAll(filepath.Dir(ts.MkAbs(args[1])), 0o755))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), fakebd.Issues(n), 0o644))
}

// crowd DIR MOST says that no more than MOST processes of the fake bd ran at
// once on the beads in DIR, and that there were some.
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

// gated EVENTS says that the gate decided about every tool call that the
// agent's stream shows, and about no other; it prints "TOOL allowed|refused" a
// line into the file "gate".
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

// environment is what exec gives a command of the script.
func environment(ts *testscript.TestScript) []string {
	var env []string
	for _, key := range []string{
		"PATH", "HOME", "USER", "TERM", "LANG", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME",
		"GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL",
		"GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "CLAUDE_CODE_MAX_RETRIES", "COVEN_CRASH_POINT", "COVEN_CONTAINMENT", "COVEN_CLOCK_SCALE", "PAGER",
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

// proc is a process of this machine.
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
		if err != nil || cwd != dir && !strings.HasPrefix(cwd, dir+"/") {
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
