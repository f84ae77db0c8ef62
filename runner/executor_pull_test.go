package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/forge"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/reviewer"
	"github.com/coven-run/coven/runner/engine"
	"github.com/coven-run/coven/runner/pullrequest"
)

// fakePulls is a host with one pull request.
type fakePulls struct {
	state     pullrequest.State
	calls     []string
	text      string
	refuses   error  // of Publish
	cannot    error  // of Rerun
	notMerged error  // of Merge
	locked    string // reason for which it refuses a Reply
	noReply   error  // of Reply
	merged    string
}

func (f *fakePulls) Publish(_ context.Context, c event.Landing, known []string, title, text string) (event.PullRequest, error) {
	f.calls = append(f.calls, fmt.Sprintf("publish %s %v %s", c.Tip, known, title))
	f.text = text
	if f.refuses != nil {
		return event.PullRequest{}, f.refuses
	}
	f.state.Head, f.state.Contains = c.Tip, true
	return event.PullRequest{Number: 7, URL: "http://host/7", Target: c.Target, Remote: "origin", Branch: "coven/t", Base: "main", Tip: c.Tip, Tree: c.Tree, Old: c.Old}, nil
}

func (f *fakePulls) State(context.Context, event.PullRequest) (pullrequest.State, error) {
	return f.state, nil
}

func (f *fakePulls) Log(_ context.Context, c forge.Check) (string, error) {
	f.calls = append(f.calls, "log "+c.ID)
	return "log of " + c.Name, nil
}

func (f *fakePulls) Rerun(_ context.Context, c forge.Check) error {
	f.calls = append(f.calls, "rerun "+c.ID)
	return f.cannot
}

func (f *fakePulls) Reply(_ context.Context, _ event.PullRequest, comment, text string) (string, error) {
	f.calls = append(f.calls, "reply "+comment+": "+strings.ReplaceAll(text, "\n", "|"))
	return f.locked, f.noReply
}

func (f *fakePulls) Merge(_ context.Context, of event.PullRequest) error {
	f.calls = append(f.calls, "merge "+of.Tip)
	if f.notMerged == nil {
		f.state.State, f.state.Commit, f.state.Tree = forge.Merged, f.merged, of.Tree
	}
	return f.notMerged
}

// pulling is a session whose change lands with a pull request.
type pulling struct {
	*world
	host *fakePulls
	x    *Executor
	path string
}

func newPulling() pulling {
	w := newWorld()
	w.workspace.tips = []string{"tip"}
	host := &fakePulls{state: pullrequest.State{PullRequest: forge.PullRequest{Number: 7, State: forge.Open}}, merged: "m1"}
	x := w.executor()
	x.Pulls = host
	return pulling{w, host, x, "land#1"}
}

// do runs the leaf, and returns a text with its result or its wait.
func (p pulling) do(t *testing.T) string {
	t.Helper()
	call := mergeCall(engine.MergeInput{Strategy: engine.PullRequest, RequireReview: true})
	call.Path = p.path
	r, err := p.x.pull(t.Context(), call)
	wait := (*Wait)(nil)
	switch {
	case errors.As(err, &wait):
		return fmt.Sprintf("wait (%s): %s; %s", wait.Reason, wait.Detail, wait.Next)
	case err != nil:
		return "error: " + err.Error()
	case r.OK:
		return "ok: " + r.Output
	}
	return fmt.Sprintf("%s: %s; %s", r.ErrorType, r.Error, r.Next)
}

