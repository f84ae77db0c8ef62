package runner

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/config/check"
	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/reviewer"
	"github.com/coven-run/coven/runner/engine"
)

// uses returns an agent that reports these usage totals after its answers.
func uses(answers ...event.Usage) func(AgentRun) (driver.Report, error) {
	return func(run AgentRun) (driver.Report, error) {
		for _, u := range answers {
			if err := run.Spend(u); err != nil {
				return driver.Report{Kind: driver.Timeout, Used: u}, err
			}
		}
		return driver.Report{Text: "done", Used: answers[len(answers)-1]}, nil
	}
}

func agentCall(path string, budgets ...engine.StepBudget) engine.Call {
	return engine.Call{Path: path, Step: path, Agent: &engine.AgentInput{Prompt: "work"}, Budgets: budgets}
}

// A review passes if every reviewer passes, in any order.
func TestEveryReviewerCounts(t *testing.T) {
	wrong := []reviewer.Finding{{Severity: reviewer.Error, Message: "wrong"}}
	verdicts := map[string]reviewer.Review{
		"pass": {Verdict: reviewer.Pass}, "fail": {Verdict: reviewer.Fail}, "error": {Verdict: reviewer.Pass, Findings: wrong},
	}
	for _, names := range [][]string{
		{"pass", "pass"}, {"pass", "fail"}, {"fail", "pass"}, {"fail", "fail"}, {"error", "pass"}, {"pass", "error"}, {"pass", "fail", "pass"},
	} {
		s := newWorld()
		s.reviewers.reviews = verdicts
		c := engine.Call{Path: "r#1", Step: "r", Review: &engine.ReviewInput{Round: 1}}
		for i, name := range names {
			c.Review.Reviewers = append(c.Review.Reviewers, engine.Reviewer{Name: fmt.Sprint(i), Plugin: name})
		}
		r, err := s.executor().Do(t.Context(), c)
		all := !slices.ContainsFunc(names, func(name string) bool { return name != "pass" })
		if err != nil || r.OK != all || (r.ErrorType == event.ErrorFindings) == all || len(r.Opinions) != len(names) {
			t.Errorf("%v: ok %v, %q, %d opinions, %v", names, r.OK, r.ErrorType, len(r.Opinions), err)
		}
		for i, o := range r.Opinions {
			if o.Reviewer != fmt.Sprint(i) {
				t.Errorf("%v: opinion %d is that of %s", names, i, o.Reviewer)
			}
		}
	}
}

// The usage of earlier steps counts while an agent runs, not only before it starts.
func TestBudgetDuringARun(t *testing.T) {
	s := newWorld()
	w := s.executor()
	whole := engine.StepBudget{Max: budget.Amount{Turns: 5}}
	s.agents.next = append(s.agents.next, uses(event.Usage{Turns: 1}, event.Usage{Turns: 3}))
	if _, err := Recorded(NewJournal(s), w).Do(t.Context(), agentCall("a#1", whole)); err != nil {
		t.Fatal(err)
	}
	s.agents.next = append(s.agents.next, uses(event.Usage{Turns: 1}, event.Usage{Turns: 2}))
	if _, err := Recorded(NewJournal(s), w).Do(t.Context(), agentCall("b#1", whole, engine.StepBudget{Scope: "b", Name: "b", Max: budget.Amount{Turns: 9}})); err != nil {
		t.Fatalf("5 of 5 turns do not exceed the budget: %v", err)
	}
	wait := (*Wait)(nil)
	if _, err := Recorded(NewJournal(s), w).Do(t.Context(), agentCall("c#1", whole)); !errors.As(err, &wait) || !strings.Contains(wait.Detail, "5 of 5 turns") {
		t.Errorf("no agent may start with a spent budget: %v", err)
	}
	more := engine.StepBudget{Max: budget.Amount{Turns: 7}}
	s.agents.next = append(s.agents.next, uses(event.Usage{Turns: 1}, event.Usage{Turns: 2}, event.Usage{Turns: 3}))
	if _, err := Recorded(NewJournal(s), w).Do(t.Context(), agentCall("c#1", more)); !errors.As(err, &wait) || wait.Detail != "the budget of the run is spent: 8 of 7 turns" || wait.More != "turns=+8" {
		t.Errorf("during the run: %v", err)
	}
}

