package grimoires

import "github.com/coven-run/coven/internal/exit"

// CommandExit returns exit.Usage.
func (e *UnknownError) CommandExit() int { return exit.Usage }

// NextCommand returns the command that lists the existing ones.
func (e *UnknownError) NextCommand() string { return "coven " + e.Kind + "s list" }

// CommandExit returns exit.Usage.
func (e *VersionError) CommandExit() int { return exit.Usage }

// NextCommand returns the command that shows the version of this coven.
func (e *VersionError) NextCommand() string { return "coven version" }
