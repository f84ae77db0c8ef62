package driver

import (
	"errors"
	"fmt"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/oneline"
	"github.com/coven-run/coven/internal/process"
)

// judge reports whether the run was a success, and why not.
func (r *run) judge(exit process.Exit) {
	kind, why := verdict(r.report.Result)
	owed, _ := r.talk.open()
	if r.command.Server && !owed && (exit.Cause == nil || errors.Is(exit.Cause, errOver)) {
		exit = process.Exit{Err: exit.Err} // how it ends does not matter
	}
	r.decided(exit, owed)
	switch {
	case r.bypass != nil:
		r.fail(Ungated, "%v", r.bypass)
	case errors.Is(exit.Cause, process.ErrTimeout), errors.Is(exit.Cause, process.ErrIdle):
		r.fail(Timeout, "%v", exit.Cause)
	case errors.Is(exit.Cause, errGateLost), errors.Is(exit.Cause, errNoGate):
		r.fail(GateLost, "%v; no tool call is allowed without it", exit.Cause)
	case errors.Is(exit.Cause, errSpent):
		r.fail(kindOfSpent(r.spent), "%v", r.spent)
	case errors.Is(exit.Cause, errStuck):
		r.fail(Stuck, "%v", exit.Cause)
	case errors.Is(exit.Cause, errLimited):
		r.fail(Limit, "%v", exit.Cause)
	case errors.Is(exit.Cause, errLogin):
		r.fail(Login, "%v", exit.Cause)
	case errors.Is(exit.Cause, errAsks), errors.Is(exit.Cause, errAnswer):
		r.fail(Failed, "%v", exit.Cause)
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

// kindOfSpent returns the kind of failure of an agent that may use no more.
func kindOfSpent(why error) event.ErrorType {
	if errors.As(why, new(*turnsError)) {
		return Turns
	}
	return Budget
}

// decided looks for a call after the last result that never reached the gate.
func (r *run) decided(exit process.Exit, owed bool) {
	if r.bypass == nil && exit.Cause == nil && exit.Err == nil && !owed {
		r.bypass = r.undecidedCall()
	}
}

func (r *run) fail(kind event.ErrorType, format string, args ...any) {
	r.report.Kind, r.report.Error = kind, fmt.Sprintf(format, args...)
}

// lastText returns the agent's last text if it ended without a result.
func (r *run) lastText() string {
	if r.report.Text == "" {
		return ""
	}
	return ": " + oneline.Of(r.report.Text)
}

func exitText(exit process.Exit) string {
	if exit.Signal != 0 {
		return "signal " + exit.Signal.String()
	}
	return fmt.Sprintf("exit code %d", exit.Code)
}