// The usage of all tasks counts toward a shared budget.
func TestSharedBudget(t *testing.T) {
	shared := budget.New(budget.Amount{Turns: 5})
	work := func(turns ...int) error {
		s := newWorld()
		w := s.executor()
		w.Budget = shared
		var used []event.Usage
		for _, n := range turns {
			used = append(used, event.Usage{Turns: n})
		}
		s.agents.next = append(s.agents.next, uses(used...))
		_, err := w.Do(t.Context(), agentCall("a#1"))
		return err
	}
	if err := work(1, 2, 3); err != nil || shared.Reached() != "" {
		t.Fatalf("3 of 5: %v, %q", err, shared.Reached())
	}
	if err := work(1, 2); err != nil || shared.Reached() != "5 of 5 turns" {
		t.Fatalf("5 of 5: %v, %q", err, shared.Reached())
	}
	wait := (*Wait)(nil)
	if err := work(1); !errors.As(err, &wait) || wait.Detail != "the budget of this coven run is spent: 5 of 5 turns" {
		t.Errorf("no agent may start with a spent budget: %v", err)
	}
	shared = budget.New(budget.Amount{Turns: 5})
	if err := work(4); err != nil {
		t.Fatal(err)
	}
	if err := work(1, 2, 3); !errors.As(err, &wait) || wait.Detail != "the budget of this coven run is spent: 6 of 5 turns" {
		t.Errorf("during the run: %v", err)
	}
}

func mergeCall(m engine.MergeInput) engine.Call {
	return engine.Call{Path: "land#1", Step: "land", Merge: &m}
}

// given records a review by a step.
func (s *world) given(step string, findings ...reviewer.Finding) {
	path := step + "#1"
	_ = s.Append(event.Event{Type: event.StepStarted, Path: path}, event.StepStart{Kind: "review"})
	r := event.Result{OK: len(findings) == 0, Tree: "t1", Patch: "p1", Opinions: []event.Opinion{{
		Opinion: arbiter.Opinion{Reviewer: "lint", Verdict: reviewer.Fail, Findings: findings},
	}}}
	if !r.OK {
		r.ErrorType = event.ErrorFindings
	}
	_ = s.Append(event.Event{Type: event.StepCompleted, Path: path}, r)
}

