package runner

import (
	"slices"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/config/check"
	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/runner/engine"
)

// A merge is tried again if the target has moved. A conflict or a refusal is its result.
func TestMergeOutcomes(t *testing.T) {
	for name, tt := range map[string]struct {
		errs  []error
		kind  event.ErrorType
		text  string
		files []string
		next  string
	}{
		"at once":          {},
		"the target moved": {errs: []error{ErrMoved, ErrMoved}},
		"a conflict":       {errs: []error{ErrMoved, &ConflictError{Target: "main", Files: []string{"a b.go", "c.go"}, Dir: "/w"}}, kind: event.ErrorConflict, text: "conflict with main in a b.go, c.go (to resolve it: git merge main, in /w)", files: []string{"a b.go", "c.go"}},
		"a refusal":        {errs: []error{&RefusedError{Reason: "a hook failed", Output: "no", Next: "approve"}}, kind: event.ErrorRefused, text: "a hook failed", next: "approve"},
		"a wait":           {errs: []error{&Wait{Reason: event.WaitCheckout, Detail: "a rebase is in progress", Next: "resume"}}, text: "wait"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.landing.errs = tt.errs
			r, err := w.executor().Do(t.Context(), mergeCall(engine.MergeInput{Strategy: "squash"}))
			if tt.text == "wait" {
				if err == nil || err.Error() != "waiting (checkout): a rebase is in progress" || w.count(event.LandDone) != 0 {
					t.Errorf("%+v, %v", r, err)
				}
				return
			}
			if err != nil || r.OK != (tt.kind == "") || r.ErrorType != tt.kind || r.Error != tt.text || !slices.Equal(r.Files, tt.files) || r.Next != tt.next {
				t.Errorf("%+v, %v", r, err)
			}
			landed := 0
			if r.OK {
				landed = 1
			}
			if w.count(event.LandIntended) != landed || w.count(event.LandDone) != landed || len(w.landing.landed) != landed {
				t.Errorf("%d intents, %d landings recorded", w.count(event.LandIntended), w.count(event.LandDone))
			}
			if tt.errs == nil && !slices.Equal(w.landing.doing, []string{"brings its branch up to date", "runs its checks", "lands"}) {
				t.Errorf("those who wait were told %q", w.landing.doing)
			}
			if r.OK && (w.landing.landed[0].Strategy != "squash" || r.Commit != "new" || r.Output != "landed new on refs/heads/main") {
				t.Errorf("landed %+v, %+v", w.landing.landed, r)
			}
		})
	}
}

// A landing that was interrupted after its intent is completed or undone before another attempt. The intent
// of another leaf does not count.
func TestMergeRecovers(t *testing.T) {
	for name, tt := range map[string]struct {
		path      string
		recovers  bool
		recovered int
		commit    string
	}{
		"it landed":       {"land#1", true, 1, "intended"},
		"it did not land": {"land#1", false, 1, "new"},
		"another leaf":    {"first#1", true, 0, "new"},
	} {
		w := newWorld()
		w.landing.recovers = tt.recovers
		_ = w.Append(event.Event{Type: event.LandIntended, Path: tt.path}, event.Landing{Target: "refs/heads/main", New: "intended"})
		r, err := w.executor().Do(t.Context(), mergeCall(engine.MergeInput{}))
		var done event.Landing
		if kind := w.last(t, &done); err != nil || !r.OK || r.Commit != tt.commit || w.landing.recovered != tt.recovered || kind != event.LandDone || done.New != tt.commit {
			t.Errorf("%s: %+v, %v, recovered %d times, recorded %s %+v", name, r, err, w.landing.recovered, kind, done)
		}
	}
}

