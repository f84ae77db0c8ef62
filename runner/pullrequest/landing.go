// Package pullrequest lands a change with a pull request: it publishes the change, follows the pull request on its host, and decides
// which of its states need an agent or a person. It is the part of a merge step of package runner for the strategy pull-request.
package pullrequest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/plugins/forge"
	"github.com/coven-run/coven/plugins/reviewer"
	"github.com/coven-run/coven/runner/engine"
	"github.com/coven-run/coven/runner/evidence"
)

// Work is the change in the worktree of the task.
type Work interface {
	// Tip and Tree return the commit of the branch, and the tree that a commit of the worktree would have.
	Tip(ctx context.Context) (string, error)
	Tree(ctx context.Context) (string, error)
	// Changed returns the files that differ between two commits.
	Changed(ctx context.Context, from, to string) ([]string, error)
	// Prepare merges the base into the branch, runs the checks on the result unless its tip is that of published, and asks a person about a change that must not be
	// published without one. The result is set if there is nothing to publish.
	Prepare(ctx context.Context, published string) (event.Landing, event.Result, error)
	// Revision returns the result that asks an agent for the changes in the last answer of a person.
	Revision() (event.Result, bool, error)
	// Message returns the message of the change: a title, and after an empty line a text.
	Message() string
}

// Host publishes a change as a pull request, and follows it.
type Host interface {
	// Publish pushes the branch of a candidate, and opens its pull request or updates it. It changes the branch on the host only
	// if its tip there is one of known, or is contained in the candidate. The error is a *runner.RefusedError if the host refuses.
	Publish(ctx context.Context, candidate event.Landing, known []string, title, text string) (event.PullRequest, error)
	// State returns the state of a pull request. It may be some seconds old.
	State(ctx context.Context, of event.PullRequest) (State, error)
	// Log returns the end of the log of a check.
	Log(ctx context.Context, check forge.Check) (string, error)
	// Rerun runs a failed check again. The error is pluginerr.ErrUnsupported if the host cannot do this.
	Rerun(ctx context.Context, check forge.Check) error
	// Reply answers a comment. refused is the reason if the host will never accept that.
	Reply(ctx context.Context, of event.PullRequest, comment, text string) (refused string, err error)
	// Merge merges the pull request if its head is the published one, or adds it to the merge queue of its host.
	Merge(ctx context.Context, of event.PullRequest) error
}

// State is the state of a pull request on its host.
type State struct {
	forge.PullRequest
	Target   string    // ref of the branch into which it was merged; empty for the one of the publication
	Tree     string    // of the commit on the base branch, if it is merged
	Stacked  string    // task whose change must land first, or ""
	Orphaned string    // status of the session of that task if it is over without a landing, or ""
	Contains bool      // its head on the host is the published tip, or contains it
	Comments []Comment // of people who may write to the repository, not resolved, oldest first
	Replied  []string  // IDs of the comments to which coven has replied, whether or not that is recorded
	Others   []string  // IDs of the comments of other people, which a person may send to the agent
}

// Comment is a comment on a pull request.
type Comment struct {
	Remote string // its ID on the host
	ID     string // its ID in the person's review; empty for a comment without a line
	By     string
	reviewer.Finding
}

// Journal is the record of the session: see package evidence.
type Journal interface {
	evidence.Journal
	// Last returns the last event of the given types.
	Last(types ...event.Type) (e event.Event, ok bool)
}

// Landing is the landing of one change.
type Landing struct {
	Task     string
	Session  string
	Path     string // of the merge leaf
	Journal  Journal
	Append   func(event.Event, any) error // to the journal
	Host     Host
	Work     Work
	Approver string // approves merges without asking a person; may be empty
}

// A Wait is the error of a landing that waits for the host or for a person.
type Wait struct {
	Reason event.WaitReason
	Detail string
	Next   string    // the coven command that continues
	Until  time.Time // the earliest time to continue; zero for the next change of the pull request
}