// Tests which changes need approval, by whom, and which land without a question.
func TestMergeDecision(t *testing.T) {
	leak := reviewer.Finding{Severity: reviewer.Error, File: "a.txt", Line: 1, Message: "leaks the token"}
	answer := func(path, patch, tree string, approved bool, accepted ...reviewer.Finding) func(*world) {
		return func(s *world) {
			a := event.MergeDecision{Patch: patch, Tree: tree, Approved: approved, By: "dana"}
			for _, f := range accepted {
				a.Accepted = append(a.Accepted, event.Finding{Step: "r", Reviewer: "lint", Finding: f})
			}
			_ = s.Append(event.Event{Type: event.ReviewAnswered, Path: path}, a)
		}
	}
	found := func(s *world) { s.given("r", leak) }
	integrated := func(s *world) {
		s.landing.candidate.Tree, s.landing.candidate.Patch = "t2", "p2"
	}
	edited := func(s *world) {
		s.landing.candidate.From, s.landing.candidate.Tree, s.landing.candidate.Patch = "t9", "t2", "p2"
	}
	const again = "the change was edited in a.go after it was shown for approval, and needs approval"
	const ready, held, changed = "the change is ready for approval", "1 open error finding: a.txt:1 leaks the token", "the change is not what the reviewers saw and needs approval"
	for name, test := range map[string]struct {
		tell    []func(*world)
		merge   engine.MergeInput
		approve string
		want    string // detail of the wait, empty if the change lands
		asked   int
	}{
		"asked":                              {merge: engine.MergeInput{RequireReview: true}, want: ready, asked: 1},
		"not required":                       {},
		"approved unasked":                   {merge: engine.MergeInput{RequireReview: true}, approve: "--auto-approve"},
		"approved by a person":               {tell: []func(*world){answer("land#1", "p1", "", true)}, merge: engine.MergeInput{RequireReview: true}},
		"refused by a person":                {tell: []func(*world){answer("land#1", "p1", "", false)}, merge: engine.MergeInput{RequireReview: true}, want: ready},
		"another patch was approved":         {tell: []func(*world){answer("land#1", "p0", "t0", true)}, merge: engine.MergeInput{RequireReview: true}, want: again, asked: 1},
		"another landing was approved":       {tell: []func(*world){answer("first#1", "p1", "", true)}, merge: engine.MergeInput{RequireReview: true}, want: ready, asked: 1},
		"to be pushed":                       {merge: engine.MergeInput{RequireReview: true, Push: true}, approve: "--auto-approve", want: ready, asked: 1},
		"to be pushed, approved by a person": {tell: []func(*world){answer("land#1", "p1", "", true)}, merge: engine.MergeInput{RequireReview: true, Push: true}},
		"seen by reviewers":                  {merge: engine.MergeInput{Reviewed: []string{"t1"}}, approve: "--auto-approve"},
		"not seen by reviewers":              {merge: engine.MergeInput{Reviewed: []string{"t0"}}, approve: "--auto-approve", want: changed, asked: 1},
		"not seen by one step":               {merge: engine.MergeInput{Reviewed: []string{"t0", "t1"}}, want: changed, asked: 1},
		"not seen by the last step":          {merge: engine.MergeInput{Reviewed: []string{"t1", "t0"}}, want: changed, asked: 1},
		"an incomplete review":               {merge: engine.MergeInput{Reviewed: []string{""}}, want: changed, asked: 1},
		"not seen, and approved":             {tell: []func(*world){answer("land#1", "p1", "", true)}, merge: engine.MergeInput{Reviewed: []string{"t0"}}},
		"edited while the target came in":    {tell: []func(*world){edited}, merge: engine.MergeInput{Reviewed: []string{"t1"}}, approve: "--auto-approve", want: changed, asked: 1},
		"seen before the target came in":     {tell: []func(*world){integrated}, merge: engine.MergeInput{Reviewed: []string{"t1"}}, approve: "--auto-approve"},
		"approved before the target came in": {tell: []func(*world){integrated, answer("land#1", "p1", "t1", true)}, merge: engine.MergeInput{RequireReview: true}},
		"open":                               {tell: []func(*world){found}, want: held, asked: 1},
		"open, approved unasked":             {tell: []func(*world){found}, merge: engine.MergeInput{RequireReview: true}, approve: "--auto-approve", want: held, asked: 1},
		"open, approved without the finding": {tell: []func(*world){found, answer("land#1", "p1", "", true)}, merge: engine.MergeInput{RequireReview: true}, want: held},
		"open, accepted":                     {tell: []func(*world){found, answer("land#1", "p1", "", true, leak)}, merge: engine.MergeInput{RequireReview: true}},
		"open, accepted with another patch":  {tell: []func(*world){found, answer("land#1", "p0", "t0", true, leak)}, merge: engine.MergeInput{RequireReview: true}, want: again, asked: 1},
		"open and not seen":                  {tell: []func(*world){found}, merge: engine.MergeInput{Reviewed: []string{"t0"}}, want: changed + "; " + held, asked: 1},
		"accepted, not seen, not approved":   {tell: []func(*world){found, answer("land#1", "p0", "t0", true, leak)}, merge: engine.MergeInput{Reviewed: []string{"t0"}}, approve: "--auto-approve", want: changed, asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newWorld()
			for _, tell := range test.tell {
				tell(s)
			}
			w := s.executor()
			w.Approve = test.approve
			before := s.count(event.ReviewAsked)
			r, err := w.Do(t.Context(), mergeCall(test.merge))
			wait := (*Wait)(nil)
			switch {
			case test.want == "" && (err != nil || !r.OK || len(s.landing.landed) != 1):
				t.Errorf("not landed: %+v, %v", r, err)
			case test.want != "" && (!errors.As(err, &wait) || wait.Reason != "review" || wait.Detail != test.want || len(s.landing.landed) != 0):
				t.Errorf("not waiting: %+v, %v", r, err)
			}
			if asked := s.count(event.ReviewAsked) - before; asked != test.asked {
				t.Errorf("a person was asked %d times", asked)
			}
			if wait != nil && (wait.Next == "review") != strings.Contains(test.want, held) {
				t.Errorf("next is %s", wait.Next)
			}
			if err == nil {
				return
			}
			if _, err := w.Do(t.Context(), mergeCall(test.merge)); !errors.As(err, &wait) || s.count(event.ReviewAsked)-before != test.asked {
				t.Errorf("a person was asked again: %v", err)
			}
		})
	}
}

