package runner

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/event"
	ourclock "github.com/coven-run/coven/internal/process/clock"
	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/reviewer"
	"github.com/coven-run/coven/runner/engine"
	"github.com/coven-run/coven/runner/workclock"
)

// started records the start of a leaf that was then interrupted.
func (w *world) started(path, tree string) {
	_ = w.Append(event.Event{Type: event.StepStarted, Path: path}, event.StepStart{Kind: "agent", Snapshot: snapshotOf + tree, Tree: tree, Tip: "tip"})
}

func (w *world) warnings() (all []string) {
	for _, e := range w.Events() {
		if e.Type == event.Warning {
			all = append(all, event.As[event.Text](e).Text)
		}
	}
	return all
}

func scriptCall(command string) engine.Call {
	return engine.Call{Path: "s#1", Step: "s", Script: &engine.ScriptInput{Command: command}}
}

// An interrupted script runs again on the restored worktree of its start. After a parked script, later changes
// by a person stay.
func TestScriptRunsAgain(t *testing.T) {
	w := newWorld()
	w.started("s#1", "t0")
	if r, err := w.executor().Do(t.Context(), scriptCall("make")); err != nil || !r.OK || r.Receipts[0].Tree != "t0" {
		t.Errorf("%+v, %v", r, err)
	}
	want := "the step was interrupted and runs again: the worktree was restored; changes since its start are saved as snapshot 1: a.go"
	if !slices.Equal(w.workspace.restored, []string{snapshotOf + "t0"}) || !slices.Equal(w.warnings(), []string{want}) {
		t.Errorf("restored %q, warned %q", w.workspace.restored, w.warnings())
	}
	w = newWorld()
	w.started("s#1", "t0")
	_ = w.Append(event.Event{Type: event.StepParked, Path: "s#1"}, nil)
	if r, err := w.executor().Do(t.Context(), scriptCall("make")); err != nil || r.Receipts[0].Tree != "t1" || len(w.workspace.restored) != 0 {
		t.Errorf("parked: %+v, %v, restored %q", r, err, w.workspace.restored)
	}
}

// A script that a person interrupts is parked: the worktree is restored first. After other errors it is
// not.
func TestScriptParked(t *testing.T) {
	for cause, parked := range map[error]bool{ErrInterrupted: true, errors.New("lost"): false} {
		w := newWorld()
		ctx, stop := context.WithCancelCause(t.Context())
		w.commands.does = func(Command) (Ran, error) {
			w.workspace.tree = "half"
			stop(cause)
			return Ran{}, ctx.Err()
		}
		_, err := w.executor().Do(ctx, scriptCall("make"))
		if !errors.Is(err, cause) || (w.count(event.StepParked) == 1) != parked || (w.workspace.tree == "t1") != parked {
			t.Errorf("%v: %v, worktree %s", cause, err, w.workspace.tree)
		}
	}
}

// A spent budget parks a script, and saves the worktree of an agent, which continues there.
func TestBudgetSpentInALeaf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, wait := newWorld(), (*Wait)(nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w.commands.does = func(Command) (Ran, error) {
			w.workspace.tree = "half"
			<-time.After(2 * time.Minute)
			return Ran{}, context.Canceled
		}
		call := scriptCall("make")
		call.Budgets = []engine.StepBudget{{Scope: "s", Name: "s", Max: budget.Amount{Wall: time.Minute}}}
		_, err := w.executor().Do(ctx, call)
		if !errors.As(err, &wait) || wait.Detail != "the budget of step s is spent: 1m0s of 1m0s at work" || w.count(event.StepParked) != 1 || w.workspace.tree != "t1" {
			t.Errorf("script: %v, worktree %s", err, w.workspace.tree)
		}
	})
	w := newWorld()
	w.agents.next = append(w.agents.next, func(run AgentRun) (driver.Report, error) {
		return driver.Report{Kind: event.ErrorTimeout}, run.Spend(event.Usage{Turns: 3})
	})
	wait := (*Wait)(nil)
	if _, err := w.executor().Do(t.Context(), agentCall("a#1", engine.StepBudget{Max: turns(2)})); !errors.As(err, &wait) || w.count(event.StepParked) != 0 ||
		len(w.workspace.restored) != 0 || !slices.Contains(w.workspace.notes, "the budget is spent in a#1") {
		t.Errorf("agent: %v, restored %q, snapshots %q", err, w.workspace.restored, w.workspace.notes)
	}
}