func (p pulling) check(t *testing.T, want string) {
	t.Helper()
	if got := p.do(t); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func (p pulling) resume() { _ = p.Append(event.Event{Type: event.SessionResumed}, event.Resumed{}) }

func (p pulling) called(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(p.host.calls, want) {
		t.Errorf("called\n%s\nwant\n%s", strings.Join(p.host.calls, "\n"), strings.Join(want, "\n"))
	}
	p.host.calls = nil
}

func checkOf(name string, status forge.Status, required bool) forge.Check {
	return forge.Check{ID: name + "1", Name: name, Status: status, Required: required}
}

// A change is published once, and the session waits for the checks of the host and then for a person, who approves the merge.
func TestPull(t *testing.T) {
	p := newPulling()
	p.host.state.Checks = []forge.Check{checkOf("build", forge.Pending, true), checkOf("lint", forge.Passed, true)}
	p.check(t, "wait (ci): pull request #7: 1 of 2 checks have not ended: build (http://host/7); resume")
	p.called(t, "publish tip [] A title")
	p.check(t, "wait (ci): pull request #7: 1 of 2 checks have not ended: build (http://host/7); resume")
	p.host.state.Checks[0].Status, p.host.state.Needs = forge.Passed, "1 more approval"
	p.check(t, "wait (merge): pull request #7 needs 1 more approval (http://host/7); resume")
	p.host.state.Mergeable = forge.Clean
	p.check(t, "wait (merge): pull request #7 can be merged (http://host/7); approve")
	p.called(t)
	_ = p.Append(event.Event{Type: event.ReviewAnswered, Path: "land#1"}, event.MergeDecision{Approved: true, By: "ann", Tree: "t1"})
	p.check(t, "ok: landed m1 on refs/heads/main")
	p.called(t, "merge tip")
	var landed event.Landing
	if kind := p.last(t, &landed); kind != event.LandDone || landed.New != "m1" || landed.Tip != "tip" || landed.Strategy != "pull-request" || p.count(event.PullSeen) != 4 {
		t.Errorf("%s %+v, %d states recorded", kind, landed, p.count(event.PullSeen))
	}
}

// The states of a pull request in which coven does nothing.
func TestPullStates(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*pullrequest.State)
		want   string
	}{
		"no checks":         {func(s *pullrequest.State) { s.Mergeable = forge.Clean }, "wait (merge): pull request #7 can be merged (http://host/7); approve"},
		"nothing known":     {func(*pullrequest.State) {}, "wait (merge): pull request #7 is open (http://host/7); resume"},
		"draft":             {func(s *pullrequest.State) { s.Draft = true }, "wait (merge): pull request #7 is a draft (http://host/7); resume"},
		"changes requested": {func(s *pullrequest.State) { s.Changes = true }, "wait (merge): pull request #7: a reviewer requests changes (http://host/7); resume"},
		"queue":             {func(s *pullrequest.State) { s.State, s.Queue = forge.Queued, 3 }, "wait (merge): pull request #7 is in the merge queue, position 3 (http://host/7); resume"},
		"merged":            {func(s *pullrequest.State) { s.State, s.Commit, s.Tree = forge.Merged, "abc", "t1" }, "ok: landed abc on refs/heads/main"},
		"closed":            {func(s *pullrequest.State) { s.State, s.By = forge.Closed, "bob" }, "closed: pull request #7 was closed by bob without a merge; reject --reason 'closed on the host'"},
		"branch deleted":    {func(s *pullrequest.State) { s.HeadGone = true }, "closed: branch coven/t of pull request #7 was deleted on origin; resume"},
		"gone":              {func(s *pullrequest.State) { s.State = forge.Gone }, "closed: pull request #7 no longer exists; reject --reason 'closed on the host'"},
		"optional check": {func(s *pullrequest.State) {
			s.Checks, s.Mergeable = []forge.Check{checkOf("a", forge.Failed, false), checkOf("b", forge.Passed, true)}, forge.Clean
		}, "wait (merge): pull request #7 can be merged (http://host/7); approve"},
		"optional check runs": {func(s *pullrequest.State) {
			s.Checks, s.Mergeable = []forge.Check{checkOf("a", forge.Pending, false), checkOf("b", forge.Passed, true)}, forge.Clean
		}, "wait (merge): pull request #7 can be merged (http://host/7); approve"},
		"old head":  {func(s *pullrequest.State) { s.Head = "tip0" }, "wait (ci): pull request #7: the host has not seen the last push yet; resume"},
		"added to":  {func(s *pullrequest.State) { s.Head = "abc" }, "wait (merge): pull request #7: coven/t has a commit that coven did not push (abc); coven does not touch it any more; resume"},
		"rewritten": {func(s *pullrequest.State) { s.Head, s.Contains = "abc", false }, "wait (merge): pull request #7: coven/t has a commit that coven did not push (abc), and no longer has those of coven; coven does not touch it any more; resume"},
		"strangers": {func(s *pullrequest.State) { s.Others = []string{"1", "2"} }, "wait (merge): pull request #7 is open; 2 comments by people who may not write to the repository: coven review --drafts (http://host/7); resume"},
		"two lines": {func(s *pullrequest.State) { s.Needs = "a\nb" }, "wait (merge): pull request #7 needs a b (http://host/7); resume"},
	} {
		p := newPulling()
		_ = p.Append(event.Event{Type: event.PullPublished}, event.PullRequest{Tip: "tip0"})
		p.do(t)
		tt.change(&p.host.state)
		p.host.calls = nil
		got := p.do(t)
		if got != tt.want || len(p.host.calls) > 0 {
			t.Errorf("%s:\ngot  %s\nwant %s\ncalls %q", name, got, tt.want, p.host.calls)
		}
	}
}