// A change that lands elsewhere must be pushed, unless it needs approval or there is no remote.
func TestMergePush(t *testing.T) {
	for name, test := range map[string]struct {
		merge         engine.MergeInput
		push          string
		command, text string
	}{
		"lands here":   {engine.MergeInput{RequireReview: true}, "git push o b", "", forApproval},
		"pushed":       {engine.MergeInput{RequireReview: true, Push: true}, "git push o b", "git push o b", forPush},
		"no remote":    {engine.MergeInput{RequireReview: true, Push: true}, "", "", forApproval},
		"not reviewed": {engine.MergeInput{RequireReview: true, Push: true, Reviewed: []string{"t0"}}, "git push o b", "", "the change is not what the reviewers saw and needs approval"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newWorld()
			s.landing.push = test.push
			_, err := s.executor().Do(t.Context(), mergeCall(test.merge))
			wait := (*Wait)(nil)
			if !errors.As(err, &wait) || wait.Command != test.command || wait.Detail != test.text || wait.Next != "approve" {
				t.Errorf("%+v, %v", wait, err)
			}
		})
	}
}

// A check runs before a landing, unless it has already passed on the tree that lands.
func TestMergeProof(t *testing.T) {
	receipt := func(command, tree string, code int, settings string) event.Receipt {
		return event.Receipt{Command: command, Tree: tree, ExitCode: code, Settings: settings}
	}
	for name, test := range map[string]struct {
		receipts []event.Receipt
		exits    map[string]int
		runs     string
		fails    bool
	}{
		"nothing ran":         {nil, nil, "lint test", false},
		"all passed":          {[]event.Receipt{receipt("lint", "t1", 0, ""), receipt("test", "t1", 0, "")}, nil, "", false},
		"one is missing":      {[]event.Receipt{receipt("lint", "t1", 0, "")}, nil, "lint test", false},
		"on another tree":     {[]event.Receipt{receipt("lint", "t1", 0, ""), receipt("test", "t0", 0, "")}, nil, "lint test", false},
		"one failed":          {[]event.Receipt{receipt("lint", "t1", 0, ""), receipt("test", "t1", 1, "")}, nil, "lint test", false},
		"with other settings": {[]event.Receipt{receipt("lint", "t1", 0, "x"), receipt("test", "t1", 0, "")}, nil, "lint test", false},
		"one fails now":       {nil, map[string]int{"lint": 2}, "lint", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newWorld()
			if test.exits != nil {
				s.commands.exits = test.exits
			}
			r, err := s.executor().Do(t.Context(), mergeCall(engine.MergeInput{Checks: check.Of("lint", "test"), Receipts: test.receipts}))
			if err != nil || strings.Join(s.commands.ran, " ") != test.runs || r.OK == test.fails || (r.Error != "") != test.fails || (len(s.landing.landed) == 1) != r.OK {
				t.Errorf("ran %q, %+v, %v", s.commands.ran, r, err)
			}
		})
	}
}