// An interrupted pause waits only for the remaining time.
func TestPauseGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		call := engine.Call{Path: "a/backoff#1", Step: "backoff", Pause: &engine.PauseInput{For: time.Hour}}
		start := ourclock.Now()
		if r, err := w.executor().Do(t.Context(), call); err != nil || !r.OK || ourclock.Since(start) != time.Hour {
			t.Errorf("%+v, %v after %s", r, err, ourclock.Since(start))
		}
		w = newWorld()
		w.events = []event.Event{{Seq: 1, Type: event.StepStarted, Path: "a/backoff#1", Data: []byte("{}"), Time: ourclock.Now().Add(-20 * time.Minute)}}
		start = ourclock.Now()
		if r, err := w.executor().Do(t.Context(), call); err != nil || !r.OK || ourclock.Since(start) != 40*time.Minute {
			t.Errorf("interrupted: %+v, %v after %s", r, err, ourclock.Since(start))
		}
	})
}

// An agent whose log and conversation have stayed on another machine is replaced. Its work stays.
func TestAgentOfAnotherMachine(t *testing.T) {
	w := interrupted()
	w.logs = nil
	w.agents.next = append(w.agents.next, says("done"))
	r, err := w.executor().Do(t.Context(), agentCall("a#1"))
	if err != nil || !r.OK || len(w.agents.runs) != 1 || len(w.workspace.restored) != 0 {
		t.Fatalf("%+v, %v, %d runs, restored %q", r, err, len(w.agents.runs), w.workspace.restored)
	}
	if prompt := w.agents.runs[0].Prompt; !strings.Contains(prompt, "An earlier agent worked on this task") || !strings.Contains(prompt, "Read a.go") {
		t.Errorf("the prompt is %s", prompt)
	}
}

// interrupted returns a world whose agent was interrupted after two calls and a message.
func interrupted() *world {
	w := newWorld()
	w.started("a#1", "t0")
	_ = w.Append(event.Event{Type: event.AgentStarted, Path: "a#1"}, event.AgentStart{Conversation: "ours", Prompt: "work"})
	_ = w.Append(event.Event{Type: event.AgentTool, Path: "a#1"}, event.Tool{Summary: "Read a.go"})
	_ = w.Append(event.Event{Type: event.AgentTool, Path: "b#1"}, event.Tool{Summary: "Read of another"})
	_ = w.Append(event.Event{Type: event.AgentMessage, Path: "a#1"}, event.Message{ID: "m1", Text: "use b", By: "dana"})
	_, _, _ = w.OpenLog("a#1")
	return w
}