// The changes of an interrupted check are reverted before the merge continues, unless the session had
// stopped, so that a person may have used the worktree since.
func TestMergeRevertsInterruptedCheck(t *testing.T) {
	for name, tt := range map[string]struct {
		then     []event.Type
		path     string
		restored int
	}{
		"interrupted":                    {path: "land#1", restored: 1},
		"then the check ended":           {then: []event.Type{event.CheckEnded}, path: "land#1"},
		"then the session stopped":       {then: []event.Type{event.SessionStopped}, path: "land#1"},
		"then the session waited":        {then: []event.Type{event.SessionWaiting}, path: "land#1"},
		"then the session was blocked":   {then: []event.Type{event.SessionBlocked}, path: "land#1"},
		"stopped, and interrupted again": {then: []event.Type{event.SessionStopped, event.CheckStarted}, path: "land#1", restored: 1},
		"of another leaf":                {path: "tests#1"},
	} {
		w := newWorld()
		start := func() {
			_ = w.Append(event.Event{Type: event.CheckStarted, Path: tt.path}, event.Check{Text: "make test", Snapshot: snapshotOf + "t1"})
		}
		start()
		for _, typ := range tt.then {
			switch typ {
			case event.CheckStarted:
				start()
			case event.CheckEnded:
				_ = w.Append(event.Event{Type: typ, Path: tt.path}, event.Receipt{Command: "make test"})
			default:
				_ = w.Append(event.Event{Type: typ}, event.Ended{})
			}
		}
		if r, err := w.executor().Do(t.Context(), mergeCall(engine.MergeInput{})); err != nil || !r.OK || len(w.workspace.restored) != tt.restored {
			t.Errorf("%s: %+v, %v, restored %q", name, r, err, w.workspace.restored)
		}
	}
}

// The message of a landing is that of the step, or derived from the task. Commits of a rebase keep their
// messages, so a person is not shown any.
func TestMergeMessage(t *testing.T) {
	for _, tt := range []struct {
		merge         engine.MergeInput
		landed, shown string
	}{
		{engine.MergeInput{Message: "mine", Summary: "done"}, "mine", "mine"},
		{engine.MergeInput{Summary: "done"}, "A title\n\ndone", "A title\n\ndone"},
		{engine.MergeInput{Summary: "A title"}, "A title", "A title"},
		{engine.MergeInput{Strategy: "rebase", Summary: "done"}, "A title\n\ndone", ""},
	} {
		w := newWorld()
		tt.merge.RequireReview = true
		_, _ = w.executor().Do(t.Context(), mergeCall(tt.merge))
		var asked event.MergeDecision
		if kind := w.last(t, &asked); kind != event.ReviewAsked || asked.Message != tt.shown || asked.Patch != "p1" || asked.Tree != "t1" {
			t.Errorf("%+v: asked %s %+v", tt.merge, kind, asked)
		}
		_ = w.Append(event.Event{Type: event.ReviewAnswered, Path: "land#1"}, event.MergeDecision{Patch: "p1", Approved: true})
		if r, err := w.executor().Do(t.Context(), mergeCall(tt.merge)); err != nil || !r.OK || w.landing.messages[0] != tt.landed {
			t.Errorf("%+v: %v, landed with %q", tt.merge, err, w.landing.messages)
		}
	}
}

func resolveCall() engine.Call {
	c := agentCall("land[1]/resolve#1")
	c.Agent.Resolve = true
	return c
}

// An agent's merge is committed, unless it discards changes of the target. If the agent fails, the merge is
// undone.
func TestResolve(t *testing.T) {
	for name, tt := range map[string]struct {
		report   driver.Report
		touched  []string // files that the agent changed in the merge
		differs  []string // files in which the result differs from the task's branch
		files    []string // files in conflict
		ok       bool
		error    string
		kind     event.ErrorType
		warned   string
		restored bool
	}{
		"resolved": {touched: []string{"a.go"}, differs: []string{"a.go", "b.go"}, files: []string{"a.go"}, ok: true},
		"only the task's side": {
			touched: []string{"a.go"}, differs: []string{"b.go"}, files: []string{"a.go"}, ok: true,
			warned: "the agent kept only the task's side of the conflicts in a.go",
		},
		"discarded": {
			touched: []string{"a.go", "b.go", "c.go"}, differs: []string{"a.go"}, files: []string{"a.go"},
			error: "the agent discarded changes of the target in b.go, c.go", kind: event.ErrorCommit, restored: true,
		},
		"failed": {report: driver.Report{Kind: event.ErrorProvider, Error: "no credit"}, files: []string{"a.go"}, error: "no credit", kind: event.ErrorProvider, restored: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.landing.target, w.landing.files = "m1", tt.files
			w.workspace.differ = map[string][]string{"conflicted resolved": tt.touched, "t1 resolved": tt.differs}
			w.agents.next = append(w.agents.next, func(AgentRun) (driver.Report, error) {
				w.workspace.tree = "resolved"
				return tt.report, nil
			})
			r, err := w.executor().Do(t.Context(), resolveCall())
			if err != nil || r.OK != tt.ok || r.Error != tt.error || r.ErrorType != tt.kind || strings.Join(w.warnings(), "") != tt.warned {
				t.Errorf("%+v, %v, warned %q", r, err, w.warnings())
			}
			if restored := slices.Contains(w.workspace.restored, snapshotOf+"t1"); restored != tt.restored || restored != (w.workspace.tree == "t1") {
				t.Errorf("restored %q, worktree %s", w.workspace.restored, w.workspace.tree)
			}
			if w.count(event.MergeStarted) != 1 {
				t.Errorf("%d merges recorded", w.count(event.MergeStarted))
			}
		})
	}
}

