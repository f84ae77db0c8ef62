package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/reviewer"
)

// judges are the plugins that judge changes.
type judges interface {
	// Change is what the worktree changes now, and its patch id. Its texts are cut to
	// what a plugin takes, and say so.
	Change(ctx context.Context) (change reviewer.Change, patch string, err error)
	Review(ctx context.Context, plugin string, change reviewer.Change, desk *Desk) (reviewer.Review, error)
	Decide(ctx context.Context, plugin string, question arbiter.Question, desk *Desk) (arbiter.Decision, error)
}

// review does a review leaf: all reviewers at once. What one has said before the
// leaf was cut off stands as long as the worktree is the same.
func (w *Workshop) review(ctx context.Context, c Call, b beginning) (Result, error) {
	if err := w.undoJudges(ctx, c, b); err != nil {
		return Result{}, err
	}
	change, patch, err := w.Judges.Change(ctx)
	if err != nil {
		return Result{}, err
	}
	if len(change.Files) == 0 { // nobody may take that for a review that passed
		const none = "there is no change to review"
		return Result{OK: true, Output: none, Tree: change.Tree}, w.warn(c.Path, none)
	}
	if change.Truncated != "" {
		if err := w.warn(c.Path, "reviewers are not shown all of the change: "+change.Truncated); err != nil {
			return Result{}, err
		}
	}
	change.Round = c.Review.Round
	p := &panel{workshop: w, call: c, begun: b, patch: patch, change: change, opinions: make([]*event.Opinion, len(c.Review.Reviewers))}
	if err := w.untouched(ctx, c.Path, change.Tree, p.sit); err != nil {
		return p.broken(ctx, err)
	}
	return p.result(), nil
}

// undoJudges undoes what a judge did to worktree and branch whose coven was
// killed.
func (w *Workshop) undoJudges(ctx context.Context, c Call, b beginning) error {
	if !b.cutOff {
		return nil
	}
	if moved, err := w.moved(ctx, c.Path, b.Tip); err != nil {
		return err
	} else if moved != nil {
		if err := w.warn(c.Path, moved.Error()); err != nil {
			return err
		}
	}
	return w.putBack(ctx, c.Path, b.Snapshot)
}

// panel is the reviewers of one review leaf at work.
type panel struct {
	workshop *Workshop
	call     Call
	begun    beginning
	patch    string // patch id
	change   reviewer.Change

	mu       sync.Mutex
	opinions []*event.Opinion // in the order of the reviewers; nil: none yet
}

// sit has every reviewer judge the change and returns when all have ended.
func (p *panel) sit(ctx context.Context) error {
	given := p.onRecord()
	problems := make([]error, len(p.call.Review.Reviewers))
	var all sync.WaitGroup
	for i, j := range p.call.Review.Reviewers {
		if o, ok := given[j.Name]; ok {
			p.opinions[i] = &o
			continue
		}
		all.Go(func() {
			if err := p.hear(ctx, i, j); err != nil {
				problems[i] = &judgeError{"reviewer " + j.Name, err}
			}
		})
	}
	all.Wait()
	return errors.Join(problems...)
}

// judgeError says that a plugin could not judge.
type judgeError struct {
	who string
	err error
}

func (e *judgeError) Error() string { return e.who + ": " + e.err.Error() }
func (e *judgeError) Unwrap() error { return e.err }

// onRecord are the opinions on this very worktree that are on record from before the
// leaf was cut off.
func (p *panel) onRecord() map[string]event.Opinion {
	given := map[string]event.Opinion{}
	for _, e := range p.workshop.remembered() {
		var o event.Opinion
		switch {
		case e.Path != p.call.Path:
		case e.Type == event.StepCompleted: // and a person wants it again
			clear(given)
		case e.Type == event.ReviewGiven && e.Decode(&o) == nil && o.Tree == p.change.Tree:
			given[o.Reviewer] = o
		}
	}
	return given
}