// An interrupted agent continues its conversation. It is reminded of its calls, and gets messages that it
// has not received.
func TestAgentContinues(t *testing.T) {
	for name, tt := range map[string]struct {
		recalled driver.Report
		complete bool
		next     []func(AgentRun) (driver.Report, error)
		runs     int
		resumed  bool
		has, not string // in the last prompt
		restored bool
	}{
		"in its conversation": {
			recalled: driver.Report{Started: true}, runs: 1, resumed: true, has: "Read a.go\n\ndana says: use b", not: "of another",
			next: []func(AgentRun) (driver.Report, error){does(driver.Report{Started: true, Text: "done"}, nil)},
		},
		"with a message that it has": {
			recalled: driver.Report{Started: true, Acknowledged: []string{"m1"}}, runs: 1, resumed: true, has: "Your last tool calls", not: "dana",
			next: []func(AgentRun) (driver.Report, error){does(driver.Report{Started: true, Text: "done"}, nil)},
		},
		"after its result": {recalled: driver.Report{Started: true, Text: "done", Acknowledged: []string{"m1"}}, complete: true},
		"after its result, with a message": {
			recalled: driver.Report{Started: true, Text: "done"}, complete: true, runs: 1, resumed: true, has: "dana says: use b",
			next: []func(AgentRun) (driver.Report, error){does(driver.Report{Started: true, Text: "done"}, nil)},
		},
		"again, before it had started": {runs: 1, has: "work", not: "Read a.go", restored: true, next: []func(AgentRun) (driver.Report, error){says("done")}},
		"again, with a CLI that cannot resume": {
			recalled: driver.Report{Started: true}, runs: 2, has: "work\n\n# What happened before", not: "Your last",
			next: []func(AgentRun) (driver.Report, error){does(driver.Report{}, pluginerr.ErrUnsupported), says("done")},
		},
		"again, when the CLI does not know the conversation": {
			recalled: driver.Report{Started: true}, runs: 2, has: "work\n\n# What happened before", not: "Your last",
			next: []func(AgentRun) (driver.Report, error){does(driver.Report{}, nil), says("done")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := interrupted()
			w.agents.recalled, w.agents.complete, w.agents.next = tt.recalled, tt.complete, tt.next
			r, err := w.executor().Do(t.Context(), agentCall("a#1"))
			if err != nil || !r.OK || r.Output != "done" || len(w.agents.runs) != tt.runs || (len(w.workspace.restored) == 1) != tt.restored {
				t.Fatalf("%+v, %v, %d runs, restored %q", r, err, len(w.agents.runs), w.workspace.restored)
			}
			if tt.runs == 0 {
				return
			}
			last := w.agents.runs[tt.runs-1]
			if last.Resume != tt.resumed || !strings.Contains(last.Prompt, tt.has) || tt.not != "" && strings.Contains(last.Prompt, tt.not) {
				t.Errorf("resumed: %v, prompt %q", last.Resume, last.Prompt)
			}
			if tt.resumed && last.Conversation != "ours" {
				t.Errorf("conversation %q", last.Conversation)
			}
		})
	}
}

// does returns an agent that ends with a report and an error.
func does(report driver.Report, err error) func(AgentRun) (driver.Report, error) {
	return func(AgentRun) (driver.Report, error) { return report, err }
}

// After a rate limit, the agent is reminded only of calls since the start of its leaf, not of those in an
// earlier run of the leaf.
func TestReminderOfThisRun(t *testing.T) {
	w := interrupted()
	_ = w.Append(event.Event{Type: event.StepCompleted, Path: "a#1"}, event.Result{})
	_ = w.Append(event.Event{Type: event.SessionResumed}, event.Resumed{Retry: "a#1"})
	w.agents.recalled = driver.Report{Kind: driver.Limit, Started: true}
	w.agents.next = append(w.agents.next, func(AgentRun) (driver.Report, error) {
		return driver.Report{Kind: driver.Limit, Started: true}, w.Append(event.Event{Type: event.AgentTool, Path: "a#1"}, event.Tool{Summary: "Edit b.go"})
	}, does(driver.Report{Started: true, Text: "done"}, nil))
	if _, err := w.executor().Do(t.Context(), agentCall("a#1")); err != nil {
		t.Fatal(err)
	}
	if got := w.agents.runs[1].Prompt; !strings.Contains(got, "Edit b.go") || strings.Contains(got, "Read a.go") || strings.Contains(got, "dana") {
		t.Errorf("%q", got)
	}
}

// A report is read from the transcript of the last run, and the conversation from its beginning.
func TestRecallFromTheRun(t *testing.T) {
	w := newWorld()
	w.started("a#1", "t0")
	log, _, _ := w.OpenLog("a#1")
	for _, run := range []struct {
		text    string
		resumed bool
	}{{"old\n", false}, {"new\n", false}, {"last\n", true}} {
		_, at, _ := w.OpenLog("a#1")
		_ = w.Append(event.Event{Type: event.AgentStarted, Path: "a#1"}, event.AgentStart{Conversation: run.text, Resumed: run.resumed, Log: at})
		_, _ = log.Write([]byte(run.text))
	}
	w.agents.recalled, w.agents.next = driver.Report{Started: true}, append(w.agents.next, does(driver.Report{Started: true, Text: "done"}, nil))
	if _, err := w.executor().Do(t.Context(), agentCall("a#1")); err != nil {
		t.Fatal(err)
	}
	if want := []string{"last\n", "new\nlast\n"}; !slices.Equal(w.agents.transcripts, want) {
		t.Errorf("read %q, want %q", w.agents.transcripts, want)
	}
	var start event.AgentStart
	for _, e := range w.Events() {
		if e.Type == event.AgentStarted {
			start = event.As[event.AgentStart](e)
		}
	}
	if want := int64(len("old\nnew\nlast\n")); start.Log != want || !start.Resumed {
		t.Errorf("recorded %+v, want the log from %d", start, want)
	}
}

