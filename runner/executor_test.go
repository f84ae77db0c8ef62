package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/agent"
	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/reviewer"
	"github.com/coven-run/coven/runner/engine"
)

// shop is everything around a workshop, in memory: what agents, judges, commands and
// git do is given, and what was asked of them is kept.
type shop struct {
	mu     sync.Mutex
	events []event.Event

	tree      string // of the worktree
	candidate Candidate
	reviews   map[string]reviewer.Review // by plugin
	decision  arbiter.Decision
	exits     map[string]int // of commands
	agents    []func(run AgentRun) (agent.Report, error)

	tips []string // of the branch: each is seen once, the last for ever

	commands []string
	landings []LandOptions
	putTip   string
}

func newShop() *shop {
	return &shop{tree: "t1", tips: []string{"", "tip"}, reviews: map[string]reviewer.Review{}, exits: map[string]int{}, candidate: Candidate{
		Target: "refs/heads/main", Old: "old", Tip: "tip", From: "t1", Tree: "t1", Patch: "p1",
	}}
}

// workshop is a workshop in this shop.
func (s *shop) workshop() *Executor {
	return &Executor{Session: "s", Title: "A title", Journal: s, Stage: s, Branch: s, Lander: s, Agents: s, Reviewers: s, Commands: cashier{s}, Logs: s}
}

func (s *shop) Events() []event.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

func (s *shop) Append(e event.Event, data any) error {
	text, err := json.Marshal(data)
	s.mu.Lock()
	defer s.mu.Unlock()
	e.Seq, e.Data, e.Time = int64(len(s.events))+1, text, time.Unix(int64(len(s.events)), 0)
	s.events = append(s.events, e)
	return err
}

func (s *shop) count(kind event.Type) (n int) {
	for _, e := range s.Events() {
		if e.Type == kind {
			n++
		}
	}
	return n
}

func (s *shop) Snapshot(context.Context, string) (event.Snapshot, error) {
	return event.Snapshot{N: 1, Commit: "snapshot", Tree: s.tree}, nil
}
func (s *shop) Restore(context.Context, string) error                     { return nil }
func (s *shop) Changed(context.Context, string, string) ([]string, error) { return nil, nil }
func (s *shop) Tree(context.Context) (string, error)                      { return s.tree, nil }
func (s *shop) Tip(context.Context) (string, error) {
	if len(s.tips) > 1 {
		s.tips = s.tips[1:]
	}
	return s.tips[0], nil
}

func (s *shop) PutTip(_ context.Context, tip, _ string) (string, error) {
	s.putTip = tip
	return "refs/coven/rescue/t/1", nil
}

func (s *shop) Commit(context.Context, string, string) (Commit, error) {
	return Commit{Oid: "c", Tree: s.tree}, nil
}
func (s *shop) Turn(context.Context) (func(), error)                 { return func() {}, nil }
func (s *shop) Conflict(context.Context) (string, []string, error)   { return "", nil, nil }
func (s *shop) Integrate(context.Context) (Candidate, error)         { return s.candidate, nil }
func (s *shop) Recover(context.Context, event.Landing) (bool, error) { return false, nil }
func (s *shop) Open(string) (io.WriteCloser, int64, error)           { return closer{io.Discard}, 0, nil }

func (s *shop) Read(string, int64) (io.ReadCloser, error)   { return nil, errors.ErrUnsupported }
func (s *shop) Await(context.Context, string, string) error { return nil }
func (s *shop) Recall(context.Context, string, io.Reader) (agent.Report, bool, error) {
	return agent.Report{}, false, nil
}

func (s *shop) Land(_ context.Context, c Candidate, o LandOptions) (event.Landing, error) {
	landing := event.Landing{Target: c.Target, Old: c.Old, New: "new", Tree: c.Tree}
	s.landings = append(s.landings, o)
	return landing, o.Intent(landing)
}

func (s *shop) Run(_ context.Context, run AgentRun) (agent.Report, error) {
	next := s.agents[0]
	s.agents = s.agents[1:]
	return next(run)
}