// A tree that the host merged although coven did not check it is named, and a branch that was not merged is not counted as landed.
func TestPullMergedOther(t *testing.T) {
	p := newPulling()
	p.do(t)
	p.host.state.State, p.host.state.Commit, p.host.state.Tree, p.host.state.Contains = forge.Merged, "abc", "t9", false
	p.check(t, "ok: landed abc on refs/heads/main")
	var landed event.Landing
	p.last(t, &landed)
	if landed.Tip != "" || p.count(event.Warning) != 1 {
		t.Errorf("%+v, %d warnings", landed, p.count(event.Warning))
	}
}

// A pull request whose branch was deleted is opened again when a person resumes the session, and not before.
func TestPullBranchDeleted(t *testing.T) {
	p := newPulling()
	p.do(t)
	p.host.state.State, p.host.state.HeadGone = forge.Closed, true
	const closed = "closed: branch coven/t of pull request #7 was deleted on origin; resume"
	p.check(t, closed)
	p.check(t, closed)
	p.called(t, "publish tip [] A title")
	p.resume()
	p.host.state.State, p.host.state.HeadGone = forge.Open, false
	p.check(t, "wait (merge): pull request #7 is open (http://host/7); resume")
	p.called(t, "publish tip [tip] A title")
}

// A failed check runs once again on the same commit. If it passes then, it is flaky. If not, an agent gets its log.
func TestPullRed(t *testing.T) {
	for name, tt := range map[string]struct {
		cannot error
		then   forge.Status
		want   string
		calls  []string
	}{
		"flaky": {nil, forge.Passed, "wait (merge): pull request #7 is open (http://host/7); resume", []string{"rerun build1"}},
		"red":   {nil, forge.Failed, "ci: pull request #7: build failed on tip; ", []string{"rerun build1", "log build1"}},
	} {
		p := newPulling()
		p.do(t)
		p.host.calls, p.host.cannot = nil, tt.cannot
		p.host.state.Checks = []forge.Check{checkOf("build", forge.Failed, true), checkOf("slow", forge.Pending, true)}
		p.check(t, "wait (ci): pull request #7: build failed and runs again, to see whether it is flaky; resume")
		p.host.state.Checks[1].Status = forge.Passed
		p.host.state.Checks[0].Status = tt.then
		if got := p.do(t); got != tt.want || !slices.Equal(p.host.calls, tt.calls) {
			t.Errorf("%s: %s, %q", name, got, p.host.calls)
		}
		if flaky := p.count(event.Warning) == 1; flaky != (name == "flaky") {
			t.Errorf("%s: flaky %t", name, flaky)
		}
		p.do(t)
		if p.count(event.Warning) > 1 {
			t.Error("it is said twice that the check is flaky")
		}
	}
}

// A check runs again on each commit on which it fails, and is flaky only if it passes on the same one.
func TestPullRedAnotherCommit(t *testing.T) {
	p := newPulling()
	p.do(t)
	p.host.state.Checks = []forge.Check{{ID: "1", Name: "build", Status: forge.Failed}}
	p.do(t)
	p.called(t, "publish tip [] A title", "rerun 1")
	p.workspace.tips, p.landing.candidate.Tip = []string{"tip2"}, "tip2"
	p.host.state.Checks = []forge.Check{{ID: "2", Name: "build", Status: forge.Passed}}
	if p.do(t); p.count(event.Warning) > 0 {
		t.Error("a check is called flaky that failed on another commit")
	}
	p.host.state.Checks[0].Status = forge.Failed
	p.check(t, "wait (ci): pull request #7: build failed and runs again, to see whether it is flaky; resume")
	p.called(t, "publish tip2 [tip] A title", "rerun 2")
}

// After a landing, a session can publish again, even the same commit.
func TestPullAfterLanding(t *testing.T) {
	p := newPulling()
	p.do(t)
	p.host.state.State, p.host.state.Commit, p.host.state.Tree = forge.Merged, "abc", "t1"
	p.check(t, "ok: landed abc on refs/heads/main")
	p.host.calls, p.host.state.State, p.path = nil, forge.Open, "land[2]#1"
	p.check(t, "wait (merge): pull request #7 is open (http://host/7); resume")
	p.called(t, "publish tip [tip] A title")
}

