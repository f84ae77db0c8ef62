package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/plugins/forge"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/runner/engine"
)

// pull runs a merge leaf with the strategy pull-request: it publishes the change, and acts on the state of its pull request. The
// leaf ends when the pull request is merged, or needs an agent or a person. Until then it returns a *Wait.
func (x *Executor) pull(ctx context.Context, c engine.Call) (event.Result, error) {
	pr, err := x.published(ctx)
	if err != nil {
		return event.Result{}, err
	}
	if pr.Tip == "" || x.reopens(c, pr) {
		if pr, result, err := x.publish(ctx, c); err != nil || pr.Tip == "" {
			return failure(result, err)
		}
	}
	for range 3 { // publishing or merging changes the state
		state, err := x.Pulls.State(ctx, pr)
		if err != nil {
			return event.Result{}, err
		}
		result, again, err := x.follow(ctx, c, pr, state)
		if err != nil || !again {
			return result, err
		}
	}
	return event.Result{}, &Wait{Reason: event.WaitMerge, Next: "resume", Detail: pullName(pr) + " was updated"}
}

// published returns the last publication of the change. It is zero if there is none, or if the worktree has changed since.
func (x *Executor) published(ctx context.Context) (event.PullRequest, error) {
	pr, ok := x.lastPull()
	if !ok {
		return pr, nil
	}
	tip, err := x.Workspace.Tip(ctx)
	if err != nil {
		return pr, err
	}
	tree, err := x.Workspace.Tree(ctx)
	if err != nil || tip != pr.Tip || tree != pr.Tree {
		return event.PullRequest{}, err
	}
	return pr, nil
}

// lastPull returns the last publication since the last landing.
func (x *Executor) lastPull() (pr event.PullRequest, ok bool) {
	e, ok := x.Journal.last(event.PullPublished, event.LandDone)
	if !ok || e.Type == event.LandDone {
		return pr, false
	}
	return event.As[event.PullRequest](e), true
}

// reopens reports whether a person has resumed the session after its branch was deleted on the host: then it is published again.
func (x *Executor) reopens(c engine.Call, pr event.PullRequest) bool {
	seen, ok := x.Journal.last(event.PullSeen)
	resumed, _ := x.Journal.last(event.SessionResumed)
	return ok && resumed.Seq > seen.Seq && event.As[event.PullState](seen).Detail == branchDeleted(pr)
}

// publish brings the branch up to date, runs the checks on it, and publishes it. The result is set if pr is zero.
func (x *Executor) publish(ctx context.Context, c engine.Call) (pr event.PullRequest, result event.Result, err error) {
	candidate, err := x.integrate(ctx, c)
	if err != nil {
		return pr, result, err
	}
	if candidate.Patch == "" {
		return pr, nothingToLand(c), nil
	}
	if result, err = x.runChecks(ctx, c, candidate); err != nil || result.Error != "" {
		return pr, result, err
	}
	// The merge on the host is a person's approval. But open errors and other surprises are not published without one.
	unreviewed := *c.Merge
	unreviewed.RequireReview, unreviewed.Reviewed = false, nil
	ask := c
	ask.Merge = &unreviewed
	if err := x.approval(ctx, ask, candidate); err != nil {
		return pr, result, err
	}
	var known []string
	for _, e := range x.Journal.All(event.PullPublished) {
		known = append(known, event.As[event.PullRequest](e).Tip)
	}
	title, _, _ := strings.Cut(x.landingMessage(c), "\n")
	pr, err = x.Pulls.Publish(ctx, candidate, known, title, x.pullText(c, candidate))
	if err != nil {
		return event.PullRequest{}, result, err
	}
	if err := x.emit(event.PullPublished, c.Path, pr); err != nil {
		return pr, result, err
	}
	return pr, result, x.answerComments(ctx, c, pr)
}

// follow acts on the state of a pull request. again means that the state has changed thereby.
func (x *Executor) follow(ctx context.Context, c engine.Call, pr event.PullRequest, state Pull) (result event.Result, again bool, err error) {
	p := pullState{pr: pr, Pull: state}
	if err := x.observe(c, p); err != nil {
		return result, false, err
	}
	switch state.State {
	case forge.Merged:
		result, err = x.mergedUpstream(c, p)
		return result, false, err
	case forge.Closed, forge.Gone:
		return event.Result{Error: p.detail(), ErrorType: event.ErrorClosed, Next: p.afterClosing()}, false, nil
	}
	if state.Head != "" && state.Head != pr.Tip {
		return result, false, x.waitForHead(p)
	}
	if result, ok, err := x.comments(c, state); ok || err != nil {
		return result, false, err
	}
	failed, err := x.failedCheck(ctx, c, p)
	if err != nil || failed.Error != "" {
		return failed, false, err
	}
	if state.Mergeable == forge.Conflict || state.Mergeable == forge.Behind {
		before := pr.Tip
		updated, result, err := x.publish(ctx, c)
		result, err = failure(result, err)
		if err != nil || result.Error != "" || result.OK {
			return result, false, err
		}
		if updated.Tip != before {
			return result, true, nil
		}
	}
	return x.awaitMerge(ctx, c, p)
}