func (s *shop) Change(context.Context) (reviewer.Change, string, error) {
	return reviewer.Change{Tree: s.tree, Files: []reviewer.File{{Path: "a.go"}}}, "p1", nil
}

func (s *shop) Review(_ context.Context, plugin string, _ reviewer.Change, _ *HostServices) (reviewer.Review, error) {
	r, ok := s.reviews[plugin]
	if !ok {
		return r, errors.New("gone")
	}
	return r, nil
}

func (s *shop) Decide(context.Context, string, arbiter.Question, *HostServices) (arbiter.Decision, error) {
	return s.decision, nil
}

// cashier runs the commands of a shop.
type cashier struct{ *shop }

func (c cashier) Run(_ context.Context, command Command) (Ran, error) {
	c.commands = append(c.commands, command.Shell)
	return Ran{ExitCode: c.exits[command.Shell]}, nil
}

// uses is an agent that has used so much after each answer.
func uses(answers ...event.Usage) func(AgentRun) (agent.Report, error) {
	return func(run AgentRun) (agent.Report, error) {
		for _, u := range answers {
			if err := run.Spend(u); err != nil {
				return agent.Report{Kind: agent.Timeout, Used: u}, err
			}
		}
		return agent.Report{Text: "done", Used: answers[len(answers)-1]}, nil
	}
}

func agentCall(path string, budgets ...engine.StepBudget) engine.Call {
	return engine.Call{Path: path, Step: path, Agent: &engine.AgentInput{Prompt: "work"}, Budgets: budgets}
}

// A review passes when every reviewer does, in whatever order they are named.
func TestEveryReviewerCounts(t *testing.T) {
	wrong := []reviewer.Finding{{Severity: reviewer.Error, Message: "wrong"}}
	verdicts := map[string]reviewer.Review{
		"pass": {Verdict: reviewer.Pass}, "fail": {Verdict: reviewer.Fail}, "error": {Verdict: reviewer.Pass, Findings: wrong},
	}
	for _, names := range [][]string{
		{"pass", "pass"}, {"pass", "fail"}, {"fail", "pass"}, {"fail", "fail"}, {"error", "pass"}, {"pass", "error"}, {"pass", "fail", "pass"},
	} {
		s := newShop()
		s.reviews = verdicts
		c := engine.Call{Path: "r#1", Step: "r", Review: &engine.ReviewInput{Round: 1}}
		for i, name := range names {
			c.Review.Reviewers = append(c.Review.Reviewers, engine.Judge{Name: fmt.Sprint(i), Plugin: name})
		}
		r, err := s.workshop().Do(t.Context(), c)
		all := !slices.ContainsFunc(names, func(name string) bool { return name != "pass" })
		if err != nil || r.OK != all || (r.ErrorType == engine.FindingsType) == all || len(r.Opinions) != len(names) {
			t.Errorf("%v: ok %v, %q, %d opinions, %v", names, r.OK, r.ErrorType, len(r.Opinions), err)
		}
		for i, o := range r.Opinions {
			if o.Reviewer != fmt.Sprint(i) {
				t.Errorf("%v: opinion %d is that of %s", names, i, o.Reviewer)
			}
		}
	}
}

// What earlier steps used counts while an agent is at work, not only before it begins.
func TestBudgetInTheMiddle(t *testing.T) {
	s := newShop()
	w := s.workshop()
	whole := engine.StepBudget{Max: budget.Amount{Turns: 5}}
	s.agents = append(s.agents, uses(event.Usage{Turns: 1}, event.Usage{Turns: 3}))
	if _, err := Recorded(s, w).Do(t.Context(), agentCall("a#1", whole)); err != nil {
		t.Fatal(err)
	}
	s.agents = append(s.agents, uses(event.Usage{Turns: 1}, event.Usage{Turns: 2}))
	if _, err := Recorded(s, w).Do(t.Context(), agentCall("b#1", whole, engine.StepBudget{Scope: "b", Name: "b", Max: budget.Amount{Turns: 9}})); err != nil {
		t.Fatalf("5 of 5 turns are no more than that: %v", err)
	}
	wait := (*Wait)(nil)
	if _, err := Recorded(s, w).Do(t.Context(), agentCall("c#1", whole)); !errors.As(err, &wait) || !strings.Contains(wait.Detail, "5 of 5 turns") {
		t.Errorf("none begins when nothing is left: %v", err)
	}
	more := engine.StepBudget{Max: budget.Amount{Turns: 7}}
	s.agents = append(s.agents, uses(event.Usage{Turns: 1}, event.Usage{Turns: 2}, event.Usage{Turns: 3}))
	if _, err := Recorded(s, w).Do(t.Context(), agentCall("c#1", more)); !errors.As(err, &wait) || wait.Detail != "the budget of the run is spent: 8 of 7 turns" || wait.More != "turns=+8" {
		t.Errorf("stopped in the middle: %v", err)
	}
}

