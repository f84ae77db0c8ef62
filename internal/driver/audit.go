package driver

import (
	"errors"
	"fmt"
	"slices"

	"github.com/coven-run/coven/plugins/provider"
)

// Ways to bypass the gate.
var (
	errUngated  = errors.New("a tool ran without a decision by coven's gate")
	errIgnored  = errors.New("a tool ran although coven's gate had refused it")
	errNeverMet = errors.New("the agent CLI never connected to coven's gate, although its provider declares that every tool call passes the gate")
)

// audit compares the calls that a CLI reports with the decisions of the gate. It detects a provider that
// falsely declares that every call passes the gate.
type audit struct {
	gate   Gate
	gated  bool        // the provider declares that every call passes the gate
	met    func() bool // reports whether the CLI has connected to the gate
	called []string    // IDs of calls without a result, if gated
	bypass error       // the first bypass of the gate
}

// asked records a call that must pass the gate.
func (a *audit) asked(id string) {
	if a.gated {
		a.called = append(a.called, id)
	}
}

// result checks the result of a call that ran. refused reports whether coven refused the call in its answer to a
// request of the CLI.
func (a *audit) result(r provider.ToolResult, refused bool) error {
	a.called = slices.DeleteFunc(a.called, func(id string) bool { return id == r.ID })
	switch {
	case r.NeverRan:
	case a.gated && !a.gate.Decided(r.ID):
		return a.bypassed(fmt.Errorf("%w: call %s", errUngated, r.ID))
	case !r.IsError && (a.gate.Refused(r.ID) || refused):
		return a.bypassed(fmt.Errorf("%w: call %s", errIgnored, r.ID))
	}
	return nil
}

// done checks the calls without a reported result when the agent returns its result.
func (a *audit) done() error {
	if err := a.undecided(); err != nil {
		return err
	}
	if a.gated && !a.met() {
		return a.bypassed(errNeverMet)
	}
	return nil
}

// undecided returns an error for a call without a reported result that never reached the gate.
func (a *audit) undecided() error {
	i := slices.IndexFunc(a.called, func(id string) bool { return !a.gate.Decided(id) })
	if i < 0 {
		return nil
	}
	return a.bypassed(fmt.Errorf("%w: call %s", errUngated, a.called[i]))
}

func (a *audit) bypassed(err error) error {
	if a.bypass == nil {
		a.bypass = err
	}
	return err
}
