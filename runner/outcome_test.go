package runner

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/config/check"
	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/hostservice"
	"github.com/coven-run/coven/plugins/reviewer"
	"github.com/coven-run/coven/runner/engine"
)

func turns(n int) budget.Amount { return budget.Amount{Turns: n} }

// The result of an agent's step depends on its report and its changes.
func TestAgentResult(t *testing.T) {
	block := func(text string) string { return "Done.\n\n```json\n" + text + "\n```" }
	for name, tt := range map[string]struct {
		report  driver.Report
		refuses *RefusedError
		expect  bool   // expect_changes is set
		origin  string // the tree of the first attempt, empty if this is the first
		want    event.Result
		message string // of the commit
	}{
		"success": {
			report:  driver.Report{Text: block(`{"success": true, "summary": "added it", "outputs": {"n": 1}}`)},
			want:    event.Result{OK: true, Summary: "added it", Commit: "c", Tree: "t1"},
			message: "A title\n\nadded it",
		},
		"failure": {
			report:  driver.Report{Text: block(`{"success": false, "error": "too\n hard"}`)},
			want:    event.Result{Error: "the agent reported failure: too hard", ErrorType: event.ErrorAgent, Commit: "c", Tree: "t1"},
			message: "A title\n\nUnfinished: the agent reported failure: too hard",
		},
		"failure without a reason": {
			report:  driver.Report{Text: block(`{"success": false}`)},
			want:    event.Result{Error: "the agent reported failure: no reason given", ErrorType: event.ErrorAgent, Commit: "c", Tree: "t1"},
			message: "A title\n\nUnfinished: the agent reported failure: no reason given",
		},
		"a broken block": {
			report: driver.Report{Text: block(`{"success": yes}`) + "\n"}, want: event.Result{OK: true, Summary: "Done.", Commit: "c", Tree: "t1"},
			message: "A title\n\nDone.",
		},
		"an error of the CLI": {
			report:  driver.Report{Kind: event.ErrorProvider, Error: "no credit", Text: block(`{"success": true}`)},
			want:    event.Result{Error: "no credit", ErrorType: event.ErrorProvider, Commit: "c", Tree: "t1"},
			message: "A title\n\nUnfinished: no credit",
		},
		"a refused commit": {
			report: driver.Report{Text: "Done."}, refuses: &RefusedError{Reason: "a hook failed", Output: "lint: x"},
			want: event.Result{Error: "a hook failed", ErrorType: event.ErrorCommit, Output: "lint: x", Summary: "Done."},
		},
		"a refused commit of a failure": {
			report: driver.Report{Kind: event.ErrorProvider, Error: "no credit"}, refuses: &RefusedError{Reason: "a hook failed"},
			want: event.Result{Error: "no credit", ErrorType: event.ErrorProvider},
		},
		"no changes": {
			report: driver.Report{Text: "Done."}, expect: true, message: "A title\n\nDone.",
			want: event.Result{Error: "no_changes: the agent reported success but changed nothing", ErrorType: event.ErrorNoChanges, Summary: "Done.", Commit: "c", Tree: "t1"},
		},
		"changes of an earlier attempt": {
			report: driver.Report{Text: "Done."}, expect: true, origin: "t0", message: "A title\n\nDone.",
			want: event.Result{OK: true, Summary: "Done.", Commit: "c", Tree: "t1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			path := "a#1"
			if tt.origin != "" {
				w.started(path, tt.origin)
				_ = w.Append(event.Event{Type: event.StepCompleted, Path: path}, event.Result{})
				path = "a#2"
			}
			w.workspace.refuses, w.agents.next = tt.refuses, append(w.agents.next, does(tt.report, nil))
			call := agentCall(path)
			call.Agent.ExpectChanges = tt.expect
			r, err := w.executor().Do(t.Context(), call)
			if err != nil || r.OK != tt.want.OK || r.Error != tt.want.Error || r.ErrorType != tt.want.ErrorType || r.Summary != tt.want.Summary ||
				r.Commit != tt.want.Commit || r.Tree != tt.want.Tree || tt.want.Output != "" && r.Output != tt.want.Output {
				t.Errorf("%+v, %v\nwant %+v", r, err, tt.want)
			}
			if got := strings.Join(w.workspace.messages, "; "); got != tt.message {
				t.Errorf("commit message %q, want %q", got, tt.message)
			}
			if warned := strings.Contains(strings.Join(w.warnings(), ""), "not valid JSON"); warned != (name == "a broken block") {
				t.Errorf("warnings %q", w.warnings())
			}
		})
	}
}