// All that tasks use counts in the budget that they share, not only the last of it.
func TestSharedBudget(t *testing.T) {
	shared := budget.New(budget.Amount{Turns: 5})
	work := func(turns ...int) error {
		s := newShop()
		w := s.workshop()
		w.Budget = shared
		var used []event.Usage
		for _, n := range turns {
			used = append(used, event.Usage{Turns: n})
		}
		s.agents = append(s.agents, uses(used...))
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
		t.Errorf("none begins when nothing is left: %v", err)
	}
	shared = budget.New(budget.Amount{Turns: 5})
	if err := work(4); err != nil {
		t.Fatal(err)
	}
	if err := work(1, 2, 3); !errors.As(err, &wait) || wait.Detail != "the budget of this coven run is spent: 6 of 5 turns" {
		t.Errorf("stopped in the middle: %v", err)
	}
}

// landing is a merge of a shop's candidate.
func landing(m engine.MergeInput) engine.Call {
	return engine.Call{Path: "land#1", Step: "land", Merge: &m}
}

// given puts a review by a step on record.
func (s *shop) given(step string, findings ...reviewer.Finding) {
	path := step + "#1"
	_ = s.Append(event.Event{Type: event.StepStarted, Path: path}, event.StepStart{Kind: "review"})
	r := engine.Result{OK: len(findings) == 0, Tree: "t1", Patch: "p1", Opinions: []event.Opinion{{
		Opinion: arbiter.Opinion{Reviewer: "lint", Verdict: reviewer.Fail, Findings: findings},
	}}}
	if !r.OK {
		r.ErrorType = engine.FindingsType
	}
	_ = s.Append(event.Event{Type: event.StepCompleted, Path: path}, r)
}

