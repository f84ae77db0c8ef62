// Package rehearsal reports that the commit of a change would fail, before an agent is paid for the change.
package rehearsal

import "github.com/coven-run/coven/internal/exit"

// Error means that a hook, a filter or the signature of the repository fails before the first agent starts. The
// session is interrupted, and its task is not to blame: others would fail in the same way.
type Error struct{ Reason string }

func (e *Error) Error() string { return "the commit of a change would fail: " + e.Reason }

// CommandExit returns exit.Usage.
func (e *Error) CommandExit() int { return exit.Usage }

// NextCommand asks for a repair, without which coven resume would fail again.
func (e *Error) NextCommand() string { return "repair it, then coven resume" }
