package task

import (
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/shellword"
)

// What errors of this package mean for the command that they end: see internal/exit.

// ExitCode returns exit.Person.
func (e *StatusError) ExitCode() int { return exit.Person }

// NextCommand returns the command that shows the task.
func (e *StatusError) NextCommand() string { return "coven task show " + shellword.Word(e.ID) }

// ExitCode returns exit.Person.
func (e *BlockedError) ExitCode() int { return exit.Person }

// NextCommand returns the command that explains what blocks the task.
func (e *BlockedError) NextCommand() string { return "coven why " + shellword.Word(e.ID) }

// ExitCode returns exit.Usage.
func (e *CycleError) ExitCode() int { return exit.Usage }

// ExitCode returns exit.Usage.
func (e *BackendError) ExitCode() int { return exit.Usage }

// NextCommand returns the command that installs a program which can read the tasks.
func (e *BackendError) NextCommand() string { return "npm install -g @beads/bd" }

// ExitCode returns exit.Usage.
func (e *RedirectError) ExitCode() int { return exit.Usage }

// NextCommand returns the setting that makes coven follow the redirection.
func (e *RedirectError) NextCommand() string { return "export BEADS_DIR=" + shellword.Word(e.To) }

// ExitCode returns exit.Usage.
func (e *ConflictMarkersError) ExitCode() int { return exit.Usage }

// NextCommand returns the command that opens the file at the conflict.
func (e *ConflictMarkersError) NextCommand() string { return shellword.Edit(e.File, e.Line) }

// ExitCode returns exit.Usage.
func (e *CorruptError) ExitCode() int { return exit.Usage }

// NextCommand returns the command that opens the file at the damage.
func (e *CorruptError) NextCommand() string { return shellword.Edit(e.File, e.Line) }

// NextCommand returns the program's own diagnosis.
func (e *ProgramError) NextCommand() string { return shellword.Word(e.Program) + " doctor" }
