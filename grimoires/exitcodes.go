package grimoires

import "github.com/coven-run/coven/internal/exit"

// ExitCode returns exit.Usage.
func (e *UnknownError) ExitCode() int { return exit.Usage }

// ExitCode returns exit.Usage.
func (e *VersionError) ExitCode() int { return exit.Usage }

// NextCommand returns the command that shows the version of this coven.
func (e *VersionError) NextCommand() string { return "coven version" }
