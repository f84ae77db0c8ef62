package runner

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/runner/engine"
	"github.com/coven-run/coven/runner/evidence"
	"github.com/coven-run/coven/runner/workclock"
)

// Changes that wait for the same target are stacked, and the checks run once on the tree with all of them,
// in the worktree of the session that has the turn. If they pass, the target moves once, to exactly this
// tree. If they fail, a binary search determines the number of changes that pass together: those land, and
// the first change that fails is later checked alone, in its own worktree. Only a tree on which the checks
// passed lands.

// A batch is a stack of changes.
type batch struct {
	turn     *Turn
	parts    []*member       // the first is that of the session that has the turn
	receipts []event.Receipt // of the largest stack that passed
}

// A member is the change of one session.
type member struct {
	x         *Executor
	c         engine.Call
	waiter    *waiter // nil for the session that has the turn
	candidate event.Landing
	answer    *event.MergeDecision // an approval to record; nil if none is needed
	landing   event.Landing        // as recorded when it landed
}

// landedOutcome is the outcome of a change that was landed by another session.
type landedOutcome struct {
	landing event.Landing
	err     error // set if the outcome is unknown; resuming the session determines it
}

// Reasons why a batch ends without a result.
var (
	errLeft     = errors.New("a task left")
	errOverTime = errors.New("the checks took longer than one task may take")
)

// stackError means that the worktree cannot contain the files of the stack.
type stackError struct{ error }

// gather returns a batch of the changes that can be checked together with a candidate. It returns nil if
// there are no others.
func (x *Executor) gather(ctx context.Context, c engine.Call, candidate event.Landing, turn *Turn) *batch {
	if x.Batch == nil || turn.alone || len(c.Merge.Checks) == 0 || x.isProven(c, candidate) {
		return nil
	}
	first, ok := x.part(ctx, c, candidate)
	if !ok {
		return nil
	}
	b := &batch{turn: turn, parts: []*member{first}}
	for _, s := range x.Batch.others() {
		if len(b.parts) >= x.Batch.Max {
			break
		}
		s.do(func() { b.add(s) })
	}
	if len(b.parts) == 1 {
		return nil
	}
	return b
}

// add stacks the change of a session. It does nothing if the change cannot be checked with the others or
// needs anything else. The session then waits for its own turn, which shows the reason.
func (b *batch) add(s *waiter) {
	top := b.parts[len(b.parts)-1].candidate
	if !slices.Equal(s.c.Merge.Checks, b.parts[0].c.Merge.Checks) || s.ctx.Err() != nil {
		return
	}
	candidate, err := s.x.Landing.Stack(s.ctx, top)
	if err != nil || candidate.Patch == "" {
		return
	}
	if p, ok := s.x.part(s.ctx, s.c, candidate); ok {
		p.waiter = s
		b.parts = append(b.parts, p)
	}
}

// part returns the part of a session in a batch. ok is false if the change cannot be part of one, because
// of its strategy or because a person has to approve it.
func (x *Executor) part(ctx context.Context, c engine.Call, candidate event.Landing) (*member, bool) {
	candidate.Strategy = c.Merge.Strategy
	d, err := x.decide(ctx, c, candidate)
	ok := err == nil && d.wait == nil && c.Merge.Strategy != "rebase"
	return &member{x: x, c: c, candidate: candidate, answer: d.answer}, ok
}

// run checks the stack and lands the changes that pass. done reports whether the session that has the turn
// is finished, with the result or an error.
func (b *batch) run(ctx context.Context) (result event.Result, done bool, err error) {
	passed, failed := 0, len(b.parts)+1 // numbers of changes that are known to pass or fail together
	for n := len(b.parts); failed-passed > 1; n = (passed + failed) / 2 {
		result, err := b.check(ctx, n)
		switch {
		case errors.Is(err, errLeft), errors.Is(err, errOverTime), errors.As(err, new(*stackError)):
			b.turn.alone = true
			return event.Result{}, false, nil
		case err != nil:
			return event.Result{}, true, err
		case result.Error == "":
			passed = n
		case n == 1:
			return result, true, nil
		default:
			failed = n
		}
	}
	if failed <= len(b.parts) {
		culprit := b.parts[failed-1]
		culprit.x.Batch.requireOwnTurn(culprit.waiter)
	}
	b.turn.alone = true
	if passed == 1 {
		return event.Result{}, false, nil
	}
	return b.land(ctx, passed)
}