// If there is no longer a conflict, or no agent can resolve it, no agent starts. An interrupted merge
// continues as recorded.
func TestResolveWithoutConflict(t *testing.T) {
	w := newWorld()
	if r, err := w.executor().Do(t.Context(), resolveCall()); err != nil || !r.OK || r.Output != "the target moved again; the conflict is gone" || len(w.agents.runs) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	w = newWorld()
	w.landing.refuses = &RefusedError{Reason: "a submodule is in conflict"}
	if r, err := w.executor().Do(t.Context(), resolveCall()); err != nil || r.OK || r.Error != "a submodule is in conflict" || r.ErrorType != event.ErrorConflict || len(w.agents.runs) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	w = newWorld()
	w.started("land[1]/resolve#1", "t1")
	_ = w.Append(event.Event{Type: event.MergeStarted, Path: "land[1]/resolve#1"}, event.Merging{Target: "m1", Snapshot: snapshotOf + "conflicted", Tree: "conflicted"})
	w.landing.target, w.workspace.tree, w.agents.next = "m2", "half", append(w.agents.next, says("done"))
	w.workspace.differ = map[string][]string{"conflicted conflicted": nil, "t1 conflicted": {"a.go"}}
	if r, err := w.executor().Do(t.Context(), resolveCall()); err != nil || !r.OK || w.count(event.MergeStarted) != 1 || !slices.Equal(w.workspace.restored, []string{snapshotOf + "conflicted"}) {
		t.Errorf("%+v, %v, restored %q", r, err, w.workspace.restored)
	}
	if got := w.workspace.merges; !slices.Equal(got, []string{"m1"}) {
		t.Errorf("merged %q", got)
	}
}

// Checks prove only the tree on which they ran. Trees that became each other by merging the target are
// equivalent.
func TestMergeTrees(t *testing.T) {
	w := newWorld()
	w.landing.candidate.Tree = "t2"
	r, err := w.executor().Do(t.Context(), mergeCall(engine.MergeInput{Checks: check.Of("make test")}))
	if err != nil || r.OK || r.ErrorType != event.ErrorInternal || !strings.HasPrefix(r.Error, "the worktree changed while the checks ran") || len(w.landing.landed) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	for _, e := range w.Events() {
		if i := event.As[event.Integrated](e); e.Type == event.MergeDone && (i.From != "t1" || i.Tree != "t2") {
			t.Errorf("recorded %+v", i)
		}
	}
	x := w.executor()
	for _, i := range []event.Integrated{{From: "t2", Tree: "t3"}, {From: "t3", Tree: "t4"}, {From: "t4", Tree: "t3"}} {
		_ = w.Append(event.Event{Type: event.MergeDone, Path: "land#1"}, i)
	}
	for pair, want := range map[[2]string]bool{
		{"t4", "t4"}: true, {"t3", "t4"}: true, {"t4", "t3"}: true, {"t1", "t2"}: true,
		{"t2", "t1"}: false, {"", ""}: false, {"", "t2"}: false, {"t9", "t4"}: false,
	} {
		if got := x.evidence().Becomes(pair[0], pair[1]); got != want {
			t.Errorf("%q becomes %q: %v", pair[0], pair[1], got)
		}
	}
}