// hear asks one reviewer and puts what it says on record.
func (p *panel) hear(ctx context.Context, i int, j Judging) error {
	change := p.change
	change.Options = j.Options
	for _, o := range p.call.Review.Previous {
		if o.Reviewer == j.Name {
			change.Previous = o.Findings
		}
	}
	w := p.workshop
	desk := w.openDesk(ctx, p.call, p.begun, j.Name, p.call.Review.Model)
	review, err := w.Judges.Review(ctx, j.Plugin, change, desk)
	if err := errors.Join(desk.close(), err); err != nil {
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
	return w.emit(event.ReviewGiven, p.call.Path, opinion)
}

// broken is the result of a review that came to no end: what ended it, and who
// was still at work when its time was up.
func (p *panel) broken(ctx context.Context, err error) (Result, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var missing []string
	for i, j := range p.call.Review.Reviewers {
		if p.opinions[i] == nil {
			missing = append(missing, j.Name)
		}
	}
	result, err := unjudged(ctx, err, "no answer from "+strings.Join(missing, " and "))
	if err == nil {
		result.Opinions = p.heard()
	}
	return result, err
}

// unjudged is the result of a leaf whose plugins did not judge. What the run has
// to wait for is an error, not a result.
func unjudged(ctx context.Context, err error, late string) (Result, error) {
	over, wait := (*OverTimeError)(nil), (*Wait)(nil)
	switch {
	case errors.As(err, &wait):
		return Result{}, wait
	case errors.As(context.Cause(ctx), &over):
		return Result{Error: over.Error() + ": " + late, ErrorType: "timeout"}, nil
	case ctx.Err() != nil:
		return Result{}, context.Cause(ctx)
	case errors.As(err, new(*judgeError)):
		return Result{Error: strings.Join(briefly(err), "; "), ErrorType: PluginType, Output: err.Error()}, nil
	}
	return Result{}, err
}

// briefly is the first line of each error that is joined in err: what a plugin has
// printed comes in the lines after.
func briefly(err error) []string {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []string
		for _, e := range joined.Unwrap() {
			all = append(all, briefly(e)...)
		}
		return all
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return []string{strings.TrimSuffix(first, "; last output:")}
}

// heard are the opinions that there are so far.
func (p *panel) heard() []event.Opinion {
	var all []event.Opinion
	for _, o := range p.opinions {
		if o != nil {
			all = append(all, *o)
		}
	}
	return all
}

// result is what the review comes to.
func (p *panel) result() Result {
	r := Result{OK: true, Tree: p.change.Tree, Patch: p.patch, Opinions: p.heard()}
	for _, o := range r.Opinions {
		r.OK = r.OK && o.Verdict == reviewer.Pass
	}
	r.Output = FindingsText(Judged(r.Opinions))
	if !r.OK {
		r.Error, r.ErrorType = "the review found "+Tally(Judged(r.Opinions)), FindingsType
	}
	return r
}

// Judged is what reviewers said, as arbiters see it.
func Judged(opinions []event.Opinion) []arbiter.Opinion {
	all := make([]arbiter.Opinion, len(opinions))
	for i, o := range opinions {
		all[i] = o.Opinion
	}
	return all
}

// arbiter does an arbiter leaf.
func (w *Workshop) arbiter(ctx context.Context, c Call, b beginning) (Result, error) {
	if err := w.undoJudges(ctx, c, b); err != nil {
		return Result{}, err
	}
	tree, err := w.Branch.Tree(ctx)
	if err != nil {
		return Result{}, err
	}
	judge := c.Arbiter.Arbiter
	var decision arbiter.Decision
	err = w.untouched(ctx, c.Path, tree, func(ctx context.Context) error {
		desk := w.openDesk(ctx, c, b, judge.Name, c.Arbiter.Model)
		answer, err := w.Judges.Decide(ctx, judge.Plugin, c.Arbiter.Question, desk)
		if err := errors.Join(desk.close(), err); err != nil {
			return &judgeError{"arbiter " + judge.Name, err}
		}
		decision = answer
		return nil
	})
	if err != nil {
		return unjudged(ctx, err, "no answer from "+judge.Name)
	}
	return Result{OK: true, Output: decision.Reason, Decided: true, Continue: decision.Continue, Tree: tree}, nil
}

// untouched lets plugins judge, and sees that worktree and branch are the same
// afterwards. What they changed is undone, and what they said then does not count.
func (w *Workshop) untouched(ctx context.Context, path, tree string, judge func(ctx context.Context) error) error {
	before, err := w.Stage.Snapshot(ctx, "before "+path)
	if err != nil {
		return err
	}
	tip, err := w.Branch.Tip(ctx)
	if err != nil {
		return err
	}
	judged := judge(ctx)
	ctx = context.WithoutCancel(ctx)
	moved, err := w.moved(ctx, path, tip)
	if err != nil {
		return errors.Join(judged, err)
	}
	now, err := w.Branch.Tree(ctx)
	if err != nil || now == tree {
		return errors.Join(judged, moved, err)
	}
	after, err := w.Stage.Snapshot(ctx, "changed in "+path)
	if err != nil {
		return errors.Join(judged, err)
	}
	files, err := w.Stage.Changed(ctx, before.Commit, after.Commit)
	if err == nil {
		err = w.Stage.Restore(ctx, before.Commit)
	}
	if err != nil {
		return errors.Join(judged, err)
	}
	return errors.Join(judged, moved, &judgeError{"the worktree changed while it was judged", fmt.Errorf(
		"%s; it is as it was again, and what came is snapshot %d", strings.Join(slices.Sorted(slices.Values(files)), " "), after.N)})
}

// moved says that a judge moved the branch, when one did; it is put back.
func (w *Workshop) moved(ctx context.Context, path, tip string) (moved, err error) {
	now, err := w.Branch.Tip(ctx)
	if err != nil || now == tip {
		return nil, err
	}
	rescue, err := w.Branch.PutTip(ctx, tip, "moved in "+path)
	if err != nil {
		return nil, err
	}
	return &judgeError{"the branch was moved while it was judged", errors.New("it is where it was again, and what it held is stored as " + rescue)}, nil
}
