package workflowtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/config/check"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/event/findings"
	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/reviewer"
	"github.com/coven-run/coven/runner"
	"github.com/coven-run/coven/runner/engine"
)

// Outcome is the outcome of one test.
type Outcome struct {
	Test   string   `json:"test"`
	Status string   `json:"status"`
	Steps  []string `json:"steps"`  // paths of the steps that ran, in order, without #1
	Faults []string `json:"faults"` // differences from the test's expectations
}

// Run runs the test and records its exits in the coverage.
func (t Test) Run(ctx context.Context, plan *grimoires.Plan, c *Coverage) Outcome {
	p := *plan
	p.Task, p.Checks = t.Task, check.Of(t.Checks...)
	stub := &stubs{answers: t.Answers, runs: map[string]int{}, given: map[string][]string{}}
	state := engine.NewState(stub, &p, engine.Options{Exited: c.exited})
	out, err := engine.Build(&p).Run(ctx, state)
	o := Outcome{Test: t.Name, Steps: stub.paths, Faults: []string{}}
	wait := (*runner.Wait)(nil)
	switch {
	case errors.As(err, &wait):
		o.Status = string(event.StatusWaiting)
	case err != nil:
		o.Status = "broken"
		o.Faults = append(o.Faults, err.Error())
		return o
	case out.Verdict == engine.Stopped:
		o.Status = string(out.Status)
	case out.Verdict == engine.Failed:
		o.Status = string(event.StatusBlocked)
	default:
		o.Status = string(event.StatusCompleted)
	}
	o.Faults = append(o.Faults, t.compare(o, out, stub)...)
	return o
}

// compare returns the differences from the test's expectations.
func (t Test) compare(o Outcome, out engine.Outcome, s *stubs) []string {
	var faults []string
	if o.Status != t.Expect.Status {
		why := ""
		if out.Result.Error != "" {
			why = ": " + out.Result.Error
		}
		faults = append(faults, fmt.Sprintf("the run ended %s, want %s%s", o.Status, t.Expect.Status, why))
	}
	if t.Expect.Steps != nil && !slices.Equal(t.Expect.Steps, o.Steps) {
		faults = append(faults, fmt.Sprintf("the run took\n      %s\n    want\n      %s", strings.Join(o.Steps, " "), strings.Join(t.Expect.Steps, " ")))
	}
	for _, step := range slices.Sorted(maps.Keys(t.Expect.Given)) {
		all := strings.Join(s.given[step], "\x00")
		for _, want := range t.Expect.Given[step] {
			switch {
			case s.runs[step] == 0:
				faults = append(faults, fmt.Sprintf("step %s did not run", step))
			case !strings.Contains(all, want):
				faults = append(faults, fmt.Sprintf("step %s was not given %q", step, want))
			}
		}
	}
	return faults
}

// stubs implements the leaves of a tree with the answers of a test.
type stubs struct {
	answers map[string][]Answer
	runs    map[string]int
	paths   []string
	given   map[string][]string // prompts and commands, by step
}

// Do implements engine.Leaves.
func (s *stubs) Do(ctx context.Context, call engine.Call) (event.Result, error) {
	if err := context.Cause(ctx); err != nil {
		return event.Result{}, err
	}
	if call.Pause != nil {
		return event.Result{OK: true}, nil
	}
	s.paths = append(s.paths, strings.TrimSuffix(call.Path, "#1"))
	s.runs[call.Step]++
	switch {
	case call.Agent != nil:
		s.given[call.Step] = append(s.given[call.Step], call.Agent.Prompt)
	case call.Script != nil:
		s.given[call.Step] = append(s.given[call.Step], call.Script.Command)
	case call.Merge != nil:
		s.given[call.Step] = append(s.given[call.Step], call.Merge.Message)
	case call.Review != nil:
		for _, j := range call.Review.Reviewers {
			s.given[call.Step] = append(s.given[call.Step], j.Options["prompt"])
		}
	case call.Arbiter != nil:
		s.given[call.Step] = append(s.given[call.Step], call.Arbiter.Arbiter.Options["prompt"])
	}
	return s.answer(call)
}

func (s *stubs) answer(call engine.Call) (event.Result, error) {
	a := Answer{OK: true, Summary: "did " + call.Step, Files: []string{"changed.txt"}}
	if list := s.answers[call.Step]; len(list) > 0 {
		a = list[min(s.runs[call.Step], len(list))-1]
	}
	if a.Wait != "" {
		return event.Result{}, &runner.Wait{Reason: event.WaitReason(a.Wait), Detail: "the test waits here"}
	}
	r := event.Result{
		OK: a.OK, Output: a.Output, Outputs: a.Outputs, Summary: a.Summary, Error: a.Error, ExitCode: a.ExitCode,
		Tree: fmt.Sprintf("tree-%d", len(s.paths)), Commit: fmt.Sprintf("commit-%d", len(s.paths)),
	}
	switch {
	case call.Review != nil:
		return reviewed(call, a, r), nil
	case call.Arbiter != nil:
		r.Decided, r.Continue, r.Commit = r.OK, a.Continue, ""
	case call.Merge == nil:
		r.Files = a.Files
	}
	switch {
	case len(a.Conflict) > 0:
		r.Error, r.ErrorType, r.Files = "conflict in "+strings.Join(a.Conflict, ", "), event.ErrorConflict, a.Conflict
	case r.OK && call.Agent != nil && call.Agent.ExpectChanges && len(a.Files) == 0:
		r = engine.Unchanged(r)
	case !r.OK && r.Error == "":
		r.Error = fmt.Sprintf("it ended with exit code %d", r.ExitCode)
	}
	return r, nil
}

// reviewed returns the result of a review. The first reviewer reports all findings.
func reviewed(call engine.Call, a Answer, r event.Result) event.Result {
	r.Commit = ""
	if a.Error != "" {
		r.ErrorType = event.ErrorPlugin
		return r
	}
	for i, j := range call.Review.Reviewers {
		o := arbiter.Opinion{Reviewer: j.Name, Verdict: reviewer.Pass}
		for _, text := range a.Findings {
			if i == 0 {
				o.Verdict = reviewer.Fail
				o.Findings = append(o.Findings, reviewer.Finding{Severity: reviewer.Error, Message: text})
			}
		}
		r.Opinions = append(r.Opinions, event.Opinion{Opinion: o})
	}
	r.Output = findings.Text(findings.Opinions(r.Opinions))
	if !r.OK {
		r.Error, r.ErrorType = "the review found errors", event.ErrorFindings
	}
	return r
}