// Who has to approve what, and what may land unasked.
func TestMergeDecision(t *testing.T) {
	leak := reviewer.Finding{Severity: reviewer.Error, File: "a.txt", Line: 1, Message: "leaks the token"}
	answer := func(path, patch, tree string, approved bool, accepted ...reviewer.Finding) func(*shop) {
		return func(s *shop) {
			a := event.MergeDecision{Patch: patch, Tree: tree, Approved: approved, By: "dana"}
			for _, f := range accepted {
				a.Accepted = append(a.Accepted, event.Finding{Step: "r", Reviewer: "lint", Finding: f})
			}
			_ = s.Append(event.Event{Type: event.ReviewAnswered, Path: path}, a)
		}
	}
	found := func(s *shop) { s.given("r", leak) }
	integrated := func(s *shop) {
		s.candidate.From, s.candidate.Tree, s.candidate.Patch = "t1", "t2", "p2"
	}
	const ready, held, changed = "the change is ready and waits for a person's approval", "1 open error finding: a.txt:1 leaks the token", "the change is not what the reviewers saw: it waits for a person's approval"
	for name, test := range map[string]struct {
		tell    []func(*shop)
		merge   engine.MergeInput
		approve string
		want    string // why it waits; empty: it lands
		asked   int
	}{
		"asked":                                    {merge: engine.MergeInput{RequireReview: true}, want: ready, asked: 1},
		"not required":                             {},
		"approved unasked":                         {merge: engine.MergeInput{RequireReview: true}, approve: "--auto-approve"},
		"approved by a person":                     {tell: []func(*shop){answer("land#1", "p1", "", true)}, merge: engine.MergeInput{RequireReview: true}},
		"refused by a person":                      {tell: []func(*shop){answer("land#1", "p1", "", false)}, merge: engine.MergeInput{RequireReview: true}, want: ready},
		"another patch was approved":               {tell: []func(*shop){answer("land#1", "p0", "t0", true)}, merge: engine.MergeInput{RequireReview: true}, want: ready, asked: 1},
		"another landing was approved":             {tell: []func(*shop){answer("first#1", "p1", "", true)}, merge: engine.MergeInput{RequireReview: true}, want: ready, asked: 1},
		"seen by reviewers":                        {merge: engine.MergeInput{Reviewed: []string{"t1"}}, approve: "--auto-approve"},
		"not seen by reviewers":                    {merge: engine.MergeInput{Reviewed: []string{"t0"}}, approve: "--auto-approve", want: changed, asked: 1},
		"not seen by one step":                     {merge: engine.MergeInput{Reviewed: []string{"t0", "t1"}}, want: changed, asked: 1},
		"not seen by the last step":                {merge: engine.MergeInput{Reviewed: []string{"t1", "t0"}}, want: changed, asked: 1},
		"a review came to no end":                  {merge: engine.MergeInput{Reviewed: []string{""}}, want: changed, asked: 1},
		"not seen, and approved":                   {tell: []func(*shop){answer("land#1", "p1", "", true)}, merge: engine.MergeInput{Reviewed: []string{"t0"}}},
		"seen before the target came in":           {tell: []func(*shop){integrated}, merge: engine.MergeInput{Reviewed: []string{"t1"}}, approve: "--auto-approve"},
		"approved before the target came in":       {tell: []func(*shop){integrated, answer("land#1", "p1", "t1", true)}, merge: engine.MergeInput{RequireReview: true}},
		"open":                                     {tell: []func(*shop){found}, want: held, asked: 1},
		"open, approved unasked":                   {tell: []func(*shop){found}, merge: engine.MergeInput{RequireReview: true}, approve: "--auto-approve", want: held, asked: 1},
		"open, approved without the finding":       {tell: []func(*shop){found, answer("land#1", "p1", "", true)}, merge: engine.MergeInput{RequireReview: true}, want: held},
		"open, accepted":                           {tell: []func(*shop){found, answer("land#1", "p1", "", true, leak)}, merge: engine.MergeInput{RequireReview: true}},
		"open, accepted with another patch":        {tell: []func(*shop){found, answer("land#1", "p0", "t0", true, leak)}, merge: engine.MergeInput{RequireReview: true}, want: ready, asked: 1},
		"open and not seen":                        {tell: []func(*shop){found}, merge: engine.MergeInput{Reviewed: []string{"t0"}}, want: changed + "; " + held, asked: 1},
		"accepted, not seen, nobody approves that": {tell: []func(*shop){found, answer("land#1", "p0", "t0", true, leak)}, merge: engine.MergeInput{Reviewed: []string{"t0"}}, approve: "--auto-approve", want: changed, asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop()
			for _, tell := range test.tell {
				tell(s)
			}
			w := s.workshop()
			w.Approve = test.approve
			before := s.count(event.ReviewAsked)
			r, err := w.Do(t.Context(), landing(test.merge))
			wait := (*Wait)(nil)
			switch {
			case test.want == "" && (err != nil || !r.OK || len(s.landings) != 1):
				t.Errorf("it does not land: %+v, %v", r, err)
			case test.want != "" && (!errors.As(err, &wait) || wait.Reason != "review" || wait.Detail != test.want || len(s.landings) != 0):
				t.Errorf("it does not wait: %+v, %v", r, err)
			}
			if asked := s.count(event.ReviewAsked) - before; asked != test.asked {
				t.Errorf("a person is asked %d times", asked)
			}
			if wait != nil && (wait.Next == "review") != strings.Contains(test.want, held) {
				t.Errorf("next is %s", wait.Next)
			}
			if err == nil {
				return
			}
			if _, err := w.Do(t.Context(), landing(test.merge)); !errors.As(err, &wait) || s.count(event.ReviewAsked)-before != test.asked {
				t.Errorf("a person is asked again: %v", err)
			}
		})
	}
}

