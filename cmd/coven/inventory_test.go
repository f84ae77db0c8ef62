package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// cmdCheckout implements checkout REPO FILE: it writes the exact contents of a checkout to FILE: each file
// with its mode and content, HEAD, the index and the stash.
func cmdCheckout(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2, "checkout REPO FILE")
	repo := ts.MkAbs(args[0])
	var lines []string
	ts.Check(filepath.WalkDir(repo, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && (name == ".git" || name == ".coven" || name == ".beads") {
			return filepath.SkipDir
		}
		info, err := d.Info()
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		lines = append(lines, fmt.Sprintf("%s %v %x", strings.TrimPrefix(path, repo+"/"), info.Mode(), sha256.Sum256(data)))
		return nil
	}))
	for _, argv := range [][]string{{"rev-parse", "--symbolic-full-name", "HEAD"}, {"rev-parse", "HEAD"}, {"ls-files", "-s"}, {"stash", "list"}} {
		lines = append(lines, git(ts, repo, argv...))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(strings.Join(lines, "\n")), 0o644))
}

// cmdInventory implements inventory REPO FILE: it writes the processes (after waiting for those that end),
// worktrees, refs, locks and sockets of a repository to FILE.
func cmdInventory(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2, "inventory REPO FILE")
	repo := ts.MkAbs(args[0])
	var lines []string
	for deadline := time.Now().Add(patience); ; pause() {
		found := processes(repo)
		if len(found) == 0 || time.Now().After(deadline) {
			for _, p := range found {
				lines = append(lines, fmt.Sprintf("process %q", p.argv))
			}
			break
		}
	}
	for line := range strings.SplitSeq(git(ts, repo, "worktree", "list", "--porcelain"), "\n") {
		if path, ok := strings.CutPrefix(line, "worktree "); ok && path != repo {
			path, err := filepath.Rel(repo, path)
			ts.Check(err)
			lines = append(lines, "worktree "+path)
		}
	}
	for ref := range strings.FieldsSeq(git(ts, repo, "for-each-ref", "--format=%(refname)", "refs/heads", "refs/coven", "refs/stash")) {
		lines = append(lines, "ref "+ref)
	}
	for _, pattern := range []string{".git/*.lock", ".git/refs/*.lock", ".git/refs/heads/*.lock", ".git/refs/heads/*/*.lock", ".git/worktrees/*/*.lock"} {
		found, err := filepath.Glob(filepath.Join(repo, pattern))
		ts.Check(err)
		for _, file := range found {
			lines = append(lines, "lock "+strings.TrimPrefix(file, repo+"/"))
		}
	}
	lines = append(lines, takenLocks(ts, repo)...)
	sockets, err := filepath.Glob(filepath.Join(ts.Getenv("XDG_RUNTIME_DIR"), "*"))
	ts.Check(err)
	for range sockets {
		lines = append(lines, "sockets of a coven")
	}
	slices.Sort(lines)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(strings.Join(lines, "\n")+"\n"), 0o644))
}

// takenLocks returns the locks of coven that a process holds.
func takenLocks(ts *testscript.TestScript, repo string) []string {
	files, err := filepath.Glob(filepath.Join(repo, ".git/coven/locks/*"))
	ts.Check(err)
	var taken []string
	for _, file := range files {
		f, err := os.Open(file)
		ts.Check(err)
		if syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) != nil {
			taken = append(taken, "taken "+strings.TrimPrefix(file, repo+"/"))
		}
		_ = f.Close()
	}
	return taken
}

// cmdSignal implements signal NAME REPO: it sends a signal to the covens that run tasks in a repository.
func cmdSignal(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2, "signal NAME REPO")
	number := map[string]syscall.Signal{
		"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT,
		"KILL": syscall.SIGKILL,
	}[args[0]]
	sent := 0
	for _, p := range covens(ts.MkAbs(args[1]), "run", "resume", "gc", "grimoires") {
		if number != 0 {
			ts.Check(syscall.Kill(p.pid, number))
			sent++
		}
	}
	if sent == 0 {
		ts.Fatalf("no coven got %s", args[0])
	}
}

// covens returns the covens that work in a directory and run one of the commands. A child that has not yet
// executed its own program looks like its parent, so it is left out.
func covens(dir string, commands ...string) []proc {
	found := map[int]proc{}
	for _, p := range processes(dir) {
		if len(p.argv) > 1 && filepath.Base(p.argv[0]) == "coven" && slices.Contains(commands, p.argv[1]) {
			found[p.pid] = p
		}
	}
	var all []proc
	for _, p := range found {
		if _, child := found[parentOf(p.pid)]; !child && began(p.pid) != 0 { // the parent of one that has ended is unknown
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b proc) int { return began(a.pid) - began(b.pid) }) // oldest first
	return all
}

// began returns the start time of a process, in ticks since the machine started, or 0 if it has ended. IDs
// do not show the order, because they wrap around.
func began(pid int) int {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // from the third on
	ticks, err := strconv.Atoi(fields[22-3])
	if err != nil {
		return 0
	}
	return ticks
}

// parentOf returns the parent of a process, or 0.
func parentOf(pid int) int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "\nPPid:\t")
	line, _, _ := strings.Cut(rest, "\n")
	parent, err := strconv.Atoi(line)
	if err != nil {
		return 0
	}
	return parent
}
