package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/internal/registry"
	"github.com/coven-run/coven/internal/regularfile"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/internal/trust"
	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/worktree"
)

// classify gives an error of the parts its exit code.
func classify(err error) int {
	backend, conflict, corrupt := (*task.BackendError)(nil), (*task.ConflictMarkersError)(nil), (*task.CorruptError)(nil)
	checkout := (*worktree.CheckoutError)(nil)
	switch {
	case errors.As(err, new(*session.DamagedError)):
		return exitPerson
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case aboutTrust(err):
		return exitUsage
	case errors.As(err, new(*worktree.BusyError)):
		return exitPerson
	case errors.As(err, &backend), errors.As(err, &conflict), errors.As(err, &corrupt):
		return exitUsage
	case errors.Is(err, worktree.ErrNotRepository), errors.Is(err, worktree.ErrNoCommits), errors.Is(err, worktree.ErrBare),
		errors.Is(err, worktree.ErrDetached), errors.Is(err, worktree.ErrTaskBranch), errors.Is(err, worktree.ErrUnknownBranch):
		return exitUsage
	case errors.As(err, new(config.Errors)), errors.Is(err, plugins.ErrUnknown), grimoires.IsInvalid(err):
		return exitUsage
	case errors.Is(err, task.ErrInvalid), errors.As(err, new(*task.CycleError)), errors.As(err, new(*task.RedirectError)):
		return exitUsage
	case errors.As(err, &checkout), errors.Is(err, worktree.ErrClaimed), errors.Is(err, task.ErrClaimed),
		errors.Is(err, task.ErrNotClaimable), errors.As(err, new(*task.BlockedError)):
		return exitPerson
	}
	return exitFailed
}

// hint says what to do about an error, when the error does not say it itself.
func hint(err error) string {
	blocked, status := (*task.BlockedError)(nil), (*task.StatusError)(nil)
	damaged, link := (*session.DamagedError)(nil), (*regularfile.LinkError)(nil)
	switch {
	case errors.As(err, &damaged):
		return nextDamaged(damaged)
	case errors.As(err, &link):
		return linkHint(link)
	case errors.As(err, &blocked):
		return "coven why " + shellWord(blocked.ID)
	case errors.As(err, &status):
		return "coven task show " + shellWord(status.ID)
	case errors.Is(err, task.ErrNotFound):
		return "coven task list"
	case errors.Is(err, worktree.ErrNoCommits):
		return "git commit"
	case errors.Is(err, worktree.ErrUnknownBranch):
		return "git branch"
	case errors.Is(err, worktree.ErrNotRepository):
		return "go to a git repository, or make one: git init"
	case errors.Is(err, worktree.ErrClaimed):
		return "coven status"
	case aboutTrust(err):
		return trustHint(err)
	case errors.Is(err, process.ErrNotFound):
		return installer(err) + ", then coven resume"
	}
	return ""
}

// aboutTrust says whether an error is about what may run.
func aboutTrust(err error) bool {
	return errors.As(err, new(*registry.UntrustedError)) || errors.As(err, new(*registry.MismatchError)) ||
		errors.As(err, new(*registry.BrokenError)) || errors.As(err, new(*registry.CacheError)) || errors.As(err, new(*trust.Error))
}

// trustHint says what to do about such an error.
func trustHint(err error) string {
	store, broken, mismatch := (*trust.Error)(nil), (*registry.BrokenError)(nil), (*registry.MismatchError)(nil)
	_, open := trustable(err)
	switch {
	case open:
		return "coven trust"
	case errors.As(err, &mismatch):
		return nextPlugin(mismatch.Plugin)
	case errors.As(err, &broken):
		return nextPlugin(broken.Plugin)
	case errors.As(err, &store):
		return store.Next
	}
	return "export XDG_CACHE_HOME=DIR, a directory of yours outside of the repository"
}

// remedy is the one command that helps against an error; empty when there is no
// such command.
func remedy(err error) string {
	busy, backend, redirect := (*worktree.BusyError)(nil), (*task.BackendError)(nil), (*task.RedirectError)(nil)
	marked, corrupt, program := (*task.ConflictMarkersError)(nil), (*task.CorruptError)(nil), (*task.ProgramError)(nil)
	wrong, exit := config.Errors(nil), (*exitError)(nil)
	switch {
	case errors.As(err, &exit):
		return exit.next
	case errors.Is(err, worktree.ErrNotRepository):
		return "git init"
	case errors.Is(err, worktree.ErrNoCommits):
		return "git commit --allow-empty -m first"
	case errors.Is(err, worktree.ErrBare):
		return "git clone . ../checkout"
	case errors.Is(err, worktree.ErrDetached), errors.Is(err, worktree.ErrTaskBranch):
		return "git switch BRANCH"
	case errors.As(err, &busy):
		return "rm " + shellWord(busy.File)
	case errors.As(err, &backend):
		return "npm install -g @beads/bd"
	case errors.As(err, &redirect):
		return "export BEADS_DIR=" + shellWord(redirect.To)
	case errors.As(err, &marked):
		return editorAt(marked.File, marked.Line)
	case errors.As(err, &corrupt):
		return editorAt(corrupt.File, corrupt.Line)
	case errors.As(err, &program):
		return shellWord(program.Program) + " doctor"
	case errors.As(err, &wrong) && len(wrong) > 0:
		return editorAt(wrong[0].File, wrong[0].Line)
	}
	return hint(err)
}

// editorAt opens a file at a line, if one is given.
func editorAt(file string, line int) string {
	if line == 0 {
		return "${EDITOR:-vi} " + shellWord(file)
	}
	return fmt.Sprintf("${EDITOR:-vi} +%d %s", line, shellWord(file))
}

// size writes bytes for people.
func size(bytes int64) string {
	if bytes < 1000 {
		return fmt.Sprintf("%d B", bytes)
	}
	value, unit := float64(bytes), -1
	for ; value >= 999.5 && unit < len("kMGTPE")-1; unit++ {
		value /= 1000
	}
	if value < 9.95 {
		return fmt.Sprintf("%.1f %cB", value, "kMGTPE"[unit])
	}
	return fmt.Sprintf("%.0f %cB", value, "kMGTPE"[unit])
}

// nextPlugin is the one command that helps with a plugin; empty when it may run.
func nextPlugin(p registry.Plugin) string {
	switch {
	case p.State == registry.Untrusted, p.State == registry.Changed, p.State == registry.Mismatch && p.Project:
		return "coven trust " + shellWord(p.ID())
	case p.State == registry.Mismatch:
		return editorAt(registry.LockFile, 0)
	case p.State == registry.Broken, p.State == registry.Misnamed:
		return "ls -lL " + shellWord(p.File)
	}
	return ""
}

// installer is the command that installs a program which was not found.
func installer(err error) string {
	missing := (*fs.PathError)(nil)
	if errors.As(err, &missing) {
		for _, c := range agentCLIs() {
			if c.program == missing.Path {
				return c.install()
			}
		}
	}
	return "install it"
}
