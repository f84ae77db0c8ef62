package task

import (
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/text/shellword"
)

// Exit codes and next commands of this package's errors; see package exit.

// CommandExit returns exit.Person.
func (e *StatusError) CommandExit() int { return exit.Person }

// NextCommand returns the command that shows the task.
func (e *StatusError) NextCommand() string { return "coven task show " + shellword.Word(e.ID) }

// CommandExit returns exit.Person.
func (e *BlockedError) CommandExit() int { return exit.Person }

// NextCommand returns the command that explains what blocks the task.
func (e *BlockedError) NextCommand() string { return "coven why " + shellword.Word(e.ID) }

// NextCommand returns the command that shows the owner of the task.
func (e *ClaimedError) NextCommand() string { return "coven task show " + shellword.Word(e.ID) }

// NextCommand returns the command that opens the task's file, or shows the task.
func (e *TooLargeError) NextCommand() string {
	if e.File == "" {
		return "coven task show " + shellword.Word(e.ID)
	}
	return shellword.Edit(e.File, e.Line)
}

// CommandExit returns exit.Usage.
func (e *CycleError) CommandExit() int { return exit.Usage }

// NextCommand returns the command that shows one of the tasks and its blockers.
func (e *CycleError) NextCommand() string { return "coven task show " + shellword.Word(e.IDs[0]) }

// CommandExit returns exit.Usage.
func (e *BackendError) CommandExit() int { return exit.Usage }

// NextCommand returns the command that installs a program for reading the tasks.
func (e *BackendError) NextCommand() string { return "npm install -g @beads/bd" }

// CommandExit returns exit.Usage.
func (e *VersionError) CommandExit() int { return exit.Usage }

// NextCommand returns the command that installs the tested version.
func (e *VersionError) NextCommand() string { return upgrade(e.Program) }

// CommandExit returns exit.Usage.
func (e *EmptyError) CommandExit() int { return exit.Usage }

// NextCommand returns the program's command that shows its database.
func (e *EmptyError) NextCommand() string { return "bd where" }

// CommandExit returns exit.Usage.
func (e *RedirectError) CommandExit() int { return exit.Usage }

// NextCommand returns the setting that makes coven follow the redirection.
func (e *RedirectError) NextCommand() string { return "export BEADS_DIR=" + shellword.Word(e.To) }

// CommandExit returns exit.Usage.
func (e *ConflictMarkersError) CommandExit() int { return exit.Usage }

// NextCommand returns the command that opens the file at the conflict.
func (e *ConflictMarkersError) NextCommand() string { return shellword.Edit(e.File, e.Line) }

// CommandExit returns exit.Usage.
func (e *CorruptError) CommandExit() int { return exit.Usage }

// NextCommand returns the command that opens the file at the invalid line.
func (e *CorruptError) NextCommand() string { return shellword.Edit(e.File, e.Line) }

// NextCommand returns the program's command for diagnosis. bd doctor refuses most databases.
func (e *ProgramError) NextCommand() string {
	if e.Program == BD {
		return "bd where"
	}
	return shellword.Word(e.Program) + " doctor"
}