// The time of an interrupted run counts toward the limits of a step. The wait for the turn to land does
// not.
func TestClocksOfALeaf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := errors.New("time is up")
		w := newWorld()
		at := ourclock.Now()
		w.events = []event.Event{
			{Seq: 1, Type: event.StepStarted, Path: "s#1", Data: []byte("{}"), Time: at.Add(-8 * time.Minute)},
			{Seq: 2, Type: event.SessionStopped, Data: []byte("{}"), Time: at},
		}
		w.commands.hangs = true
		ctx, stop := workclock.Limit(t.Context(), 10*time.Minute, up)
		defer stop()
		if _, err := w.executor().Do(ctx, scriptCall("make")); !errors.Is(err, up) || ourclock.Since(at) != 2*time.Minute {
			t.Errorf("%v after %s", err, ourclock.Since(at))
		}
		w = newWorld()
		w.landing.turn = time.Hour
		ctx, stop = workclock.Limit(t.Context(), 10*time.Minute, up)
		defer stop()
		if r, err := w.executor().Do(ctx, mergeCall(engine.MergeInput{})); err != nil || !r.OK || ctx.Err() != nil || w.landing.released != 1 {
			t.Errorf("%+v, %v, the turn was given up %d times", r, err, w.landing.released)
		}
	})
}

// The key of a script depends on its leaf and session.
func TestKey(t *testing.T) {
	x := newWorld().executor()
	other := newWorld().executor()
	other.Session = "other"
	if again := newWorld().executor(); x.key("a#1") != again.key("a#1") || x.key("a#1") == x.key("a#2") || x.key("a#1") == other.key("a#1") {
		t.Error("keys of different leaves are equal")
	}
}

// An agent that makes the changes that a person asked for continues the conversation of the leaf that did
// the work, if the CLI supports that and still knows the conversation.
func TestAgentContinuesAnother(t *testing.T) {
	for name, tt := range map[string]struct {
		conversation string // of the earlier leaf's transcript
		cutOff       bool
		next         []func(AgentRun) (driver.Report, error)
		want         []string // conversation of each run, empty for a new one
		has          string   // in the last prompt
	}{
		"in its conversation": {
			next: []func(AgentRun) (driver.Report, error){does(driver.Report{Started: true, Text: "done"}, nil)}, want: []string{"ours"}, has: "work",
		},
		"by the name that the CLI gave it": {
			conversation: "5230dfd6-0228-4864-8664-34ae0f021321",
			next:         []func(AgentRun) (driver.Report, error){does(driver.Report{Started: true, Text: "done"}, nil)},
			want:         []string{"5230dfd6-0228-4864-8664-34ae0f021321"}, has: "work",
		},
		"a new one, with a CLI that cannot resume": {
			next: []func(AgentRun) (driver.Report, error){does(driver.Report{}, pluginerr.ErrUnsupported), says("done")}, want: []string{"ours", ""}, has: "work",
		},
		"a new one, when the CLI does not know it": {
			next: []func(AgentRun) (driver.Report, error){does(driver.Report{}, nil), says("done")}, want: []string{"ours", ""}, has: "work",
		},
		"after an interruption, with the request": {
			cutOff: true, want: []string{"ours"}, has: "You were working on this request:\n\nwork",
			next: []func(AgentRun) (driver.Report, error){does(driver.Report{Started: true, Text: "done"}, nil)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			_ = w.Append(event.Event{Type: event.AgentStarted, Path: "a#1"}, event.AgentStart{Conversation: "ours", Prompt: "do it"})
			_, _, _ = w.OpenLog("a#1")
			w.agents.recalled, w.agents.next = driver.Report{Started: true, Conversation: tt.conversation}, tt.next
			if tt.cutOff {
				w.started("revise@1/revise#1", "t0")
				_ = w.Append(event.Event{Type: event.AgentStarted, Path: "revise@1/revise#1"}, event.AgentStart{Conversation: "ours", Resumed: true, Prompt: "work"})
				_, _, _ = w.OpenLog("revise@1/revise#1")
			}
			call := agentCall("revise@1/revise#1")
			call.Agent.Continues = "a#1"
			r, err := w.executor().Do(t.Context(), call)
			if err != nil || !r.OK || r.Output != "done" || len(w.agents.runs) != len(tt.want) {
				t.Fatalf("%+v, %v, %d runs", r, err, len(w.agents.runs))
			}
			for i, want := range tt.want {
				run := w.agents.runs[i]
				if run.Resume != (want != "") || want != "" && run.Conversation != want || want == "" && run.Conversation == "ours" {
					t.Errorf("run %d: resumed %v, conversation %q", i, run.Resume, run.Conversation)
				}
			}
			if last := w.agents.runs[len(tt.want)-1]; !strings.Contains(last.Prompt, tt.has) {
				t.Errorf("prompt %q", last.Prompt)
			}
		})
	}
}