// An agent that reached a rate limit continues; the limit is not its result.
func TestAgentContinuesAfterLimit(t *testing.T) {
	w := newWorld()
	w.agents.recalled = driver.Report{Kind: driver.Limit, Started: true}
	w.agents.next = append(w.agents.next, does(driver.Report{Kind: driver.Limit, Started: true}, nil), does(driver.Report{Started: true, Text: "done"}, nil))
	r, err := w.executor().Do(t.Context(), agentCall("a#1"))
	if err != nil || !r.OK || len(w.agents.runs) != 2 || !w.agents.runs[1].Resume || w.count(event.StepStarted) != 1 {
		t.Errorf("%+v, %v, runs %+v", r, err, w.agents.runs)
	}
}

// A script fails because of its exit code or because coven stops it. Its receipt proves only a completed
// run, and depends on variables and the directory.
func TestScriptResult(t *testing.T) {
	for name, tt := range map[string]struct {
		ran     Ran
		script  engine.ScriptInput
		kind    event.ErrorType
		code    int
		setting bool
	}{
		"success":   {},
		"exit code": {ran: Ran{ExitCode: 2}, kind: event.ErrorProcessExit, code: 2},
		"stopped":   {ran: Ran{Stopped: "no output for 5m0s"}, kind: event.ErrorTimeout, code: -1},
		"variables": {script: engine.ScriptInput{Env: []string{"A=1"}}, setting: true},
		"directory": {script: engine.ScriptInput{Workdir: "sub"}, setting: true},
	} {
		w := newWorld()
		w.commands.does = func(Command) (Ran, error) { return tt.ran, nil }
		call := scriptCall("make")
		call.Script.Env, call.Script.Workdir = tt.script.Env, tt.script.Workdir
		r, err := w.executor().Do(t.Context(), call)
		if err != nil || r.OK != (tt.kind == "") || r.ErrorType != tt.kind || r.Commit != "c" {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		if p := r.Receipts[0]; p.ExitCode != tt.code || p.Command != "make" || p.Tree != "t1" || (p.Settings != "") != tt.setting {
			t.Errorf("%s: receipt %+v", name, p)
		}
	}
	for _, s := range []engine.ScriptInput{{Command: strings.Repeat("x", maxArgument+1)}, {Command: "make", Env: []string{"A=" + strings.Repeat("x", maxArgument-1)}}} {
		w := newWorld()
		call := scriptCall(s.Command)
		call.Script.Env = s.Env
		if r, err := w.executor().Do(t.Context(), call); err != nil || r.ErrorType != event.ErrorTooLong || len(w.commands.ran) != 0 {
			t.Errorf("too long: %q, %v, ran %d", r.Error, err, len(w.commands.ran))
		}
	}
	fits := scriptCall(strings.Repeat("x", maxArgument))
	fits.Script.Env = []string{"A=" + strings.Repeat("x", maxArgument-2)}
	if r, err := newWorld().executor().Do(t.Context(), fits); err != nil || !r.OK {
		t.Errorf("not too long: %q, %v", r.Error, err)
	}
}

// Changes by a check are reverted, listed and saved before the check is recorded.
func TestCheckLeavesTheWorktree(t *testing.T) {
	w := newWorld()
	w.commands.does = func(Command) (Ran, error) {
		w.workspace.tree = "dirty"
		return Ran{}, nil
	}
	w.workspace.differ = map[string][]string{snapshotOf + "t1 " + snapshotOf + "dirty": {"a.log", "b.log"}}
	call := engine.Call{Path: "tests#1", Step: "tests", Script: &engine.ScriptInput{Checks: check.Of("make test")}}
	r, err := w.executor().Do(t.Context(), call)
	want := `check "make test" changed the worktree (a.log, b.log); changes reverted and saved as snapshot 1`
	if err != nil || !r.OK || r.Tree != "t1" || w.workspace.tree != "t1" || !slices.Equal(w.warnings(), []string{want}) {
		t.Errorf("%+v, %v, worktree %s, warned %q", r, err, w.workspace.tree, w.warnings())
	}
	events := w.Events()
	if last := events[len(events)-1]; last.Type != event.CheckEnded {
		t.Errorf("recorded last: %s", last.Type)
	}
}

// A check that commits does not move the branch.
func TestCheckMovesTheBranch(t *testing.T) {
	w := newWorld()
	w.commands.does = func(Command) (Ran, error) {
		w.workspace.tips = []string{"", "moved"}
		return Ran{}, nil
	}
	call := engine.Call{Path: "tests#1", Step: "tests", Script: &engine.ScriptInput{Checks: check.Of("make test")}}
	r, err := w.executor().Do(t.Context(), call)
	want := `check "make test" moved the branch; it was restored, and its commits are saved as refs/coven/rescue/t/1`
	if err != nil || !r.OK || w.workspace.putTip != "tip" || !slices.Equal(w.warnings(), []string{want}) {
		t.Errorf("%+v, %v, branch put back to %q, warned %q", r, err, w.workspace.putTip, w.warnings())
	}
}

func reviewCall(plugins ...string) engine.Call {
	c := engine.Call{Path: "r#1", Step: "r", Review: &engine.ReviewInput{Round: 1}}
	for _, p := range plugins {
		c.Review.Reviewers = append(c.Review.Reviewers, engine.Reviewer{Name: p, Plugin: p})
	}
	return c
}

// A reviewer that changes the worktree or gives no answer fails the review. The answers of the others are
// preserved.
func TestReviewWithoutAnswer(t *testing.T) {
	w := newWorld()
	w.reviewers.reviews["lint"], w.reviewers.changes = reviewer.Review{Verdict: reviewer.Pass}, "t2"
	r, err := w.executor().Do(t.Context(), reviewCall("lint"))
	if err != nil || r.OK || r.ErrorType != event.ErrorPlugin || r.Error != "reviewer changed the worktree (a.go); changes reverted and saved as snapshot 1" || w.workspace.tree != "t1" {
		t.Errorf("%+v, %v, worktree %s", r, err, w.workspace.tree)
	}
	w = newWorld()
	w.reviewers.reviews["lint"] = reviewer.Review{Verdict: reviewer.Pass}
	r, err = w.executor().Do(t.Context(), reviewCall("lint", "gone"))
	if err != nil || r.OK || r.ErrorType != event.ErrorPlugin || r.Error != "reviewer gone: gone" || len(r.Opinions) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// The plugins of an interrupted review may have left changes: they are undone before the reviewers are
// called again.
func TestReviewAgainUndoesPlugins(t *testing.T) {
	w := newWorld()
	w.reviewers.reviews["lint"] = reviewer.Review{Verdict: reviewer.Pass}
	w.started("r#1", "t0")
	w.workspace.tips = []string{"", "moved", "tip"}
	r, err := w.executor().Do(t.Context(), reviewCall("lint"))
	if err != nil || !r.OK || r.Tree != "t0" || w.workspace.putTip != "tip" || len(w.warnings()) != 2 {
		t.Errorf("%+v, %v, tip %q, warned %q", r, err, w.workspace.putTip, w.warnings())
	}
}

// An arbiter decides whether the loop continues. If it fails or changes the worktree, there is no decision.
func TestArbiter(t *testing.T) {
	call := func(plugin string) engine.Call {
		return engine.Call{Path: "q[1]/arbiter#1", Step: "q/arbiter", Arbiter: &engine.ArbiterInput{Arbiter: engine.Reviewer{Name: plugin, Plugin: plugin}}}
	}
	for _, again := range []bool{true, false} {
		w := newWorld()
		w.reviewers.decision = arbiter.Decision{Continue: again, Reason: "because"}
		if r, err := w.executor().Do(t.Context(), call("rules")); err != nil || !r.OK || !r.Decided || r.Continue != again || r.Output != "because" || r.Tree != "t1" {
			t.Errorf("%+v, %v", r, err)
		}
	}
	w := newWorld()
	if r, err := w.executor().Do(t.Context(), call("gone")); err != nil || r.OK || r.Decided || r.Error != "arbiter gone: exit status 3" || r.ErrorType != event.ErrorPlugin {
		t.Errorf("%+v, %v", r, err)
	}
	w.reviewers.changes = "t2"
	if r, err := w.executor().Do(t.Context(), call("rules")); err != nil || r.OK || r.Decided || w.workspace.tree != "t1" {
		t.Errorf("it changed the worktree: %+v, %v", r, err)
	}
}

// A change without files is not reviewed, and the record shows that.
func TestReviewOfNothing(t *testing.T) {
	w := newWorld()
	w.reviewers.empty = true
	r, err := w.executor().Do(t.Context(), reviewCall("lint"))
	if err != nil || !r.OK || len(r.Opinions) != 0 || !slices.Equal(w.warnings(), []string{"there is no change to review"}) {
		t.Errorf("%+v, %v, warned %q", r, err, w.warnings())
	}
}

// A review that runs again on request calls all reviewers again.
func TestReviewAgainOnRequest(t *testing.T) {
	w := newWorld()
	w.reviewers.reviews["lint"] = reviewer.Review{Verdict: reviewer.Fail}
	_ = w.Append(event.Event{Type: event.ReviewGiven, Path: "r#1"}, event.Opinion{Opinion: arbiter.Opinion{Reviewer: "lint", Verdict: reviewer.Pass}, Tree: "t1"})
	_ = w.Append(event.Event{Type: event.StepCompleted, Path: "r#1"}, event.Result{OK: true})
	_ = w.Append(event.Event{Type: event.SessionResumed}, event.Resumed{Retry: "r#1"})
	if r, err := w.executor().Do(t.Context(), reviewCall("lint")); err != nil || r.OK || w.count(event.ReviewGiven) != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A review waits if an agent needs a larger budget. After a timeout, the result names the reviewers that
// have not answered. Both are parked, because the worktree was restored.
func TestReviewThatDoesNotEnd(t *testing.T) {
	w, wait := newWorld(), (*Wait)(nil)
	w.reviewers.asks = &hostservice.Ask{Prompt: "look"}
	w.agents.limit = &Wait{Reason: event.WaitLimit, Detail: "too many requests", Next: "resume"}
	if _, err := w.executor().Do(t.Context(), reviewCall("agent")); !errors.As(err, &wait) || wait.Reason != event.WaitLimit || w.count(event.StepParked) != 1 {
		t.Errorf("%v, parked %d times", err, w.count(event.StepParked))
	}
	w = newWorld()
	ctx, stop := context.WithCancelCause(t.Context())
	w.reviewers.reviews["lint"] = reviewer.Review{Verdict: reviewer.Pass}
	w.reviewers.ends = func() { stop(&engine.OverTimeError{Step: "r", Limit: time.Minute}) }
	r, err := w.executor().Do(ctx, reviewCall("lint", "gone", "away"))
	if err != nil || r.OK || r.ErrorType != event.ErrorTimeout || r.Error != "step r took longer than 1m0s: no answer from gone and away" || len(r.Opinions) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	w = newWorld()
	ctx, stop = context.WithCancelCause(t.Context())
	w.reviewers.ends = func() { stop(ErrInterrupted) }
	if _, err := w.executor().Do(ctx, reviewCall("gone")); !errors.Is(err, ErrInterrupted) || w.count(event.StepParked) != 1 {
		t.Errorf("%v, parked %d times", err, w.count(event.StepParked))
	}
}