// Checks that fail are fixed together, when all have ended. The log of each is in the result, with the files since the last green commit.
func TestPullRedTogether(t *testing.T) {
	p := newPulling()
	p.host.cannot = pluginerr.ErrUnsupported
	p.host.state.Checks = []forge.Check{checkOf("build", forge.Passed, false)}
	p.do(t)
	p.workspace.tips, p.landing.candidate.Tip = []string{"tip1"}, "tip1"
	p.host.state.Checks = nil // no check says that this one is green
	p.do(t)
	p.workspace.tips, p.landing.candidate.Tip = []string{"tip2"}, "tip2"
	p.workspace.differ = map[string][]string{"tip tip2": {"a.go", "b.go"}}
	p.host.state.Checks = []forge.Check{checkOf("build", forge.Failed, false), checkOf("lint", forge.Pending, false)}
	p.check(t, "wait (ci): pull request #7: 1 of 2 checks have not ended: lint (http://host/7); resume")
	p.host.state.Checks[1].Status = forge.Failed
	r, err := p.x.pull(t.Context(), mergeCall(engine.MergeInput{Strategy: engine.PullRequest}))
	if err != nil || r.Error != "pull request #7: build, lint failed on tip2" || r.Output != "build failed on the host of the pull request. \nlog of build\nlint failed on the host of the pull request. \nlog of lint\nAll checks passed on tip. Changed since then: a.go, b.go\n" {
		t.Errorf("%+v, %v", r, err)
	}
}

// Comments of people who may write become requested changes, once, and are answered when the change is published again.
func TestPullComments(t *testing.T) {
	p := newPulling()
	p.do(t)
	comment := func(id, stored, by string) pullrequest.Comment {
		return pullrequest.Comment{Remote: id, ID: stored, By: by, Finding: reviewer.Finding{Severity: reviewer.Error, File: "a.go", Line: 3, Message: "[" + stored + "] why?"}}
	}
	p.host.state.Comments = []pullrequest.Comment{comment("101", "c1", "@ann"), comment("102", "c2", "@bob"), comment("103", "c3", "@ann")}
	p.check(t, "revise: @ann, @bob asked for changes; ")
	p.host.calls = nil
	done := func(path string, r event.Result) { _ = p.Append(event.Event{Type: event.StepCompleted, Path: path}, r) }
	done("land[1]/fix-ci#1", event.Result{OK: true, Summary: "Fixed the build"})
	done("revise@1/revise#1", event.Result{OK: true, Summary: "Renamed it", Outputs: map[string]any{"answers": map[string]any{"c2": "Because."}}})
	done("revise@2/revise#1", event.Result{OK: true, Summary: "Later work"})
	p.workspace.tips, p.landing.candidate.Tip = []string{"tip2"}, "tip2"
	p.x, p.path = p.executor(), "revise@1/land#1"
	p.x.Pulls = p.host
	p.check(t, "wait (merge): pull request #7 is open (http://host/7); resume")
	p.called(t, "publish tip2 [tip] A title", "reply 101: Renamed it||The branch is now at tip2.", "reply 102: Because.||The branch is now at tip2.", "reply 103: Renamed it||The branch is now at tip2.")
	p.check(t, "wait (merge): pull request #7 is open (http://host/7); resume")
	p.called(t)
	p.host.state.Comments = append(p.host.state.Comments, comment("104", "c4", "@ann"))
	p.check(t, "revise: @ann asked for changes; ")
}

// A comment is also answered if the agent changes nothing.
func TestPullCommentsUnchanged(t *testing.T) {
	p := newPulling()
	p.do(t)
	p.host.state.Comments = []pullrequest.Comment{{Remote: "101", ID: "c1", By: "@ann", Finding: reviewer.Finding{Severity: reviewer.Error, Message: "[c1] why?"}}}
	p.check(t, "revise: @ann asked for changes; ")
	p.host.calls = nil
	_ = p.Append(event.Event{Type: event.StepCompleted, Path: "revise@1/revise#1"}, event.Result{OK: true, Summary: "It is right as it is."})
	p.path = "revise@1/land#1"
	p.check(t, "wait (merge): pull request #7 is open (http://host/7); resume")
	p.called(t, "reply 101: It is right as it is.||The branch is now at tip.")
}

// A reply that was made before coven was killed is not made again.
func TestPullCommentsKilled(t *testing.T) {
	p := newPulling()
	p.do(t)
	for _, id := range []string{"101", "102"} {
		p.host.state.Comments = append(p.host.state.Comments, pullrequest.Comment{Remote: id, By: "@ann"})
	}
	p.check(t, "revise: @ann asked for changes; ")
	p.path, p.host.calls, p.host.state.Replied = "revise@1/land#1", nil, []string{"101"}
	for range 2 {
		p.check(t, "wait (merge): pull request #7 is open (http://host/7); resume")
	}
	if p.called(t, "reply 102: The branch is now at tip."); p.count(event.PullAnswered) != 2 {
		t.Errorf("%d answers", p.count(event.PullAnswered))
	}
}