// observe records the state of a pull request if it has changed, and warns of checks whose result is not reliable.
func (x *Executor) observe(c engine.Call, p pullState) error {
	now := event.PullState{State: string(p.State), Head: p.Head, Detail: p.detail()}
	for _, check := range p.Checks {
		now.Checks = append(now.Checks, event.PullCheck{Name: check.Name, Head: p.Head, Status: string(check.Status)})
		if check.Status == forge.Passed && x.sawFailed(check.Name, p.Head) {
			text := "check " + check.Name + " is flaky: it failed and passed on " + short(p.Head)
			if !x.warned(text) {
				if err := x.warn(c.Path, text); err != nil {
					return err
				}
			}
		}
	}
	last, ok := x.Journal.last(event.PullSeen)
	if seen := event.As[event.PullState](last); ok && seen.State == now.State && seen.Head == now.Head && seen.Detail == now.Detail && slices.Equal(seen.Checks, now.Checks) {
		return nil
	}
	return x.emit(event.PullSeen, c.Path, now)
}

// warned reports whether the session has recorded a warning.
func (x *Executor) warned(text string) bool {
	return slices.ContainsFunc(x.Journal.All(event.Warning), func(e event.Event) bool { return event.As[event.Text](e).Text == text })
}

// sawFailed reports whether a check was seen to fail on a commit.
func (x *Executor) sawFailed(name, head string) bool {
	failed := event.PullCheck{Name: name, Head: head, Status: string(forge.Failed)}
	return slices.ContainsFunc(x.Journal.All(event.PullSeen), func(e event.Event) bool {
		return slices.Contains(event.As[event.PullState](e).Checks, failed)
	})
}

// mergedUpstream records that the pull request was merged.
func (x *Executor) mergedUpstream(c engine.Call, p pullState) (event.Result, error) {
	landing := event.Landing{Target: p.pr.Target(), Old: p.pr.Old, New: p.Commit, Tree: p.Tree, Strategy: engine.PullRequest, Tip: p.pr.Tip}
	if !p.Contains {
		landing.Tip = "" // the host merged another branch: what is here stays stored
	}
	if p.Tree != p.pr.Tree {
		text := fmt.Sprintf("%s was merged as %s, whose tree differs from the one that coven checked: %s had other changes, or the branch had", pullName(p.pr), short(p.Commit), p.pr.Base)
		if err := x.warn(c.Path, text); err != nil {
			return event.Result{}, err
		}
	}
	return landed(landing, c), x.emit(event.LandDone, c.Path, landing)
}

// waitForHead returns the wait for a branch on the host whose tip coven did not publish last.
func (x *Executor) waitForHead(p pullState) *Wait {
	for _, e := range x.Journal.All(event.PullPublished) {
		if event.As[event.PullRequest](e).Tip == p.Head {
			return &Wait{Reason: event.WaitCI, Next: "resume", Detail: pullName(p.pr) + ": the host has not seen the last push yet"}
		}
	}
	w := &Wait{Reason: event.WaitMerge, Next: "resume"}
	w.Detail = fmt.Sprintf("%s: somebody else pushed %s to %s", pullName(p.pr), short(p.Head), p.pr.Branch)
	if !p.Contains {
		w.Detail += " and removed commits of coven from it"
	}
	w.Detail += "; coven leaves that branch alone"
	return w
}

// comments returns the result that asks the agent for the changes that comments on the pull request request. ok is false if there are none.
func (x *Executor) comments(c engine.Call, state Pull) (result event.Result, ok bool, err error) {
	answer := event.MergeDecision{Tree: ""}
	var authors []string
	known := x.sentComments()
	for _, comment := range state.Comments {
		if known[comment.Remote] {
			continue
		}
		answer.Changes = append(answer.Changes, comment.Finding)
		answer.Remote = append(answer.Remote, comment.Remote)
		answer.Comments = append(answer.Comments, comment.ID)
		if !slices.Contains(authors, comment.By) {
			authors = append(authors, comment.By)
		}
	}
	if len(answer.Changes) == 0 {
		return result, false, nil
	}
	answer.By = strings.Join(authors, ", ")
	if err := x.emit(event.ReviewAnswered, c.Path, answer); err != nil {
		return result, false, err
	}
	return x.revision(c.Path)
}

// sentComments returns the IDs of the comments on the host that the agent has got.
func (x *Executor) sentComments() map[string]bool {
	known := map[string]bool{}
	for _, e := range x.Journal.All(event.ReviewAnswered) {
		for _, id := range event.As[event.MergeDecision](e).Remote {
			known[id] = true
		}
	}
	return known
}

