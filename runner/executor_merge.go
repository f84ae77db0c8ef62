package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/event/findings"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/runner/engine"
	"github.com/coven-run/coven/runner/evidence"
	"github.com/coven-run/coven/runner/workclock"
)

// merge runs a merge leaf: it merges the target into the branch, runs the checks on the resulting tree,
// waits for approval, and lands.
func (x *Executor) merge(ctx context.Context, c engine.Call) (event.Result, error) {
	if snapshot := x.beforeCheck(c.Path); snapshot != "" {
		if err := x.Workspace.Restore(ctx, snapshot); err != nil {
			return event.Result{}, err
		}
	}
	if landing, ok, err := x.recoverLanding(ctx, c.Path); ok || err != nil {
		return landed(landing, c), err
	}
	if result, ok, err := x.answered(ctx, c); ok || err != nil {
		return result, err
	}
	if c.Merge.Strategy == engine.PullRequest {
		return x.pull(ctx, c)
	}
	turn, elsewhere, err := x.turn(ctx, c)
	switch {
	case err != nil:
		return event.Result{}, err
	case elsewhere != nil:
		return landed(elsewhere.landing, c), elsewhere.err
	}
	defer turn.Release()
	for {
		landing, result, err := x.attempt(ctx, c, turn)
		if errors.Is(err, ErrMoved) {
			continue
		}
		if result, err = failure(result, err); err != nil || result.Error != "" || result.OK {
			return result, err
		}
		return landed(landing, c), x.emit(event.LandDone, c.Path, landing)
	}
}

// failure converts the expected errors of a landing to results.
func failure(result event.Result, err error) (event.Result, error) {
	conflict, refused := (*ConflictError)(nil), (*RefusedError)(nil)
	switch {
	case errors.As(err, &refused):
		return event.Result{Error: refused.Reason, ErrorType: event.ErrorRefused, Output: refused.Output, Next: refused.Next}, nil
	case errors.As(err, &conflict):
		return event.Result{Error: conflict.Error(), ErrorType: event.ErrorConflict, Files: conflict.Files}, nil
	}
	return result, err
}

// answered returns the result of a merge leaf at which a person has asked for changes, or has written a
// message. Otherwise ok is false.
func (x *Executor) answered(ctx context.Context, c engine.Call) (result event.Result, ok bool, err error) {
	result, ok, err = x.revision(c.Path)
	if ok || err != nil || !c.Merge.Chat {
		return result, ok, err
	}
	return x.chatReply(ctx, c)
}

// turn waits until no other session lands on the target, or until another session has landed the change
// together with its own. While it waits, the clocks of the step and the run are paused.
func (x *Executor) turn(ctx context.Context, c engine.Call) (*Turn, *landedOutcome, error) {
	resume := workclock.Pause(ctx)
	defer resume()
	s := x.Batch.join(ctx, x, c)
	defer x.Batch.leave(s)
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	type result struct {
		turn Turn
		err  error
	}
	came := make(chan result, 1)
	go func() {
		turn, err := x.Landing.Turn(waiting)
		came <- result{turn, err}
	}()
	for {
		select {
		case r := <-came:
			r.turn.alone = x.Batch.isAlone(s)
			return &r.turn, nil, r.err
		case work := <-s.calls:
			work()
		}
		if s.landed == nil {
			continue
		}
		stop()
		if r := <-came; r.err == nil {
			r.turn.Release()
		}
		return nil, s.landed, nil
	}
}

// attempt tries to land once. The change has landed if there is no error and the result is neither a
// failure nor a success without a change.
func (x *Executor) attempt(ctx context.Context, c engine.Call, turn *Turn) (event.Landing, event.Result, error) {
	turn.Doing("brings its branch up to date")
	candidate, err := x.integrate(ctx, c)
	if err != nil {
		return event.Landing{}, event.Result{}, err
	}
	if candidate.Patch == "" {
		return event.Landing{}, nothingToLand(c), nil
	}
	if b := x.gather(ctx, c, candidate, turn); b != nil {
		if result, done, err := b.run(ctx); done {
			return event.Landing{}, result, err
		}
	}
	turn.Doing("runs its checks")
	if failed, err := x.runChecks(ctx, c, candidate); err != nil || failed.Error != "" {
		return event.Landing{}, failed, err
	}
	if err := x.approval(ctx, c, candidate); err != nil {
		return event.Landing{}, event.Result{}, err
	}
	candidate.Strategy = c.Merge.Strategy
	turn.Doing("lands")
	all, err := x.Landing.Land(ctx, []Change{{
		Of: x.Landing, Candidate: candidate, Message: x.landingMessage(c),
		Intent: func(l event.Landing) error { return x.emit(event.LandIntended, c.Path, l) },
	}})
	if err != nil {
		return event.Landing{}, event.Result{}, err
	}
	return all[0], event.Result{}, nil
}

