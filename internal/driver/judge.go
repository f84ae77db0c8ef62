package driver

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/internal/text/oneline"
)

// conclude decides whether the run succeeded, and records the failure otherwise.
func (r *run) conclude(exit process.Exit) {
	kind, why := verdict(r.report.Result)
	owed, _ := r.owed.open()
	if !owed && (errors.Is(exit.Cause, errOver) || r.command.Server && exit.Cause == nil) {
		exit = process.Exit{Err: exit.Err} // it need not exit cleanly
	}
	r.auditEnd(exit, owed)
	stopped, kindOfStop, reason := r.stopped(exit.Cause)
	switch {
	case r.audit.bypass != nil:
		r.fail(Ungated, "%v", r.audit.bypass)
	case stopped:
		r.fail(kindOfStop, "%s", reason)
	case r.recordErr != nil:
		r.fail(Internal, "%v", r.recordErr)
	case exit.Err != nil:
		r.fail(Internal, "%v", exit.Err)
	case exit.Cause != nil:
		r.fail(Timeout, "stopped: %v", exit.Cause)
	case owed:
		r.fail(ProcessExit, "the agent ended with %s and without a result%s", exitText(exit), r.lastText())
	case kind != None:
		r.fail(kind, "%s", why)
	case exit.Code != 0 || exit.Signal != 0:
		r.fail(ProcessExit, "the agent ended with %s after its result", exitText(exit))
	}
}

// stopped reports whether coven stopped the agent for a cause with its own kind of failure.
func (r *run) stopped(cause error) (ok bool, kind event.ErrorType, why string) {
	why = fmt.Sprint(cause)
	switch {
	case errors.Is(cause, process.ErrTimeout), errors.Is(cause, process.ErrIdle):
		return true, Timeout, why
	case errors.Is(cause, errGateLost), errors.Is(cause, errNoGate):
		return true, GateLost, why + "; no tool call is allowed without it"
	case errors.Is(cause, errSpent):
		return true, kindOfSpent(r.spent), fmt.Sprint(r.spent)
	case errors.Is(cause, errStuck):
		return true, Stuck, why
	case errors.Is(cause, errLimited):
		return true, Limit, why
	case errors.Is(cause, errLogin):
		return true, Login, why
	case errors.Is(cause, errAsks), errors.Is(cause, errAnswer):
		return true, Failed, why
	}
	return false, None, ""
}

// kindOfSpent returns the kind of failure for an error of Job.Spend.
func kindOfSpent(why error) event.ErrorType {
	if errors.As(why, new(*turnsError)) {
		return Turns
	}
	return Budget
}

// auditEnd checks the calls that the agent made after its last result.
func (r *run) auditEnd(exit process.Exit, owed bool) {
	if exit.Cause == nil && exit.Err == nil && !owed {
		_ = r.audit.undecided() // sets bypass
	}
}

func (r *run) fail(kind event.ErrorType, format string, args ...any) {
	r.report.Kind, r.report.Error = kind, fmt.Sprintf(format, args...)
}

// lastText returns the last text of an agent that ended without a result, or else its last plain output line.
func (r *run) lastText() string {
	last := cmp.Or(r.report.Text, r.plain)
	if last == "" {
		return ""
	}
	return ": " + oneline.Of(last)
}

func exitText(exit process.Exit) string {
	if exit.Signal != 0 {
		return "signal " + exit.Signal.String()
	}
	return fmt.Sprintf("exit code %d", exit.Code)
}