// An answer that the host refuses is not tried again, and its reason is recorded. One that fails for now is, without another warning.
func TestPullCommentsRefused(t *testing.T) {
	p := newPulling()
	p.do(t)
	for _, id := range []string{"101", "102"} {
		p.host.state.Comments = append(p.host.state.Comments, pullrequest.Comment{Remote: id, By: "@ann"})
	}
	p.check(t, "revise: @ann asked for changes; ")
	p.path, p.host.calls = "revise@1/land#1", nil
	p.host.noReply = errors.New("host\nis down")
	for range 2 {
		p.do(t)
		p.called(t, "reply 101: The branch is now at tip.")
	}
	if p.count(event.Warning) != 1 || p.count(event.PullAnswered) != 0 {
		t.Errorf("%d warnings, %d answers", p.count(event.Warning), p.count(event.PullAnswered))
	}
	p.host.noReply, p.host.locked = nil, "the conversation is locked"
	p.check(t, "wait (merge): pull request #7 is open (http://host/7); resume")
	p.called(t, "reply 101: The branch is now at tip.", "reply 102: The branch is now at tip.")
	var answer event.PullAnswer
	if p.last(t, &answer); answer.Refused != p.host.locked || answer.Comment != "102" {
		t.Errorf("%+v", answer)
	}
	p.check(t, "wait (merge): pull request #7 is open (http://host/7); resume")
	p.called(t)
}

// A pull request that conflicts with its base is brought up to date, unless there is nothing new.
func TestPullConflict(t *testing.T) {
	p := newPulling()
	p.do(t)
	p.host.state.Mergeable = forge.Conflict
	p.called(t, "publish tip [] A title")
	p.check(t, "wait (merge): pull request #7 conflicts with main, according to the host (http://host/7); resume")
	p.called(t)
	p.landing.candidate.Tip = "tip2"
	p.workspace.tips = []string{"tip", "tip2"}
	p.check(t, "wait (merge): pull request #7 conflicts with main, according to the host (http://host/7); resume")
	p.called(t, "publish tip2 [tip] A title")
	p.landing.err = &ConflictError{Target: "origin/main", Files: []string{"a.go"}, Dir: "/w"}
	p.check(t, "conflict: conflict with origin/main in a.go (to resolve it: git merge origin/main, in /w); ")
	p.called(t)
}

// What the host refuses is the result, and nothing is recorded as published. A host that does not merge leaves the session waiting.
func TestPullRefused(t *testing.T) {
	p := newPulling()
	p.host.refuses = &RefusedError{Reason: "denied"}
	p.check(t, "refused: denied; ")
	if p.count(event.PullPublished) != 0 {
		t.Error("it is recorded as published")
	}
	p = newPulling()
	p.x.Approve = "--auto-approve"
	p.host.state.Mergeable, p.host.notMerged = forge.Clean, errors.New("head\nmoved")
	p.check(t, "wait (merge): pull request #7 can be merged (http://host/7); the host did not merge it: head moved; resume")
	p.called(t, "publish tip [] A title", "merge tip")
	p.host.notMerged = nil
	p.check(t, "ok: landed m1 on refs/heads/main")
}

// Open error findings need a person's word before anything is published.
func TestPullFindings(t *testing.T) {
	p := newPulling()
	p.given("quality/review", reviewer.Finding{Severity: reviewer.Error, File: "a.go", Line: 1, Message: "bad"})
	if got := p.do(t); !strings.HasPrefix(got, "wait (review): 1 open error finding") || len(p.host.calls) > 0 {
		t.Errorf("%s, %q", got, p.host.calls)
	}
}

// A change that is stacked on another one is not merged into the branch of that one, whoever approves it.
func TestPullStacked(t *testing.T) {
	p := newPulling()
	p.x.Approve = "--auto-approve"
	p.host.state.Mergeable, p.host.state.Stacked = forge.Clean, "t0"
	p.check(t, "wait (merge): pull request #7 is stacked on t0, which must land first (http://host/7); resume")
	p.host.state.Orphaned = "rejected"
	p.check(t, "closed: pull request #7 is stacked on t0, whose session is rejected; reject --reason 'stacked on a change that did not land'")
	p.called(t, "publish tip [] A title")
	p.host.state.Stacked, p.host.state.Orphaned = "", ""
	p.check(t, "ok: landed m1 on refs/heads/main")
}

