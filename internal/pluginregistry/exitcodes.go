package pluginregistry

import (
	"cmp"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/text/shellword"
)

// Exit codes and next commands of this package's errors: see internal/exit.

// CommandExit returns exit.Usage.
func (e *UntrustedError) CommandExit() int { return exit.Usage }

// NextCommand returns the command that shows the plugins to trust.
func (e *UntrustedError) NextCommand() string { return "coven trust" }

// CommandExit returns exit.Usage.
func (e *MismatchError) CommandExit() int { return exit.Usage }

// NextCommand returns the command that shows the plugins to trust, or that opens the lock file.
func (e *MismatchError) NextCommand() string {
	if e.Plugin.Project {
		return "coven trust"
	}
	return e.Plugin.NextCommand()
}

// CommandExit returns exit.Usage.
func (e *BrokenError) CommandExit() int { return exit.Usage }

// NextCommand returns the command that shows the file, or the details of the plugin.
func (e *BrokenError) NextCommand() string {
	return cmp.Or(e.Plugin.NextCommand(), "coven plugins info "+shellword.Word(e.Plugin.ID()))
}

// CommandExit returns exit.Usage.
func (e *CacheError) CommandExit() int { return exit.Usage }

// NextCommand returns the setting that moves the copies elsewhere.
func (e *CacheError) NextCommand() string {
	return "export XDG_CACHE_HOME=DIR, a directory of yours outside of the repository"
}

// NextCommand returns the next command for a plugin, or "" if it may run.
func (p Plugin) NextCommand() string {
	switch {
	case p.State == Untrusted, p.State == Changed, p.State == Mismatch && p.Project:
		return "coven trust " + shellword.Word(p.ID())
	case p.State == Mismatch:
		return shellword.Edit(LockFile, 0)
	case p.State == Broken, p.State == Misnamed:
		return "ls -lL " + shellword.Word(p.File)
	}
	return ""
}

// NextCommand returns the command that lists the plugins.
func (e *UnknownError) NextCommand() string { return "coven plugins list" }