// integrate merges the target into the branch, and records this.
func (x *Executor) integrate(ctx context.Context, c engine.Call) (event.Landing, error) {
	candidate, err := x.Landing.Integrate(ctx)
	if err != nil || candidate.Patch == "" {
		return candidate, err
	}
	if candidate.Dropped != "" {
		if err := x.warn(c.Path, fmt.Sprintf("%s no longer contains %s, from which the task started: not part of the change", event.BranchName(candidate.Target), candidate.Dropped)); err != nil {
			return candidate, err
		}
	}
	if candidate.From != candidate.Tree {
		err = x.emit(event.MergeDone, c.Path, event.Integrated{From: candidate.From, Tree: candidate.Tree})
	}
	return candidate, err
}

func nothingToLand(c engine.Call) event.Result {
	return event.Result{OK: true, Summary: c.Merge.Summary, Output: "nothing to land"}
}

// landingMessage returns the message of the commit that lands: the one with which a person approved it, or that of the step.
func (x *Executor) landingMessage(c engine.Call) string {
	approved, _ := x.evidence().Approval(c.Path, 0)
	return cmp.Or(approved.Message, c.Merge.Message, message(x.Title, c.Merge.Summary))
}

// recoverLanding completes or undoes a landing that was interrupted after its intent was recorded. ok
// reports whether the change has landed.
func (x *Executor) recoverLanding(ctx context.Context, path string) (landing event.Landing, ok bool, err error) {
	last, found := x.Journal.lastAt(path, event.LandIntended, event.LandDone)
	if !found {
		return landing, false, nil
	}
	if err := last.Decode(&landing); err != nil {
		return landing, false, err
	}
	if last.Type == event.LandDone {
		return landing, true, nil
	}
	ok, err = x.Landing.Recover(ctx, landing)
	if err != nil || !ok {
		return landing, false, err
	}
	return landing, true, x.emit(event.LandDone, path, landing)
}

// runChecks runs the checks on the candidate's tree, unless they have already passed on it.
func (x *Executor) runChecks(ctx context.Context, c engine.Call, candidate event.Landing) (event.Result, error) {
	if x.isProven(c, candidate) {
		return event.Result{}, nil
	}
	result, err := x.checksAndBase(ctx, c.Path, c.Merge.Checks)
	switch {
	case err != nil || result.Error != "":
		return result, err
	case !evidence.Proven(c.Merge.Checks, result.Receipts, candidate.Tree):
		return event.Result{Error: "the worktree changed while the checks ran: they do not cover what would land", ErrorType: event.ErrorInternal}, nil
	}
	return event.Result{}, nil
}

// isProven reports whether the checks have passed on the candidate's tree.
func (x *Executor) isProven(c engine.Call, candidate event.Landing) bool {
	return x.evidence().Proves(c.Merge.Checks, candidate.Tree, c.Path, c.Merge.Receipts)
}

func (x *Executor) evidence() evidence.Evidence { return evidence.Evidence{Journal: x.Journal} }

// approval returns nil if the candidate is approved or needs no approval. Otherwise it records the question
// and returns a *Wait.
func (x *Executor) approval(ctx context.Context, c engine.Call, candidate event.Landing) error {
	d, err := x.decide(ctx, c, candidate)
	if err == nil && d.answer != nil {
		err = x.emit(event.ReviewAnswered, c.Path, d.answer)
	}
	if err == nil && d.question != nil {
		err = x.emit(event.ReviewAsked, c.Path, d.question)
	}
	if err != nil || d.wait == nil {
		return err
	}
	return x.pushed(ctx, c, d.wait)
}

// decision is the decision about the landing of a candidate.
type decision struct {
	answer   *event.MergeDecision // an automatic approval to record
	question *event.MergeDecision // a question to a person to record
	wait     *Wait                // nil if the candidate may land
}