// answerComments answers the comments that led to a publication, once each.
func (x *Executor) answerComments(ctx context.Context, c engine.Call, pr event.PullRequest) error {
	answered := map[string]bool{}
	for _, e := range x.Journal.All(event.PullAnswered) {
		answered[event.As[event.PullAnswer](e).Comment] = true
	}
	for _, e := range x.Journal.All(event.ReviewAnswered) {
		decision := event.As[event.MergeDecision](e)
		for i, id := range decision.Remote {
			if answered[id] {
				continue
			}
			answer := event.PullAnswer{Comment: id, Text: x.answerTo(e, decision, i, pr)}
			if err := x.Pulls.Reply(ctx, pr, id, answer.Text); err != nil {
				if err := x.warn(c.Path, "a comment on "+pullName(pr)+" is not answered: "+oneline.Of(err.Error())); err != nil {
					return err
				}
				continue
			}
			if err := x.emit(event.PullAnswered, c.Path, answer); err != nil {
				return err
			}
		}
	}
	return nil
}

// failedCheck returns the result for a check that has failed. Its first failure on a commit runs it again, because coven's own checks
// have passed there.
func (x *Executor) failedCheck(ctx context.Context, c engine.Call, p pullState) (event.Result, error) {
	failed := p.failed()
	if len(failed) == 0 {
		return event.Result{}, nil
	}
	for _, check := range failed {
		rerun := event.PullCheck{Name: check.Name, Head: p.Head, Status: string(forge.Failed)}
		if slices.ContainsFunc(x.Journal.All(event.PullRerun), func(e event.Event) bool { return event.As[event.PullCheck](e) == rerun }) {
			continue
		}
		if err := x.emit(event.PullRerun, c.Path, rerun); err != nil { // first: it must not run again and again
			return event.Result{}, err
		}
		switch err := x.Pulls.Rerun(ctx, check); {
		case err == nil:
			return event.Result{}, &Wait{Reason: event.WaitCI, Next: "resume", Detail: pullName(p.pr) + ": " + check.Name + " failed and runs again, to see whether it is flaky"}
		case !errors.Is(err, pluginerr.ErrUnsupported):
			if err := x.warn(c.Path, check.Name+" does not run again: "+oneline.Of(err.Error())); err != nil {
				return event.Result{}, err
			}
		}
	}
	if p.pending() > 0 {
		return event.Result{}, nil // others may fail, too, and are fixed together
	}
	result := event.Result{ErrorType: event.ErrorCI}
	var names []string
	for _, check := range failed {
		names = append(names, check.Name)
		log, err := x.Pulls.Log(ctx, check)
		if err != nil {
			log = "Its log could not be read: " + oneline.Of(err.Error())
		}
		result.Output += fmt.Sprintf("%s failed on the host of the pull request. %s\n%s\n", check.Name, check.Summary, strings.TrimSpace(log))
	}
	since, err := x.sinceGreen(ctx, p)
	result.Output += since
	result.Error = fmt.Sprintf("%s: %s failed on %s", pullName(p.pr), strings.Join(names, ", "), short(p.Head))
	return result, err
}

// sinceGreen names the files that have changed since the last commit on which all checks passed on the host.
func (x *Executor) sinceGreen(ctx context.Context, p pullState) (string, error) {
	green := ""
	for _, e := range x.Journal.All(event.PullSeen) {
		seen := event.As[event.PullState](e)
		if len(seen.Checks) > 0 && !slices.ContainsFunc(seen.Checks, func(c event.PullCheck) bool { return c.Status != string(forge.Passed) }) {
			green = seen.Head
		}
	}
	if green == "" || green == p.Head {
		return "", nil
	}
	files, err := x.Workspace.Changed(ctx, green, p.Head)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("All checks passed on %s. Changed since then: %s\n", short(green), oneline.List(files)), nil
}

// awaitMerge merges the pull request if a person has approved that. Otherwise it returns the *Wait for the next change of its state.
func (x *Executor) awaitMerge(ctx context.Context, c engine.Call, p pullState) (result event.Result, again bool, err error) {
	w := p.wait()
	if w.Reason != event.WaitMerge || p.Mergeable != forge.Clean || p.State != forge.Open {
		return result, false, w
	}
	since := int64(0)
	if e, ok := x.Journal.last(event.PullPublished); ok {
		since = e.Seq
	}
	if _, approved := x.evidence().Approval(c.Path, since); !approved && x.Approve == "" {
		return result, false, w
	}
	if err := x.Pulls.Merge(ctx, p.pr); err != nil {
		w.Detail += "; the host did not merge it: " + oneline.Of(err.Error())
		w.Next = "resume"
		return result, false, w
	}
	return result, true, nil
}

// answerTo returns the answer to the i-th comment of a decision: the agent's own, or the summary of its work.
func (x *Executor) answerTo(asked event.Event, decision event.MergeDecision, i int, pr event.PullRequest) string {
	text := ""
	for _, e := range x.Journal.All(event.StepCompleted) {
		result := event.As[event.Result](e)
		if e.Seq < asked.Seq || !event.IsRevise(e.Path) {
			continue
		}
		answers, _ := result.Outputs["answers"].(map[string]any)
		if own, ok := answers[decision.Comments[i]].(string); ok {
			text = own
		} else if text == "" {
			text = result.Summary
		}
	}
	return strings.TrimSpace(text + "\n\nThe branch is now at " + short(pr.Tip) + ".")
}