// A change that a person merges into the branch on which it is stacked has not landed before that branch has, and does not if that is given up.
func TestPullMergedBelow(t *testing.T) {
	p := newPulling()
	p.do(t)
	p.host.state.State, p.host.state.Commit, p.host.state.Tree, p.host.state.Stacked, p.host.state.By = forge.Merged, "abc", "t1", "t0", "ann"
	p.host.state.Target = "refs/heads/main" // the branch below, as it was published
	p.check(t, "wait (merge): pull request #7 was merged by ann into main, the branch of t0, which must land first; resume")
	p.host.state.Orphaned = "rejected"
	p.check(t, "closed: pull request #7 was merged by ann into main, the branch of t0, whose session is rejected; reject --reason 'stacked on a change that did not land'")
	if p.count(event.LandDone) != 0 {
		t.Error("it counts as landed")
	}
	moved := newPulling()
	moved.do(t)
	moved.host.state = p.host.state
	moved.do(t)
	_ = moved.Append(event.Event{Type: event.PullMoved}, event.PullTarget{Target: "refs/heads/main"})
	moved.landing.candidate.Patch = ""
	moved.check(t, "ok: landed "+moved.landing.candidate.Old+" on refs/heads/main")
	var landed event.Landing
	if moved.last(t, &landed); landed.Tip != "tip" || landed.Strategy != engine.PullRequest || landed.Tree != moved.landing.candidate.Tree {
		t.Errorf("%+v", landed)
	}
	p.host.state.HeadGone = true // hosts delete merged branches
	p.check(t, "closed: pull request #7 was merged by ann into main, the branch of t0, whose session is rejected; reject --reason 'stacked on a change that did not land'")
	p.host.state.Target = "refs/remotes/origin/next" // a person has changed its base first
	p.check(t, "ok: landed abc on refs/remotes/origin/next")
}

// A person can change the base of a pull request on the host. Then the change is where it was merged.
func TestPullMergedElsewhere(t *testing.T) {
	p := newPulling()
	p.do(t)
	p.host.state.State, p.host.state.Commit, p.host.state.Tree, p.host.state.Target = forge.Merged, "abc", "t1", "refs/remotes/origin/next"
	p.check(t, "ok: landed abc on refs/remotes/origin/next")
	var landed event.Landing
	if p.last(t, &landed); landed.Target != "refs/remotes/origin/next" || p.count(event.Warning) != 1 {
		t.Errorf("%+v, %d warnings", landed, p.count(event.Warning))
	}
}

// All comments reach the agent, a limited number at once.
func TestPullManyComments(t *testing.T) {
	p := newPulling()
	p.do(t)
	for i := range 120 {
		p.host.state.Comments = append(p.host.state.Comments, pullrequest.Comment{Remote: fmt.Sprint(i), ID: fmt.Sprint("c", i), By: "@ann"})
	}
	total := 0
	for _, want := range []int{50, 50, 20} {
		p.do(t)
		var d event.MergeDecision
		if p.last(t, &d); len(d.Changes) != want {
			t.Errorf("%d comments at once", len(d.Changes))
		}
		total += len(d.Remote)
		_ = p.Append(event.Event{Type: event.StepCompleted, Path: p.path}, event.Result{ErrorType: event.ErrorRevise})
		p.path = "revise@1/" + p.path
	}
	if total != 120 {
		t.Errorf("%d comments", total)
	}
}

// Checks that fail together run again together.
func TestPullTogether(t *testing.T) {
	p := newPulling()
	p.do(t)
	p.host.calls = nil
	p.host.state.Checks = []forge.Check{checkOf("build", forge.Failed, true), checkOf("lint", forge.Failed, true)}
	p.check(t, "wait (ci): pull request #7: build, lint failed and run again, to see whether they are flaky; resume")
	p.called(t, "rerun build1", "rerun lint1")
	p.host.state.Checks[1].Status = forge.Passed
	p.check(t, "ci: pull request #7: build failed on tip; ")
}

// A check that failed on one commit and passes on the next is not flaky, and one that fails on both runs again on each. A check without a run is not
// another one with the same name.
func TestPullNextCommit(t *testing.T) {
	p := newPulling()
	p.host.state.Checks = []forge.Check{checkOf("build", forge.Failed, true), checkOf("lint", forge.Failed, true)}
	p.do(t)
	p.called(t, "publish tip [] A title", "rerun build1", "rerun lint1")
	p.workspace.tips, p.landing.candidate.Tip = []string{"tip2"}, "tip2"
	p.host.state.Checks = []forge.Check{{ID: "build2", Name: "build", Status: forge.Passed, Required: true}, {ID: "lint2", Name: "lint", Status: forge.Failed, Required: true}}
	p.do(t)
	if p.called(t, "publish tip2 [tip] A title", "rerun lint2"); p.count(event.Warning) > 0 {
		t.Error("it is called flaky")
	}
	_ = p.Append(event.Event{Type: event.PullSeen}, event.PullState{Head: "tip2", Checks: []event.PullCheck{{Name: "build", Head: "tip2", Status: "failed"}}})
	p.host.state.Checks[1] = forge.Check{Name: "deploy", Status: forge.Pending, Required: true}
	if p.do(t); p.count(event.Warning) != 1 {
		t.Error("it is not called flaky")
	}
}

