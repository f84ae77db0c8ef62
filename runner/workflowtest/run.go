package workflowtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/reviewer"
	"github.com/coven-run/coven/runner"
)

// Outcome is how one test went.
type Outcome struct {
	Test   string   `json:"test"`
	Status string   `json:"status"`
	Steps  []string `json:"steps"`  // paths of the steps that ran, in order, #1 left out
	Faults []string `json:"faults"` // what is not as expected
}

// Play plays a test and adds the ways that it takes to what is covered.
func (t Test) Play(ctx context.Context, plan *grimoires.Plan, c *Coverage) Outcome {
	p := *plan
	p.Task, p.Checks = t.Task, t.Checks
	cast := &cast{answers: t.Answers, runs: map[string]int{}, given: map[string][]string{}}
	state := runner.NewState(cast, &p)
	state.Seen = c.saw
	out, err := runner.Build(&p).Run(ctx, state)
	o := Outcome{Test: t.Name, Steps: cast.paths, Faults: []string{}}
	wait := (*runner.Wait)(nil)
	switch {
	case errors.As(err, &wait):
		o.Status = string(runner.Waiting)
	case err != nil:
		o.Status = "broken"
		o.Faults = append(o.Faults, err.Error())
		return o
	case out.Verdict == runner.Stopped:
		o.Status = string(out.Status)
	case out.Verdict == runner.Failed:
		o.Status = string(runner.Blocked)
	default:
		o.Status = string(runner.Completed)
	}
	o.Faults = append(o.Faults, t.compare(o, out, cast)...)
	return o
}

// compare says what is not as expected.
func (t Test) compare(o Outcome, out runner.Outcome, played *cast) []string {
	var faults []string
	if o.Status != t.Expect.Status {
		why := ""
		if out.Result.Error != "" {
			why = ": " + out.Result.Error
		}
		faults = append(faults, fmt.Sprintf("it ends %s, not %s%s", o.Status, t.Expect.Status, why))
	}
	if t.Expect.Steps != nil && !slices.Equal(t.Expect.Steps, o.Steps) {
		faults = append(faults, fmt.Sprintf("it runs\n      %s\n    and not\n      %s", strings.Join(o.Steps, " "), strings.Join(t.Expect.Steps, " ")))
	}
	for step, texts := range t.Expect.Given {
		all := strings.Join(played.given[step], "\x00")
		for _, want := range texts {
			switch {
			case played.runs[step] == 0:
				faults = append(faults, fmt.Sprintf("the step %s does not run", step))
			case !strings.Contains(all, want):
				faults = append(faults, fmt.Sprintf("the step %s is not given %q", step, want))
			}
		}
	}
	slices.Sort(faults)
	return faults
}

// cast is Leaves that answers from a file.
type cast struct {
	answers map[string][]Answer
	runs    map[string]int
	paths   []string
	given   map[string][]string // prompts and commands, by step
}

// Do implements runner.Leaves.
func (c *cast) Do(ctx context.Context, call runner.Call) (runner.Result, error) {
	if err := context.Cause(ctx); err != nil {
		return runner.Result{}, err
	}
	if call.Pause != nil {
		return runner.Result{OK: true}, nil
	}
	c.paths = append(c.paths, strings.TrimSuffix(call.Path, "#1"))
	c.runs[call.Step]++
	switch {
	case call.Agent != nil:
		c.given[call.Step] = append(c.given[call.Step], call.Agent.Prompt)
	case call.Script != nil:
		c.given[call.Step] = append(c.given[call.Step], call.Script.Command)
	case call.Merge != nil:
		c.given[call.Step] = append(c.given[call.Step], call.Merge.Message)
	case call.Review != nil:
		for _, j := range call.Review.Reviewers {
			c.given[call.Step] = append(c.given[call.Step], j.Options["prompt"])
		}
	case call.Arbiter != nil:
		c.given[call.Step] = append(c.given[call.Step], call.Arbiter.Arbiter.Options["prompt"])
	}
	return c.answer(call)
}

func (c *cast) answer(call runner.Call) (runner.Result, error) {
	a := Answer{OK: true, Summary: "did " + call.Step, Files: []string{"changed.txt"}}
	if list := c.answers[call.Step]; len(list) > 0 {
		a = list[min(c.runs[call.Step], len(list))-1]
	}
	if a.Wait != "" {
		return runner.Result{}, &runner.Wait{Reason: event.WaitReason(a.Wait), Detail: "as the test says"}
	}
	r := runner.Result{
		OK: a.OK, Output: a.Output, Outputs: a.Outputs, Summary: a.Summary, Error: a.Error, ExitCode: a.ExitCode,
		Tree: fmt.Sprintf("tree-%d", len(c.paths)), Commit: fmt.Sprintf("commit-%d", len(c.paths)),
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
		r.Error, r.ErrorType, r.Files = "conflict in "+strings.Join(a.Conflict, ", "), runner.ConflictType, a.Conflict
	case r.OK && call.Agent != nil && call.Agent.ExpectChanges && len(a.Files) == 0:
		r = runner.Unchanged(r)
	case !r.OK && r.Error == "":
		r.Error = fmt.Sprintf("it ended with exit code %d", r.ExitCode)
	}
	return r, nil
}

// reviewed is what a review gives: the first reviewer found what was found.
func reviewed(call runner.Call, a Answer, r runner.Result) runner.Result {
	r.Commit = ""
	if a.Error != "" {
		r.ErrorType = runner.PluginType
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
	r.Output = runner.FindingsText(runner.Judged(r.Opinions))
	if !r.OK {
		r.Error, r.ErrorType = "the review found what must not land", runner.FindingsType
	}
	return r
}
