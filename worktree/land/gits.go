package land

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/worktree/internal/names"
)

const (
	// gitTimeout limits the time for which a landing waits for git processes, such as a commit whose message the
	// user is writing.
	gitTimeout = 2 * time.Second
	gitPoll    = 2 * time.Millisecond
)

// awaitGits waits, for a limited time, for the end of the git processes that run in the checkouts now, except those in
// ignored: each may be between two of its steps, and still go by the index or the branch from before the landing.
// It returns those that still run.
func awaitGits(ctx context.Context, checkouts []Checkout, ignored []int) []int {
	ctx, cancel := context.WithTimeout(ctx, gitTimeout)
	defer cancel()
	poll := time.NewTicker(gitPoll)
	defer poll.Stop()
	running := gitsIn(checkouts)
	for running = without(running, ignored); len(running) > 0; {
		select {
		case <-ctx.Done():
			return running
		case <-poll.C:
		}
		now := gitsIn(checkouts)
		running = slices.DeleteFunc(running, func(pid int) bool { return !slices.Contains(now, pid) })
	}
	return nil
}

func without(pids, ignored []int) []int {
	return slices.DeleteFunc(pids, func(pid int) bool { return slices.Contains(ignored, pid) })
}

// gitsIn returns the git processes of the user that run in the checkouts and may change them. It finds none where
// there is no /proc.
func gitsIn(checkouts []Checkout) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var found []int
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil && isGitIn(filepath.Join("/proc", entry.Name()), checkouts) {
			found = append(found, pid)
		}
	}
	return found
}

// isGitIn is gitsIn for the process with this directory in /proc.
func isGitIn(process string, checkouts []Checkout) bool {
	name, err := regularfile.Read(filepath.Join(process, "comm"), maxProcess)
	if err != nil || strings.TrimSpace(string(name)) != "git" {
		return false
	}
	line, err := regularfile.Read(filepath.Join(process, "cmdline"), maxProcess)
	if err != nil || !mayChange(strings.Split(string(line), "\x00")) {
		return false
	}
	dir, err := os.Readlink(filepath.Join(process, "cwd"))
	return err == nil && slices.ContainsFunc(checkouts, func(c Checkout) bool {
		return within(dir, c.Path) && !within(dir, filepath.Join(c.Path, names.WorktreesDir))
	})
}

// maxProcess bounds the command line of a process, in bytes. Linux permits 128 KiB per argument.
const maxProcess = 4 << 20

func within(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// mayChange reports whether a git command line may change a checkout. coven's own git processes do not count.
func mayChange(args []string) bool {
	for i := 1; i < len(args); i++ {
		switch arg := args[i]; {
		case i == 1 && strings.HasPrefix(arg, "--git-dir="): // see git.Repo
			return false
		case arg == "-C" || arg == "-c":
			i++
		case !strings.HasPrefix(arg, "-"):
			return !slices.Contains(readers, arg)
		}
	}
	return false
}

// readers are git commands that change no checkout. Some of them run for long, with a pager.
var readers = []string{
	"blame", "cat-file", "daemon", "diff", "difftool", "fetch", "for-each-ref", "fsmonitor--daemon", "gc", "grep", "help", "log",
	"ls-files", "maintenance", "push", "reflog", "rev-list", "rev-parse", "show", "status",
}