// Only the last answer to the question counts: changes requested before a newer question or answer no
// longer count.
func TestRevision(t *testing.T) {
	changes := func(text string) event.MergeDecision {
		return event.MergeDecision{Patch: "p", By: "dana", Changes: []reviewer.Finding{{Severity: reviewer.Error, Message: text}}}
	}
	asked, approved := event.MergeDecision{Patch: "p"}, event.MergeDecision{Patch: "p", Approved: true, By: "dana"}
	for name, tt := range map[string]struct {
		answers []any // answers to a question, or questions
		want    string
	}{
		"none":                {[]any{asked}, ""},
		"changes":             {[]any{asked, changes("a")}, "a"},
		"changes, twice":      {[]any{asked, changes("a"), changes("b")}, "a b"},
		"before an approval":  {[]any{asked, changes("a"), approved}, ""},
		"after an approval":   {[]any{asked, approved, changes("a")}, "a"},
		"before a question":   {[]any{asked, changes("a"), asked}, ""},
		"after both of these": {[]any{asked, changes("a"), asked, changes("b")}, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			for _, a := range tt.answers {
				kind := event.ReviewAnswered
				if d := a.(event.MergeDecision); !d.Approved && len(d.Changes) == 0 {
					kind = event.ReviewAsked
				}
				_ = w.Append(event.Event{Type: kind, Path: "land#1"}, a)
			}
			_ = w.Append(event.Event{Type: event.ReviewAnswered, Path: "other#1"}, changes("elsewhere"))
			r, ok, err := w.executor().revision("land#1")
			var got []string
			for _, o := range r.Opinions {
				for _, f := range o.Findings {
					got = append(got, f.Message)
				}
			}
			if err != nil || ok != (tt.want != "") || strings.Join(got, " ") != tt.want || ok && r.Error != "dana asked for changes" {
				t.Errorf("%v %+v, %v", ok, r, err)
			}
		})
	}
}

// The agent also receives the open findings of each reviewer.
func TestRevisionWithOpenFindings(t *testing.T) {
	w := newWorld()
	found := func(name string, messages ...string) event.Opinion {
		o := event.Opinion{Opinion: arbiter.Opinion{Reviewer: name, Verdict: reviewer.Fail}}
		for _, m := range messages {
			o.Findings = append(o.Findings, reviewer.Finding{Severity: reviewer.Error, Message: m})
		}
		return o
	}
	_ = w.Append(event.Event{Type: event.StepStarted, Path: "look#1"}, event.StepStart{Kind: "review"})
	_ = w.Append(event.Event{Type: event.StepCompleted, Path: "look#1"}, event.Result{
		ErrorType: event.ErrorFindings, Opinions: []event.Opinion{found("lint", "a", "b"), found("agent", "c")},
	})
	_ = w.Append(event.Event{Type: event.ReviewAnswered, Path: "land#1"}, event.MergeDecision{
		By: "dana", Changes: []reviewer.Finding{{Severity: reviewer.Error, Message: "more"}},
	})
	r, ok, err := w.executor().revision("land#1")
	want := []event.Opinion{found("dana", "more"), found("lint", "a", "b"), found("agent", "c")}
	if !ok || err != nil || !reflect.DeepEqual(r.Opinions, want) {
		t.Errorf("%v %+v, %v", ok, r.Opinions, err)
	}
}