// decide decides whether a candidate may land. A person must approve a change that reviewers have not seen
// in this form, that has open error findings or many new files, during which files of the repository changed, or that is to
// be pushed.
func (x *Executor) decide(ctx context.Context, c engine.Call, candidate event.Landing) (decision, error) {
	open, err := x.Journal.openFindings()
	if err != nil {
		return decision{}, err
	}
	unseen := slices.ContainsFunc(c.Merge.Reviewed, func(tree string) bool { return !x.evidence().Reaches(tree, candidate) })
	changed, since := x.evidence().Holding()
	since = max(since, x.evidence().RenewedAt())
	dropped := x.evidence().BuiltOn()
	byPerson := unseen || len(open) > 0 || changed != "" || candidate.Many != "" || dropped != ""
	if !c.Merge.RequireReview && !byPerson {
		return decision{}, nil
	}
	asked, approved := x.evidence().Asked(c.Path, candidate, since)
	if approved && len(open) == 0 {
		return decision{}, nil
	}
	question := event.MergeDecision{Patch: candidate.Patch, Tree: candidate.Tree}
	if x.Approve != "" && !byPerson && !c.Merge.Push {
		question.Approved, question.By = true, x.Approve
		return decision{answer: &question}, nil
	}
	edited, err := x.edited(ctx, c.Path, since, asked, candidate)
	if err != nil {
		return decision{}, err
	}
	d := decision{wait: reviewWait(open, unseen, edited, changed, dropped, candidate.Many)}
	if !asked {
		if c.Merge.Strategy != "rebase" { // rebased commits keep their messages
			question.Message = x.landingMessage(c)
		}
		d.question = &question
	}
	return d, nil
}

// pushed returns the wait w. If the step is for pushing, the change is ready and there is a remote, w
// contains the command that pushes the branch.
func (x *Executor) pushed(ctx context.Context, c engine.Call, w *Wait) error {
	if !c.Merge.Push || w.Detail != forApproval {
		return w
	}
	command, err := x.Landing.PushCommand(ctx)
	if err != nil {
		return err
	}
	if command != "" {
		w.Command, w.Detail = command, forPush
	}
	return w
}

const forApproval, forPush = "the change is ready for approval", "the change is ready to push" // details of a *Wait

// reviewWait returns the wait for a person's approval, with its reasons and the command. changed describes
// changes of the repository, dropped names commits that the target no longer contains, and many describes many new files. They
// may be empty. edited says that a person has approved another change.
func reviewWait(open []event.Finding, unseen bool, edited, changed, dropped, many string) *Wait {
	w := &Wait{Reason: event.WaitReview, Next: "approve"}
	var why []string
	if changed != "" {
		why = append(why, changed)
	}
	if dropped != "" {
		why = append(why, "the change was built on "+dropped+", no longer on the target, and was adapted: it needs approval")
	}
	if unseen {
		why = append(why, "the change is not what the reviewers saw and needs approval")
	}
	if many != "" {
		why = append(why, many+" and needs approval")
	}
	if len(open) > 0 {
		why, w.Next = append(why, findings.Summary(open)), "review"
	}
	if edited != "" && len(why) == 0 {
		why = append(why, edited)
	}
	w.Detail = cmp.Or(strings.Join(why, "; "), forApproval)
	return w
}

// edited says that a person has approved another change than the candidate, and in which files they differ. It returns "" if
// no person has approved one, or if the person was asked about the candidate. It ignores events before the event number since.
func (x *Executor) edited(ctx context.Context, path string, since int64, asked bool, candidate event.Landing) (string, error) {
	approved, ok := x.evidence().Approval(path, since)
	if !ok || asked {
		return "", nil
	}
	where := ""
	if approved.Tree != "" {
		files, err := x.Workspace.Changed(ctx, approved.Tree, cmp.Or(candidate.From, candidate.Tree))
		if err != nil {
			return "", err
		}
		if len(files) > 0 {
			where = " in " + oneline.List(files)
		}
	}
	return "the change was edited" + where + " after it was shown for approval, and needs approval", nil
}

// landed returns the result of a merge leaf that has landed.
func landed(l event.Landing, c engine.Call) event.Result {
	return event.Result{OK: true, Commit: l.New, Tree: l.Tree, Summary: c.Merge.Summary, Output: "landed " + l.New + " on " + l.Target}
}

// message returns a commit message with the title and the summary.
func message(title, summary string) string {
	if summary == "" || summary == title {
		return title
	}
	return title + "\n\n" + summary
}