// An interrupted merge repeats neither a recorded landing nor a check that passed in this merge. Receipts
// of other steps count only if they are in the call.
func TestMergeContinues(t *testing.T) {
	s := newWorld()
	_ = s.Append(event.Event{Type: event.StepStarted, Path: "land#1"}, event.StepStart{Kind: "merge"})
	_ = s.Append(event.Event{Type: event.LandDone, Path: "land#1"}, event.Landing{Target: "refs/heads/main", New: "landed", Tree: "t1"})
	if r, err := s.executor().Do(t.Context(), mergeCall(engine.MergeInput{Checks: check.Of("test")})); err != nil || r.Commit != "landed" || len(s.landing.landed) != 0 || len(s.commands.ran) != 0 {
		t.Errorf("recorded: %+v, %v, %d landings, ran %q", r, err, len(s.landing.landed), s.commands.ran)
	}
	for path, runs := range map[string]int{"land#1": 0, "tests#1": 1} {
		s := newWorld()
		_ = s.Append(event.Event{Type: event.CheckEnded, Path: path}, event.Receipt{Command: "test", Tree: "t1"})
		if r, err := s.executor().Do(t.Context(), mergeCall(engine.MergeInput{Checks: check.Of("test")})); err != nil || !r.OK || len(s.commands.ran) != runs {
			t.Errorf("a receipt of %s: %+v, %v, ran %q", path, r, err, s.commands.ran)
		}
	}
}

// An opinion from before an interruption counts only for the same worktree content.
func TestReviewContinues(t *testing.T) {
	for tree, asked := range map[string]int{"t1": 0, "t0": 1} {
		s := newWorld()
		s.reviewers.reviews["lint"] = reviewer.Review{Verdict: reviewer.Fail}
		_ = s.Append(event.Event{Type: event.StepStarted, Path: "r#1"}, event.StepStart{Kind: "review", Snapshot: snapshotOf + "t1", Tip: "tip"})
		_ = s.Append(event.Event{Type: event.ReviewGiven, Path: "r#1"}, event.Opinion{Opinion: arbiter.Opinion{Reviewer: "lint", Verdict: reviewer.Pass}, Tree: tree})
		r, err := s.executor().Do(t.Context(), engine.Call{Path: "r#1", Step: "r", Review: &engine.ReviewInput{Reviewers: []engine.Reviewer{{Name: "lint", Plugin: "lint"}}}})
		if err != nil || r.OK != (asked == 0) || s.count(event.ReviewGiven) != 1+asked {
			t.Errorf("an opinion on %s: %+v, %v", tree, r, err)
		}
	}
}

// A review fails if a reviewer moves the branch, and the branch is restored.
func TestReviewThatMovesTheBranch(t *testing.T) {
	s := newWorld()
	s.reviewers.reviews["lint"] = reviewer.Review{Verdict: reviewer.Pass}
	s.workspace.tips = []string{"", "tip", "tip", "moved"}
	r, err := s.executor().Do(t.Context(), engine.Call{Path: "r#1", Step: "r", Review: &engine.ReviewInput{Reviewers: []engine.Reviewer{{Name: "lint", Plugin: "lint"}}}})
	if err != nil || r.OK || r.ErrorType != event.ErrorPlugin || !strings.Contains(r.Error, "reviewer moved the branch") || s.workspace.putTip != "tip" {
		t.Errorf("%+v, %v, put back to %q", r, err, s.workspace.putTip)
	}
}

// A recorded result without an input hash does not match any input.
func TestReplayWithoutInput(t *testing.T) {
	s := newWorld()
	_ = s.Append(event.Event{Type: event.StepCompleted, Path: "a#1"}, event.Result{OK: true})
	if _, err := Recorded(NewJournal(s), s.executor()).Do(t.Context(), agentCall("a#1")); err == nil || !strings.Contains(err.Error(), "different input") {
		t.Errorf("%v", err)
	}
}