func (w *Wait) Error() string { return "waiting (" + string(w.Reason) + "): " + w.Detail }

func (l *Landing) emit(t event.Type, data any) error {
	return l.Append(event.Event{Type: t, Path: l.Path}, data)
}

func (l *Landing) warn(text string) error { return l.emit(event.Warning, event.Text{Text: text}) }

// Run publishes the change, and acts on the state of its pull request. The landing ends when the pull request is merged, or needs an
// agent or a person. Until then Run returns a *Wait.
func (l *Landing) Run(ctx context.Context) (event.Result, error) {
	pr, err := l.unchanged(ctx)
	if err != nil {
		return event.Result{}, err
	}
	if pr.Tip == "" || l.reopens(pr) {
		var result event.Result
		if pr, result, err = l.publish(ctx, ""); err != nil || pr.Tip == "" {
			return result, err
		}
	}
	if err := l.answerComments(ctx, pr); err != nil {
		return event.Result{}, err
	}
	for range 3 { // publishing or merging changes the state
		if last, ok := l.lastPull(); ok {
			pr = last
		}
		state, err := l.Host.State(ctx, pr)
		if err != nil {
			return event.Result{}, err
		}
		result, again, err := l.follow(ctx, pr, state)
		if err != nil || !again {
			return result, err
		}
	}
	return event.Result{}, &Wait{Reason: event.WaitMerge, Next: "resume", Detail: pullName(pr) + " was updated"}
}

// unchanged returns the last publication of the change. It is zero if there is none, or if the worktree has changed since.
func (l *Landing) unchanged(ctx context.Context) (event.PullRequest, error) {
	pr, ok := l.lastPull()
	if e, _ := l.Journal.Last(event.PullPublished, event.PullMoved); !ok || e.Type == event.PullMoved {
		return event.PullRequest{}, nil
	}
	tip, err := l.Work.Tip(ctx)
	if err != nil {
		return pr, err
	}
	tree, err := l.Work.Tree(ctx)
	if err != nil || tip != pr.Tip || tree != pr.Tree {
		return event.PullRequest{}, err
	}
	return pr, nil
}

// lastPull returns the last publication since the last landing.
func (l *Landing) lastPull() (pr event.PullRequest, ok bool) {
	e, ok := l.Journal.Last(event.PullPublished, event.LandDone)
	if !ok || e.Type == event.LandDone {
		return pr, false
	}
	return event.As[event.PullRequest](e), true
}

// reopens reports whether a person has resumed the session after its branch was deleted on the host: then it is published again.
func (l *Landing) reopens(pr event.PullRequest) bool {
	seen, ok := l.Journal.Last(event.PullSeen)
	resumed, _ := l.Journal.Last(event.SessionResumed)
	return ok && resumed.Seq > seen.Seq && event.As[event.PullState](seen).Detail == branchDeleted(pr)
}

// publish brings the branch up to date, runs the checks on it, and publishes it, unless its tip is still the published one. If pr is zero, the
// result is set, or there was nothing new to publish.
func (l *Landing) publish(ctx context.Context, published string) (pr event.PullRequest, result event.Result, err error) {
	candidate, result, err := l.Work.Prepare(ctx, published)
	if err == nil && result.OK {
		result, err = l.landedBelow(candidate, result)
	}
	if err != nil || result.Error != "" || result.OK || candidate.Tip == published {
		return pr, result, err
	}
	var known []string
	for _, e := range l.Journal.All(event.PullPublished) {
		known = append(known, event.As[event.PullRequest](e).Tip)
	}
	title, _, _ := strings.Cut(l.Work.Message(), "\n")
	pr, err = l.Host.Publish(ctx, candidate, known, title, l.text(candidate))
	if err != nil {
		return event.PullRequest{}, result, err
	}
	return pr, result, l.emit(event.PullPublished, pr)
}