// check runs the checks on the first n changes together. The error is errLeft, errOverTime or a *stackError
// if the checks had no result.
func (b *batch) check(ctx context.Context, n int) (event.Result, error) {
	lead := b.parts[0]
	if n == 1 {
		b.turn.Doing("runs its checks")
		return lead.x.runChecks(ctx, lead.c, lead.candidate)
	}
	b.turn.Doing("runs the checks of its change with " + strings.Join(b.names(n)[1:], ", "))
	snapshot, err := lead.x.Workspace.Snapshot(ctx, "before the checks with "+strings.Join(b.names(n)[1:], ", "))
	if err != nil {
		return event.Result{}, err
	}
	started := event.Batch{Tasks: b.names(n), Tree: b.parts[n-1].candidate.Tree, Snapshot: snapshot.Commit}
	if err := lead.x.emit(event.BatchStarted, lead.c.Path, started); err != nil {
		return event.Result{}, err
	}
	failpoint.Point("batch.started")
	started.Snapshot = ""
	var result event.Result
	if err = b.record(n, event.BatchStarted, started); err == nil {
		result, err = b.checkStack(ctx, n)
	}
	failpoint.Point("batch.checked")
	ended := event.BatchEnd{Passed: err == nil && result.Error == "", Reason: result.Error}
	if err != nil {
		ended.Reason = err.Error()
	}
	left := b.record(n, event.BatchEnded, ended)
	if isChanged(err) {
		return event.Result{}, err // the worktree must not be changed
	}
	// Otherwise the changes of others would count as those of the first task.
	if err := lead.x.Workspace.Restore(context.WithoutCancel(ctx), snapshot.Commit); err != nil {
		return event.Result{}, err
	}
	failpoint.Point("batch.restored")
	if err := lead.x.emit(event.BatchEnded, lead.c.Path, ended); err != nil {
		return event.Result{}, err
	}
	return result, cmp.Or(err, left)
}

// checkStack runs the checks on the first n changes in the worktree of the first session. Its clocks are
// paused, because it must not be charged for the time of others.
func (b *batch) checkStack(ctx context.Context, n int) (event.Result, error) {
	lead, top := b.parts[0], b.parts[n-1].candidate
	ctx, cancel := b.stopTogether(ctx, n)
	defer cancel()
	if err := lead.putStack(ctx, top); err != nil {
		return event.Result{}, cause(ctx, &stackError{err})
	}
	failpoint.Point("batch.stacked")
	result, err := lead.x.checks(ctx, lead.c.Path, lead.c.Merge.Checks)
	if err != nil {
		return event.Result{}, cause(ctx, err)
	}
	if result.Error == "" && !evidence.Proven(lead.c.Merge.Checks, result.Receipts, top.Tree) {
		result.Error = "the worktree changed while the checks ran"
	}
	if result.Error == "" {
		b.receipts = result.Receipts
	}
	return result, context.Cause(ctx)
}

// putStack writes the files of a stack to the worktree.
func (p *member) putStack(ctx context.Context, top event.Landing) error {
	if err := p.x.Workspace.Restore(ctx, top.New); err != nil {
		return err
	}
	tree, err := p.x.Workspace.Tree(ctx)
	if err == nil && tree != top.Tree {
		err = errors.New("the worktree cannot have the files of all changes")
	}
	return err
}

// stopTogether returns a context that ends when one of the first n sessions stops, or when the remaining time
// of the first session's step is over.
func (b *batch) stopTogether(ctx context.Context, n int) (context.Context, func()) {
	resume, left := workclock.Pause(ctx), workclock.Remaining(ctx)
	ctx, cancel := context.WithCancelCause(ctx)
	stops := []func(){resume, func() { cancel(nil) }}
	if left > 0 {
		limited, stop := workclock.Limit(ctx, left, errOverTime)
		ctx, stops = limited, append(stops, stop)
	}
	for _, p := range b.parts[1:n] {
		stop := context.AfterFunc(p.waiter.ctx, func() { cancel(errLeft) })
		stops = append(stops, func() { stop() })
	}
	return ctx, func() {
		for _, stop := range slices.Backward(stops) {
			stop()
		}
	}
}

// cause returns the cause of the context's end, if it has ended, and otherwise err.
func cause(ctx context.Context, err error) error {
	if why := context.Cause(ctx); why != nil && !isChanged(err) {
		return why
	}
	return err
}

// names returns the tasks of the first n changes.
func (b *batch) names(n int) []string {
	var names []string
	for _, p := range b.parts[:n] {
		names = append(names, p.x.Task)
	}
	return names
}

// record records an event in the sessions of the first n changes, except the first. The error is errLeft if
// one of them has left or cannot record the event and will therefore stop.
func (b *batch) record(n int, t event.Type, data any) (failed error) {
	for _, p := range b.parts[1:n] {
		var err error
		if !p.waiter.do(func() { err = p.x.emit(t, p.c.Path, data) }) || err != nil {
			failed = errLeft
		}
	}
	return failed
}