// A retry discards the results and starts of the steps that run again. Earlier steps keep theirs.
func TestRetryDiscards(t *testing.T) {
	s := newWorld()
	paths := []string{"a#1", "l[1]/b#1", "l[2]/b#1", "c#1"}
	for _, path := range paths {
		_ = s.Append(event.Event{Type: event.StepStarted, Path: path}, event.StepStart{Kind: "script"})
		_ = s.Append(event.Event{Type: event.StepCompleted, Path: path}, event.Result{OK: true})
	}
	for from, want := range map[string]string{
		"a#1": "", "l[1]/": "a#1 a#1", "l[2]/": "a#1 a#1 l[1]/b#1 l[1]/b#1", "c#1": "a#1 a#1 l[1]/b#1 l[1]/b#1 l[2]/b#1 l[2]/b#1",
	} {
		j := NewJournal(&fakeJournal{events: s.Events()})
		left := func() (all []string) {
			for _, path := range paths {
				for _, e := range j.At(path, event.StepStarted, event.StepCompleted) {
					all = append(all, e.Path)
				}
			}
			return all
		}
		if before := left(); len(before) != 8 {
			t.Errorf("before the retry: %q", before)
		}
		_ = j.Append(event.Event{Type: event.SessionResumed}, event.Resumed{Retry: from, From: true})
		if got := strings.Join(left(), " "); got != want {
			t.Errorf("from %s: left %q, want %q", from, got, want)
		}
	}
}

// The reserve of a budget is not available to steps that neither review nor land.
func TestReserve(t *testing.T) {
	s := newWorld()
	w := s.executor()
	kept := engine.StepBudget{Max: budget.Amount{Turns: 10}, Reserve: 0.2}
	s.agents.next = append(s.agents.next, uses(event.Usage{Turns: 7}), uses(event.Usage{Turns: 2}))
	if _, err := Recorded(NewJournal(s), w).Do(t.Context(), agentCall("a#1", kept)); err != nil {
		t.Fatal(err)
	}
	wait := (*Wait)(nil)
	if _, err := Recorded(NewJournal(s), w).Do(t.Context(), agentCall("b#1", kept)); !errors.As(err, &wait) || wait.Detail != "the budget of the run is spent: 9 of 8 turns, 20% reserved for review and landing" {
		t.Errorf("%v", err)
	}
}

// An addition to a budget raises the budgets of the step at which the session waited, and of the steps
// around it.
func TestRaised(t *testing.T) {
	s := newWorld()
	_ = s.Append(event.Event{Type: event.SessionResumed}, event.Resumed{At: "l[2]/fix#1", Budget: budget.Amount{Turns: 5}})
	_ = s.Append(event.Event{Type: event.SessionResumed}, event.Resumed{Budget: budget.Amount{Turns: 100}})
	for scope, want := range map[string]int{"": 115, "l": 15, "l[2]/fix": 15, "l[2]/fixed": 10, "l[1]/fix": 10, "other": 10, "l[2]/fix#1/deeper": 10} {
		if got := raised(engine.StepBudget{Scope: scope, Max: budget.Amount{Turns: 10}}, s.Events()); got.Turns != want {
			t.Errorf("%q: %d turns, want %d", scope, got.Turns, want)
		}
	}
}

// The usage of a leaf is the sum of its agents. The CLI reports the cost of a complete run; the cost of a
// stopped run is computed from the prices if that is higher.
func TestUsageOfALeaf(t *testing.T) {
	s := newWorld()
	w := s.executor()
	w.Prices = budget.DefaultPrices()
	account, err := w.leafUsage(agentCall("a#1"))
	if err != nil {
		t.Fatal(err)
	}
	dear := event.Usage{Model: "claude-sonnet-4-5", Output: 1_000_000, Turns: 2, Cost: 0.5}
	first, second := account.agent(), account.agent()
	for _, step := range []error{first.charge(event.Usage{Turns: 1}), second.charge(event.Usage{Turns: 4}), first.charge(event.Usage{Turns: 3})} {
		if step != nil {
			t.Fatal(step)
		}
	}
	if got := account.total().Turns; got != 7 {
		t.Errorf("3 and 4 turns are %d", got)
	}
	stopped, _ := w.leafUsage(agentCall("b#1"))
	stopped.agent().ended(driver.Report{Kind: driver.Timeout, Used: dear})
	ended, _ := w.leafUsage(agentCall("c#1"))
	ended.agent().ended(driver.Report{Kind: driver.None, Used: dear})
	if stopped.total().USD <= 1 || ended.total().USD != 0.5 {
		t.Errorf("stopped: $%.2f, ended: $%.2f", stopped.total().USD, ended.total().USD)
	}
}