// landedBelow records where a change is that a person merged into the branch on which it was stacked, once the target has everything. Otherwise it returns result.
func (l *Landing) landedBelow(candidate event.Landing, result event.Result) (event.Result, error) {
	pr, ok := l.lastPull()
	if seen, _ := l.Journal.Last(event.PullSeen); !ok || event.As[event.PullState](seen).State != string(forge.Merged) {
		return result, nil
	}
	landing := event.Landing{Target: candidate.Target, Old: pr.Old, New: candidate.Old, Tree: candidate.Tree, Strategy: engine.PullRequest, Tip: pr.Tip}
	return l.landed(landing)
}

// landed records a landing, and returns its result.
func (l *Landing) landed(landing event.Landing) (event.Result, error) {
	return event.Result{OK: true, Commit: landing.New, Tree: landing.Tree, Output: "landed " + landing.New + " on " + landing.Target}, l.emit(event.LandDone, landing)
}

// follow acts on the state of a pull request. again means that the state has changed thereby.
func (l *Landing) follow(ctx context.Context, pr event.PullRequest, state State) (result event.Result, again bool, err error) {
	sent := l.sentComments()
	state.Others = slices.DeleteFunc(slices.Clone(state.Others), func(id string) bool { return sent[id] })
	p := published{pr: pr, State: state, queued: l.queued(state.Head)}
	if err := l.observe(p); err != nil {
		return result, false, err
	}
	switch {
	case p.isMergedBelow() && p.Orphaned == "":
		return result, false, &Wait{Reason: event.WaitMerge, Next: "resume", Detail: p.detail()}
	case state.State == forge.Merged && !p.isMergedBelow():
		result, err = l.mergedUpstream(p)
		return result, false, err
	case p.isOver():
		return event.Result{Error: p.detail(), ErrorType: event.ErrorClosed, Next: p.afterClosing()}, false, nil
	}
	return l.followOpen(ctx, p)
}

// followOpen is follow for an open pull request.
func (l *Landing) followOpen(ctx context.Context, p published) (result event.Result, again bool, err error) {
	pr, state := p.pr, p.State
	if state.Head != "" && state.Head != pr.Tip {
		return result, false, l.waitForHead(p)
	}
	if result, ok, err := l.comments(state); ok || err != nil {
		return result, false, err
	}
	failed, err := l.failedCheck(ctx, p)
	if err != nil || failed.Error != "" {
		return failed, false, err
	}
	if state.Mergeable == forge.Conflict || state.Mergeable == forge.Behind {
		updated, result, err := l.publish(ctx, pr.Tip)
		if err != nil || result.Error != "" || result.OK {
			return result, false, err
		}
		if updated.Tip != "" {
			return result, true, nil
		}
	}
	return l.awaitMerge(ctx, p)
}

// observe records the state of a pull request if it has changed, and warns of checks whose result is not reliable.
func (l *Landing) observe(p published) error {
	now := event.PullState{State: string(p.State.State), Head: p.Head, Detail: p.detail()}
	for _, check := range p.Checks {
		now.Checks = append(now.Checks, event.PullCheck{ID: check.ID, Name: check.Name, Head: p.Head, Status: string(check.Status)})
		if l.isFlaky(p, check) {
			text := "check " + check.Name + " is flaky: it failed and passed on " + short(p.Head)
			if !l.warned(text) {
				if err := l.warn(text); err != nil {
					return err
				}
			}
		}
	}
	last, ok := l.Journal.Last(event.PullSeen)
	if seen := event.As[event.PullState](last); ok && seen.State == now.State && seen.Head == now.Head && seen.Detail == now.Detail && slices.Equal(seen.Checks, now.Checks) {
		return nil
	}
	return l.emit(event.PullSeen, now)
}

// warned reports whether the session has recorded a warning.
func (l *Landing) warned(text string) bool {
	return slices.ContainsFunc(l.Journal.All(event.Warning), func(e event.Event) bool { return event.As[event.Text](e).Text == text })
}