// A check runs before a landing unless it passed on the very tree that lands.
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
			s := newShop()
			if test.exits != nil {
				s.exits = test.exits
			}
			r, err := s.workshop().Do(t.Context(), landing(engine.MergeInput{Checks: []string{"lint", "test"}, Receipts: test.receipts}))
			if err != nil || strings.Join(s.commands, " ") != test.runs || r.OK == test.fails || (r.Error != "") != test.fails || (len(s.landings) == 1) != r.OK {
				t.Errorf("ran %q, %+v, %v", s.commands, r, err)
			}
		})
	}
}

// A landing that is on record does not land again, and a check that passed in this very
// landing before it was cut off does not run again; receipts of other steps come with
// the call.
func TestMergeGoesOn(t *testing.T) {
	s := newShop()
	_ = s.Append(event.Event{Type: event.StepStarted, Path: "land#1"}, event.StepStart{Kind: "merge"})
	_ = s.Append(event.Event{Type: event.LandDone, Path: "land#1"}, event.Landing{Target: "refs/heads/main", New: "landed", Tree: "t1"})
	if r, err := s.workshop().Do(t.Context(), landing(engine.MergeInput{Checks: []string{"test"}})); err != nil || r.Commit != "landed" || len(s.landings) != 0 || len(s.commands) != 0 {
		t.Errorf("on record: %+v, %v, %d landings, ran %q", r, err, len(s.landings), s.commands)
	}
	for path, runs := range map[string]int{"land#1": 0, "tests#1": 1} {
		s := newShop()
		_ = s.Append(event.Event{Type: event.CheckEnded, Path: path}, event.Receipt{Command: "test", Tree: "t1"})
		if r, err := s.workshop().Do(t.Context(), landing(engine.MergeInput{Checks: []string{"test"}})); err != nil || !r.OK || len(s.commands) != runs {
			t.Errorf("a receipt of %s: %+v, %v, ran %q", path, r, err, s.commands)
		}
	}
}

// What a reviewer said before its leaf was cut off counts for the same worktree only.
func TestReviewGoesOn(t *testing.T) {
	for tree, asked := range map[string]int{"t1": 0, "t0": 1} {
		s := newShop()
		s.reviews["lint"] = reviewer.Review{Verdict: reviewer.Fail}
		_ = s.Append(event.Event{Type: event.StepStarted, Path: "r#1"}, event.StepStart{Kind: "review", Tip: "tip"})
		_ = s.Append(event.Event{Type: event.ReviewGiven, Path: "r#1"}, event.Opinion{Opinion: arbiter.Opinion{Reviewer: "lint", Verdict: reviewer.Pass}, Tree: tree})
		r, err := s.workshop().Do(t.Context(), engine.Call{Path: "r#1", Step: "r", Review: &engine.ReviewInput{Reviewers: []engine.Judge{{Name: "lint", Plugin: "lint"}}}})
		if err != nil || r.OK != (asked == 0) || s.count(event.ReviewGiven) != 1+asked {
			t.Errorf("said of %s: %+v, %v", tree, r, err)
		}
	}
}

// A review in which the branch moved does not count, and the branch is put back.
func TestReviewThatMovesTheBranch(t *testing.T) {
	s := newShop()
	s.reviews["lint"] = reviewer.Review{Verdict: reviewer.Pass}
	s.tips = []string{"", "tip", "tip", "moved"}
	r, err := s.workshop().Do(t.Context(), engine.Call{Path: "r#1", Step: "r", Review: &engine.ReviewInput{Reviewers: []engine.Judge{{Name: "lint", Plugin: "lint"}}}})
	if err != nil || r.OK || r.ErrorType != engine.PluginType || !strings.Contains(r.Error, "reviewer moved the branch") || s.putTip != "tip" {
		t.Errorf("%+v, %v, put back to %q", r, err, s.putTip)
	}
}

