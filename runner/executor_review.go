package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/event/findings"
	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/reviewer"
	"github.com/coven-run/coven/runner/engine"
)

// review runs a review leaf: it calls all reviewers concurrently. An opinion that was recorded before an
// interruption remains valid if the worktree has not changed.
func (x *Executor) review(ctx context.Context, c engine.Call, b leafStart) (event.Result, error) {
	if err := x.undoReviewers(ctx, c, b); err != nil {
		return event.Result{}, err
	}
	change, patch, err := x.Reviewers.Change(ctx)
	if err != nil {
		return event.Result{}, err
	}
	if len(change.Files) == 0 { // warn, because this must not look like a passed review
		const none = "there is no change to review"
		return event.Result{OK: true, Output: none, Tree: change.Tree}, x.warn(c.Path, none)
	}
	if change.Truncated != "" {
		if err := x.warn(c.Path, "reviewers see only part of the change: "+change.Truncated); err != nil {
			return event.Result{}, err
		}
	}
	change.Round = c.Review.Round
	p := &reviewRun{executor: x, call: c, begun: b, patch: patch, change: change, opinions: make([]*event.Opinion, len(c.Review.Reviewers))}
	if err := x.whileUnchanged(ctx, c.Path, change.Tree, p.reviewAll); err != nil {
		return p.incomplete(ctx, err)
	}
	return p.result(), nil
}

// undoReviewers undoes changes that plugins made to the worktree and the branch before coven was killed.
func (x *Executor) undoReviewers(ctx context.Context, c engine.Call, b leafStart) error {
	if !b.cutOff {
		return nil
	}
	if moved, err := x.restoreTip(ctx, c.Path, b.Tip); err != nil {
		return err
	} else if moved != nil {
		if err := x.warn(c.Path, moved.Error()); err != nil {
			return err
		}
	}
	return x.restoreStart(ctx, c.Path, b.Snapshot)
}

// reviewRun is one run of the reviewers of a leaf.
type reviewRun struct {
	executor *Executor
	call     engine.Call
	begun    leafStart
	patch    string // patch ID
	change   reviewer.Change

	mu       sync.Mutex
	opinions []*event.Opinion // in the order of the reviewers; nil if not received
}

// reviewAll calls all reviewers concurrently and returns when each has answered.
func (p *reviewRun) reviewAll(ctx context.Context) error {
	given := p.recorded()
	problems := make([]error, len(p.call.Review.Reviewers))
	var all sync.WaitGroup
	for i, j := range p.call.Review.Reviewers {
		if o, ok := given[j.Name]; ok {
			p.opinions[i] = &o
			continue
		}
		all.Go(func() {
			if err := p.reviewOne(ctx, i, j); err != nil {
				problems[i] = &pluginError{"reviewer " + j.Name, err}
			}
		})
	}
	all.Wait()
	return errors.Join(problems...)
}

// pluginError means that a reviewer or arbiter plugin gave no valid answer.
type pluginError struct {
	who string // empty if err includes it
	err error
}

func (e *pluginError) Error() string {
	if e.who == "" {
		return e.err.Error()
	}
	return e.who + ": " + e.err.Error()
}

func (e *pluginError) Unwrap() error { return e.err }

// recorded returns the opinions on the current tree that were recorded before an interruption, by reviewer.
func (p *reviewRun) recorded() map[string]event.Opinion {
	given := map[string]event.Opinion{}
	for _, e := range p.executor.Journal.At(p.call.Path, event.StepCompleted, event.ReviewGiven) {
		var o event.Opinion
		switch {
		case e.Type == event.StepCompleted: // the leaf runs again on request
			clear(given)
		case e.Decode(&o) == nil && o.Tree == p.change.Tree:
			given[o.Reviewer] = o
		}
	}
	return given
}

// reviewOne calls one reviewer and records its opinion.
func (p *reviewRun) reviewOne(ctx context.Context, i int, j engine.Reviewer) error {
	change := p.change
	change.Options = j.Options
	for _, o := range p.call.Review.Previous {
		if o.Reviewer == j.Name {
			change.Previous = o.Findings
		}
	}
	x := p.executor
	services := x.openServices(ctx, p.call, p.begun, j.Name, p.call.Review.Model)
	review, err := x.Reviewers.Review(ctx, j.Plugin, change, services)
	if err := errors.Join(services.close(), err); err != nil {
		return err
	}
	review, flagged := review.Counted()
	opinion := &event.Opinion{
		Opinion: arbiter.Opinion{Reviewer: j.Name, Verdict: review.Verdict, Findings: review.Findings},
		Tree:    change.Tree, Suggestions: review.Suggestions, Summary: review.Summary, Flagged: flagged, Truncated: change.Truncated,
	}
	p.mu.Lock()
	p.opinions[i] = opinion
	p.mu.Unlock()
	return x.emit(event.ReviewGiven, p.call.Path, opinion)
}

// incomplete returns the result of a review that ended with err. After a timeout, it names the reviewers
// that had not answered.
func (p *reviewRun) incomplete(ctx context.Context, err error) (event.Result, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var missing []string
	for i, j := range p.call.Review.Reviewers {
		if p.opinions[i] == nil {
			missing = append(missing, j.Name)
		}
	}
	result, err := withoutAnswer(ctx, err, "no answer from "+strings.Join(missing, " and "))
	if err == nil {
		result.Opinions = p.received()
	}
	return result, err
}