// mergedUpstream records that the pull request was merged.
func (l *Landing) mergedUpstream(p published) (event.Result, error) {
	landing := event.Landing{Target: cmp.Or(p.Target, p.pr.Target), Old: p.pr.Old, New: p.Commit, Tree: p.Tree, Strategy: engine.PullRequest, Tip: p.pr.Tip}
	if !p.Contains {
		landing.Tip = "" // the host merged another branch: what is here stays stored
	}
	if landing.Target != p.pr.Target {
		text := fmt.Sprintf("%s was merged into %s, and not into %s", pullName(p.pr), event.BranchName(landing.Target), event.BranchName(p.pr.Target))
		if err := l.warn(text); err != nil {
			return event.Result{}, err
		}
	}
	if p.Tree != p.pr.Tree {
		text := fmt.Sprintf("%s was merged as %s, whose tree differs from the one that coven checked: %s had other changes, or the branch had", pullName(p.pr), short(p.Commit), p.pr.Base)
		if err := l.warn(text); err != nil {
			return event.Result{}, err
		}
	}
	return l.landed(landing)
}

// waitForHead returns the wait for a branch on the host whose tip coven did not publish last.
func (l *Landing) waitForHead(p published) *Wait {
	for _, e := range l.Journal.All(event.PullPublished) {
		if event.As[event.PullRequest](e).Tip == p.Head {
			return &Wait{Reason: event.WaitCI, Next: "resume", Detail: pullName(p.pr) + ": the host has not seen the last push yet"}
		}
	}
	w := &Wait{Reason: event.WaitMerge, Next: "resume"}
	w.Detail = fmt.Sprintf("%s: %s has a commit that coven did not push (%s)", pullName(p.pr), p.pr.Branch, short(p.Head))
	if !p.Contains {
		w.Detail += ", and no longer has those of coven"
	}
	w.Detail += "; coven does not touch it any more"
	return w
}

// mergePause is how long coven waits before it tries again to merge.
const mergePause = 5 * time.Minute

// awaitMerge merges the pull request if a person has approved that. Otherwise it returns the *Wait for the next change of its state.
func (l *Landing) awaitMerge(ctx context.Context, p published) (result event.Result, again bool, err error) {
	w := p.wait()
	if w.Reason != event.WaitMerge || p.Mergeable != forge.Clean || p.State.State != forge.Open || p.Stacked != "" {
		return result, false, w
	}
	since := p.queued
	if e, ok := l.Journal.Last(event.PullPublished); ok {
		since = max(since, e.Seq)
	}
	approval, approved := l.evidence().Approval(l.Path, since)
	if !approved && (l.Approver == "" || p.queued > 0) { // the merge queue would remove it again
		return result, false, w
	}
	if approval.Message != "" { // the host takes the message of the merge from the pull request
		if err := l.retitle(ctx, p.pr); err != nil {
			return result, false, err
		}
	}
	if err := l.Host.Merge(ctx, p.pr); err != nil {
		w.Detail += "; the host did not merge it: " + oneline.Of(err.Error())
		w.Next, w.Until = "resume", time.Now().Add(mergePause)
		return result, false, w
	}
	return result, true, nil
}

// queued returns the number of the event in which a commit was last in the merge queue of the host, or 0.
func (l *Landing) queued(head string) int64 {
	for _, e := range slices.Backward(l.Journal.All(event.PullSeen)) {
		if seen := event.As[event.PullState](e); seen.State == string(forge.Queued) && seen.Head == head {
			return e.Seq
		}
	}
	return 0
}

// retitle gives a pull request the present message of the change.
func (l *Landing) retitle(ctx context.Context, pr event.PullRequest) error {
	title, _, _ := strings.Cut(l.Work.Message(), "\n")
	same := event.Landing{Target: pr.Target, Old: pr.Old, Tip: pr.Tip, Tree: pr.Tree}
	_, err := l.Host.Publish(ctx, same, []string{pr.Tip}, title, l.text(same))
	return err
}

func (l *Landing) evidence() evidence.Evidence { return evidence.Evidence{Journal: l.Journal} }