// Each of two checks with one name runs again once, and is flaky by itself. A second run may have another ID. A run that an older coven recorded has none.
func TestPullSameName(t *testing.T) {
	named := func(id string, status forge.Status) forge.Check {
		return forge.Check{ID: id, Name: "build", Status: status}
	}
	p := newPulling()
	p.do(t)
	p.host.calls = nil
	p.host.state.Checks = []forge.Check{named("1", forge.Failed), named("2", forge.Passed)}
	p.check(t, "wait (ci): pull request #7: build failed and runs again, to see whether it is flaky; resume")
	if p.called(t, "rerun 1"); p.count(event.Warning) > 0 {
		t.Error("the other check is called flaky")
	}
	p.host.state.Checks = []forge.Check{named("3", forge.Pending), named("2", forge.Failed)}
	p.check(t, "wait (ci): pull request #7: build failed and runs again, to see whether it is flaky; resume")
	p.called(t, "rerun 2")
	p.host.state.Checks = []forge.Check{named("3", forge.Passed), named("2", forge.Failed)}
	p.check(t, "ci: pull request #7: build failed on tip; ")
	if p.called(t, "log 2"); p.count(event.Warning) != 1 {
		t.Errorf("%d warnings", p.count(event.Warning))
	}

	p = newPulling()
	p.host.state.Checks = []forge.Check{named("1", forge.Failed), named("2", forge.Passed)}
	p.do(t)
	if p.do(t); p.count(event.Warning) > 0 {
		t.Error("a check is called flaky because of another one")
	}

	p.host.calls = nil
	p.host.cannot = pluginerr.ErrUnsupported
	_ = p.Append(event.Event{Type: event.PullRerun}, event.PullCheck{ID: "9", Name: "test", Head: "tip", Status: "failed"})
	p.host.state.Checks = []forge.Check{{ID: "9", Name: "CI / test", Status: forge.Failed}}
	p.check(t, "ci: pull request #7: CI / test failed on tip; ")
	p.called(t, "log 9")

	p = newPulling()
	p.do(t)
	_ = p.Append(event.Event{Type: event.PullRerun}, event.PullCheck{Name: "build", Head: "tip", Status: "failed"})
	p.host.state.Checks = []forge.Check{named("1", forge.Failed)}
	p.check(t, "ci: pull request #7: build failed on tip; ")
}

// The message with which a person approves the merge becomes that of the pull request first.
func TestPullMessage(t *testing.T) {
	p := newPulling()
	p.host.state.Mergeable = forge.Clean
	p.do(t)
	p.host.calls = nil
	_ = p.Append(event.Event{Type: event.ReviewAnswered, Path: "land#1"}, event.MergeDecision{Approved: true, By: "ann", Tree: "t1", Message: "Better\n\nBecause."})
	p.check(t, "ok: landed m1 on refs/heads/main")
	p.called(t, "publish tip [tip] Better", "merge tip")
	if !strings.HasPrefix(p.host.text, "Because.\n\n") {
		t.Error(p.host.text)
	}
}

// Each comment is answered once, by the work that followed it, also if that changed nothing.
func TestPullAnswers(t *testing.T) {
	p := newPulling()
	p.do(t)
	ask := func(id string) {
		p.host.state.Comments = append(p.host.state.Comments, pullrequest.Comment{Remote: id, ID: "c" + id, By: "@ann", Finding: reviewer.Finding{Severity: reviewer.Error, Message: "why?"}})
		p.check(t, "revise: @ann asked for changes; ")
		_ = p.Append(event.Event{Type: event.StepCompleted, Path: "land#1"}, event.Result{Summary: "Of another step"})
		_ = p.Append(event.Event{Type: event.StepCompleted, Path: "revise@" + id + "/revise#1"}, event.Result{OK: true, Summary: "Answer " + id})
		p.x, p.path = p.executor(), "revise@"+id+"/land#1"
		p.x.Pulls = p.host
		p.host.calls = nil
	}
	ask("1")
	p.check(t, "wait (merge): pull request #7 is open (http://host/7); resume")
	p.called(t, "reply 1: Answer 1||The branch is now at tip.")
	ask("2")
	p.workspace.tips, p.landing.candidate.Tip = []string{"tip2"}, "tip2"
	p.check(t, "wait (merge): pull request #7 is open (http://host/7); resume")
	p.called(t, "publish tip2 [tip] A title", "reply 2: Answer 2||The branch is now at tip2.")
}