// A result that does not say what its leaf was given is not taken for one that does.
func TestReplayWithoutInput(t *testing.T) {
	s := newShop()
	_ = s.Append(event.Event{Type: event.StepCompleted, Path: "a#1"}, engine.Result{OK: true})
	if _, err := Recorded(s, s.workshop()).Do(t.Context(), agentCall("a#1")); err == nil || !strings.Contains(err.Error(), "another input") {
		t.Errorf("%v", err)
	}
}

// Nothing is left of the steps that a person wants to run again, not even that they
// had begun; what came before them stays.
func TestForgotten(t *testing.T) {
	s := newShop()
	for _, path := range []string{"a#1", "l[1]/b#1", "l[2]/b#1", "c#1"} {
		_ = s.Append(event.Event{Type: event.StepStarted, Path: path}, event.StepStart{Kind: "script"})
		_ = s.Append(event.Event{Type: event.StepCompleted, Path: path}, engine.Result{OK: true})
	}
	for from, want := range map[string]string{
		"a#1": "", "l[1]/": "a#1 a#1", "l[2]/": "a#1 a#1 l[1]/b#1 l[1]/b#1", "c#1": "a#1 a#1 l[1]/b#1 l[1]/b#1 l[2]/b#1 l[2]/b#1",
	} {
		again := &shop{events: s.Events()}
		_ = again.Append(event.Event{Type: event.SessionResumed}, event.Resumed{Retry: from, From: true})
		var left []string
		for _, e := range engine.Remembered(again.Events()) {
			if e.Path != "" {
				left = append(left, e.Path)
			}
		}
		if strings.Join(left, " ") != want {
			t.Errorf("from %s: left %q, want %q", from, left, want)
		}
	}
}

// A share of a budget is kept for review and landing: the rest is what may be used.
func TestReserve(t *testing.T) {
	s := newShop()
	w := s.workshop()
	kept := engine.StepBudget{Max: budget.Amount{Turns: 10}, Reserve: 0.2}
	s.agents = append(s.agents, uses(event.Usage{Turns: 7}), uses(event.Usage{Turns: 2}))
	if _, err := Recorded(s, w).Do(t.Context(), agentCall("a#1", kept)); err != nil {
		t.Fatal(err)
	}
	wait := (*Wait)(nil)
	if _, err := Recorded(s, w).Do(t.Context(), agentCall("b#1", kept)); !errors.As(err, &wait) || wait.Detail != "the budget of the run is spent: 9 of 8 turns, 20 % kept for review and landing" {
		t.Errorf("%v", err)
	}
}

// What a person adds to a budget counts for the budgets that hold where the session
// waited: those of the step and of what is around it.
func TestRaised(t *testing.T) {
	s := newShop()
	_ = s.Append(event.Event{Type: event.SessionResumed}, event.Resumed{At: "l[2]/fix#1", Budget: budget.Amount{Turns: 5}})
	_ = s.Append(event.Event{Type: event.SessionResumed}, event.Resumed{Budget: budget.Amount{Turns: 100}})
	for scope, want := range map[string]int{"": 115, "l": 15, "l[2]/fix": 15, "l[2]/fixed": 10, "l[1]/fix": 10, "other": 10, "l[2]/fix#1/deeper": 10} {
		if got := raised(engine.StepBudget{Scope: scope, Max: budget.Amount{Turns: 10}}, s.Events()); got.Turns != want {
			t.Errorf("%q: %d turns, want %d", scope, got.Turns, want)
		}
	}
}

// The agents of one leaf are added up; what one cost that came to its end is what its
// CLI says, and what one cost that was stopped is at least what the prices say.
func TestSpendingOfALeaf(t *testing.T) {
	s := newShop()
	w := s.workshop()
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
	stopped.agent().ended(agent.Report{Kind: agent.Timeout, Used: dear})
	ended, _ := w.leafUsage(agentCall("c#1"))
	ended.agent().ended(agent.Report{Kind: agent.None, Used: dear})
	if stopped.total().USD <= 1 || ended.total().USD != 0.5 {
		t.Errorf("stopped: $%.2f, ended: $%.2f", stopped.total().USD, ended.total().USD)
	}
}