// withoutAnswer returns the result of a leaf whose plugins gave no answer. late is the description for a
// timeout. A *Wait stays an error.
func withoutAnswer(ctx context.Context, err error, late string) (event.Result, error) {
	over, wait := (*engine.OverTimeError)(nil), (*Wait)(nil)
	switch {
	case isChanged(err):
		return event.Result{}, err
	case errors.As(err, &wait):
		return event.Result{}, wait
	case errors.As(context.Cause(ctx), &over):
		return event.Result{Error: over.Error() + ": " + late, ErrorType: event.ErrorTimeout}, nil
	case ctx.Err() != nil:
		return event.Result{}, context.Cause(ctx)
	case errors.As(err, new(*pluginError)):
		return event.Result{Error: strings.Join(firstLines(err), "; "), ErrorType: event.ErrorPlugin, Output: err.Error()}, nil
	}
	return event.Result{}, err
}

// firstLines returns the first line of each error joined in err. Further lines are output of a plugin.
func firstLines(err error) []string {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []string
		for _, e := range joined.Unwrap() {
			all = append(all, firstLines(e)...)
		}
		return all
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return []string{strings.TrimSuffix(first, "; last output:")}
}

// received returns the opinions received so far.
func (p *reviewRun) received() []event.Opinion {
	var all []event.Opinion
	for _, o := range p.opinions {
		if o != nil {
			all = append(all, *o)
		}
	}
	return all
}

// result returns the result of a complete review.
func (p *reviewRun) result() event.Result {
	r := event.Result{OK: true, Tree: p.change.Tree, Patch: p.patch, Opinions: p.received()}
	for _, o := range r.Opinions {
		r.OK = r.OK && o.Verdict == reviewer.Pass
	}
	r.Output = findings.Text(findings.Opinions(r.Opinions))
	if !r.OK {
		r.Error, r.ErrorType = "the review found "+findings.Counts(findings.Opinions(r.Opinions)), event.ErrorFindings
	}
	return r
}

// arbiter runs an arbiter leaf.
func (x *Executor) arbiter(ctx context.Context, c engine.Call, b leafStart) (event.Result, error) {
	if err := x.undoReviewers(ctx, c, b); err != nil {
		return event.Result{}, err
	}
	tree, err := x.Workspace.Tree(ctx)
	if err != nil {
		return event.Result{}, err
	}
	judge := c.Arbiter.Arbiter
	var decision arbiter.Decision
	err = x.whileUnchanged(ctx, c.Path, tree, func(ctx context.Context) error {
		services := x.openServices(ctx, c, b, judge.Name, c.Arbiter.Model)
		answer, err := x.Reviewers.Decide(ctx, judge.Plugin, c.Arbiter.Question, services)
		if err := errors.Join(services.close(), err); err != nil {
			return &pluginError{"arbiter " + judge.Name, err}
		}
		decision = answer
		return nil
	})
	if err != nil {
		return withoutAnswer(ctx, err, "no answer from "+judge.Name)
	}
	last := c.Arbiter.Question.Round >= c.Arbiter.Question.MaxRounds
	return event.Result{OK: true, Output: decision.Reason, Decided: true, Continue: decision.Continue, LastRound: last, Tree: tree}, nil
}

// whileUnchanged calls ask and verifies that it did not change the worktree or the branch. It undoes such
// changes and returns an error, which discards the plugins' answers.
func (x *Executor) whileUnchanged(ctx context.Context, path, tree string, ask func(ctx context.Context) error) error {
	before, err := x.Workspace.Snapshot(ctx, "before "+path)
	if err != nil {
		return err
	}
	tip, err := x.Workspace.Tip(ctx)
	if err != nil {
		return err
	}
	answered := x.watched(ctx, path, func() error { return ask(ctx) })
	if isChanged(answered) {
		return answered
	}
	ctx = context.WithoutCancel(ctx)
	moved, err := x.restoreTip(ctx, path, tip)
	if err != nil {
		return errors.Join(answered, err)
	}
	now, err := x.Workspace.Tree(ctx)
	if err != nil || now == tree {
		return errors.Join(answered, moved, err)
	}
	files, saved, err := x.revert(ctx, before.Commit, "changed in "+path)
	if err != nil {
		return errors.Join(answered, err)
	}
	return errors.Join(answered, moved, &pluginError{err: fmt.Errorf("reviewer changed the worktree (%s); changes reverted and saved as snapshot %d",
		strings.Join(slices.Sorted(slices.Values(files)), ", "), saved.N)})
}

// restoreTip moves the branch back if a plugin has moved it. moved is the error that reports the move. It
// is nil if the branch has not moved.
func (x *Executor) restoreTip(ctx context.Context, path, tip string) (moved, err error) {
	rescue, err := x.putTipBack(ctx, path, tip)
	if err != nil || rescue == "" {
		return nil, err
	}
	return &pluginError{err: errors.New("reviewer moved the branch; it was restored, and its commits are saved as " + rescue)}, nil
}

// putTipBack moves the branch back to tip if it has moved. It returns the ref of the commits that were there, or "".
func (x *Executor) putTipBack(ctx context.Context, path, tip string) (rescue string, err error) {
	now, err := x.Workspace.Tip(ctx)
	if err != nil || now == tip {
		return "", err
	}
	return x.Workspace.PutTip(ctx, tip, "moved in "+path)
}