// The text of a pull request has the checks that passed on exactly its tree, and the reviews.
func TestPullText(t *testing.T) {
	p := newPulling()
	tree := p.landing.candidate.Tree
	for _, r := range []event.Receipt{
		{Command: "make test", Tree: tree}, {Command: "make test", Tree: tree}, {Command: "make lint", Tree: "old"}, {Command: "make `x`", Tree: tree, ExitCode: 1},
	} {
		_ = p.Append(event.Event{Type: event.CheckEnded}, r)
	}
	_ = p.Append(event.Event{Type: event.ReviewGiven}, event.Opinion{Tree: "old", Summary: "Fine\nwork", Opinion: arbiter.Opinion{Reviewer: "kind", Verdict: reviewer.Pass}})
	p.do(t)
	if want := "- `make test` passed in 0s\n\n### Reviews\n\n- kind: pass, before later changes: Fine work\n"; strings.Count(p.host.text, "make") != 1 || !strings.Contains(p.host.text, want) {
		t.Errorf("%s\nwant\n%s", p.host.text, want)
	}
}

// A change that the merge queue has removed is not added again without a person's word, whoever approved it before, unless it has changed.
func TestPullDequeued(t *testing.T) {
	p := newPulling()
	p.x.Approve = "--auto-approve"
	p.host.state.Mergeable, p.host.state.State = forge.Clean, forge.Queued
	p.check(t, "wait (merge): pull request #7 is in the merge queue (http://host/7); resume")
	p.host.state.State = forge.Open
	p.host.state.Mergeable = forge.Blocked
	p.check(t, "wait (merge): pull request #7 is open (http://host/7); resume")
	p.host.state.Mergeable = forge.Clean
	const removed = "wait (merge): pull request #7 was removed from the merge queue (http://host/7); approve"
	p.check(t, removed)
	p.called(t, "publish tip [] A title")
	approve := func() {
		_ = p.Append(event.Event{Type: event.ReviewAnswered, Path: "land#1"}, event.MergeDecision{Approved: true, By: "ann", Tree: "t1"})
	}
	approve()
	p.host.notMerged = errors.New("not now")
	p.check(t, "wait (merge): pull request #7 was removed from the merge queue (http://host/7); the host did not merge it: not now; resume")
	p.called(t, "merge tip")
	p.host.state.State = forge.Queued
	p.do(t)
	p.host.state.State = forge.Open
	p.check(t, removed)
	p.called(t)
	p.host.notMerged, p.landing.candidate.Tip, p.workspace.tips = nil, "tip2", []string{"tip2"}
	p.check(t, "ok: landed m1 on refs/heads/main")
	p.called(t, "publish tip2 [tip] A title", "merge tip2")
}

// coven merges only what is open and can be merged, and brings a branch up to date that must contain the tip of its base. A state is recorded if a check
// has changed.
func TestPullMergeable(t *testing.T) {
	p := newPulling()
	p.x.Approve = "--auto-approve"
	p.host.state.State = forge.Queued
	p.host.state.Mergeable = forge.Clean
	p.do(t)
	p.host.state.State = forge.Open
	for _, m := range []forge.Mergeable{forge.Unknown, forge.Blocked} {
		p.host.state.Mergeable = m
		p.do(t)
	}
	p.called(t, "publish tip [] A title")
	before := p.count(event.PullSeen)
	p.host.state.Checks = []forge.Check{checkOf("a", forge.Passed, true)}
	if p.do(t); p.count(event.PullSeen) != before+1 {
		t.Error("the result of a check is not recorded")
	}
	p.landing.candidate.Tip = "tip2"
	p.host.state.Mergeable = forge.Behind
	p.do(t)
	p.workspace.tips = []string{"tip2"}
	p.called(t, "publish tip2 [tip] A title")
	p.host.state.Mergeable, p.host.notMerged = forge.Clean, errors.New("not now")
	_, err := p.x.pull(t.Context(), mergeCall(engine.MergeInput{Strategy: engine.PullRequest}))
	if wait := (*Wait)(nil); !errors.As(err, &wait) || wait.Until.IsZero() {
		t.Errorf("%v: it never tries again", err)
	}
}

// A commit on which a check passed first and failed then is not the green one.
func TestPullRedAgain(t *testing.T) {
	p := newPulling()
	p.host.cannot = pluginerr.ErrUnsupported
	p.host.state.Checks = []forge.Check{checkOf("build", forge.Passed, true)}
	p.do(t)
	p.host.state.Checks = []forge.Check{checkOf("build", forge.Failed, true)}
	r, err := p.x.pull(t.Context(), mergeCall(engine.MergeInput{Strategy: engine.PullRequest}))
	if err != nil || strings.Contains(r.Output, "All checks passed") || r.ErrorType != event.ErrorCI {
		t.Errorf("%+v, %v", r, err)
	}
}
