package driver

import (
	"context"
	"errors"
	"testing"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/gate"
	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/plugins/provider"
)

// asked is a gate that was asked about some calls.
type asked map[string]bool

func (asked) Decide(context.Context, gate.Call) gate.Verdict { return gate.Verdict{} }
func (a asked) Decided(id string) bool                       { return a[id] }

func (a asked) Refused(string) bool { return false }

func (a asked) Ended(string) {}

// A call that appears after the last result and never reached the gate makes the run a failure.
func TestUndecidedAfterTheResult(t *testing.T) {
	for id, want := range map[string]event.ErrorType{"decided": None, "undecided": Ungated} {
		r := newRun(Job{Gate: asked{"decided": true}})
		r.audit.gated = true
		r.report.Result = provider.Result{OK: true}
		r.owed.answered()
		r.audit.asked(id)
		r.conclude(process.Exit{})
		if r.report.Kind != want || want == Ungated && !errors.Is(r.audit.bypass, errUngated) {
			t.Errorf("a call that is %s: %s %v", id, r.report.Kind, r.audit.bypass)
		}
	}
}