// land lands the first n changes, whose tree has passed the checks.
func (b *batch) land(ctx context.Context, n int) (result event.Result, done bool, err error) {
	b.turn.Doing("lands with " + strings.Join(b.names(n)[1:], ", "))
	var waiters []*waiter
	for _, p := range b.parts[1:n] {
		waiters = append(waiters, p.waiter)
	}
	held := whilePresent(waiters, func() { err = b.landHeld(ctx, b.parts[:n]) })
	lead := b.parts[0]
	switch {
	case !held, errors.Is(err, errLeft):
		return event.Result{}, false, nil
	case lead.landing.New != "":
		return landed(lead.landing, lead.c), true, err
	case errors.Is(err, ErrMoved):
		b.turn.alone = false
		return event.Result{}, true, err
	case err != nil && context.Cause(ctx) != nil, errors.As(err, new(*unknownError)):
		return event.Result{}, true, err
	}
	for _, s := range waiters { // one of them cannot land; its own turn will show the reason
		lead.x.Batch.requireOwnTurn(s)
	}
	return event.Result{}, false, nil
}

// unknownError means that it is unknown whether the changes landed.
type unknownError struct{ error }

// landHeld lands parts while their sessions are blocked. Afterwards, each part that has landed has a
// landing.
func (b *batch) landHeld(ctx context.Context, parts []*member) error {
	intended := false
	var changes []Change
	for _, p := range parts {
		changes = append(changes, Change{Of: p.x.Landing, Candidate: p.candidate, Message: p.x.landingMessage(p.c), Intent: func(l event.Landing) error {
			intended = true
			return b.intend(p, parts, l)
		}})
	}
	all, err := parts[0].x.Landing.Land(ctx, changes)
	switch {
	case err == nil:
		for i, p := range parts {
			l := all[i]
			l.With = others(parts, p)
			err = errors.Join(err, p.finish(l, p.x.emit(event.LandDone, p.c.Path, l)))
		}
		return err
	case !intended:
		return err
	}
	unknown := recoverAll(context.WithoutCancel(ctx), parts)
	if unknown != nil || parts[0].landing.New != "" {
		return unknown
	}
	return err
}

// recoverAll determines whether a landing that failed after its intents were recorded took place. The error
// is an *unknownError if that is not possible for the first part.
func recoverAll(ctx context.Context, parts []*member) (failed error) {
	for _, p := range parts {
		l, ok, err := p.x.recoverLanding(ctx, p.c.Path)
		if err != nil {
			err = &unknownError{err}
		}
		if ok || err != nil {
			failed = errors.Join(failed, p.finish(l, err))
		}
	}
	return failed
}

// finish sets the outcome of a part's session.
func (p *member) finish(l event.Landing, err error) error {
	if p.waiter != nil {
		p.waiter.landed = &landedOutcome{l, err}
		return nil
	}
	if err == nil {
		p.landing = l
	}
	return err
}

// intend records in the session of a part the other parts of its landing, and that it is about to land.
func (b *batch) intend(p *member, parts []*member, l event.Landing) error {
	if p.waiter != nil {
		for _, r := range b.receipts {
			if err := p.x.emit(event.CheckEnded, p.c.Path, r); err != nil {
				return err
			}
		}
		if err := p.x.emit(event.MergeDone, p.c.Path, event.Integrated{From: p.candidate.From, Tree: p.candidate.Tree}); err != nil {
			return err
		}
	}
	if p.answer != nil {
		if err := p.x.emit(event.ReviewAnswered, p.c.Path, p.answer); err != nil {
			return err
		}
	}
	l.With = others(parts, p)
	if p.waiter != nil && p.waiter.ctx.Err() != nil {
		return errLeft // it waits for this function to return
	}
	return p.x.emit(event.LandIntended, p.c.Path, l)
}

// others returns the tasks of the other parts.
func others(parts []*member, but *member) []string {
	var tasks []string
	for _, p := range parts {
		if p != but {
			tasks = append(tasks, p.x.Task)
		}
	}
	return tasks
}

// leaveBatch ends a batch that was interrupted by a kill: it restores the worktree to the state before its
// checks.
func (x *Executor) leaveBatch(ctx context.Context) error {
	last, ok := x.Journal.Last(event.BatchStarted, event.BatchEnded)
	open := ok && last.Type == event.BatchStarted && x.unstopped() == nil
	if !open {
		return nil
	}
	var b event.Batch
	if err := last.Decode(&b); err != nil {
		return err
	}
	if b.Snapshot != "" {
		if err := x.Workspace.Restore(ctx, b.Snapshot); err != nil {
			return err
		}
	}
	return x.emit(event.BatchEnded, last.Path, event.BatchEnd{Reason: "interrupted"})
}
