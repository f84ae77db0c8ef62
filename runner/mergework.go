package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/findings"
	"github.com/coven-run/coven/internal/shellword"
)

// lander brings the task branch and its target together.
type lander interface {
	// Turn waits until nobody else lands on the target.
	Turn(ctx context.Context) (release func(), err error)
	// Conflict puts a conflict with the target into the worktree, for an agent
	// to resolve, and returns the commit of the target that is merged, none when
	// there is no conflict any more, and the files in conflict. A *RefusedError
	// says that no agent can.
	Conflict(ctx context.Context) (target string, files []string, err error)
	// Integrate brings the target's tip into the task branch and its worktree.
	Integrate(ctx context.Context) (Candidate, error)
	// Land moves the target to the candidate. intent is durable before anything
	// moves.
	Land(ctx context.Context, c Candidate, o LandOptions) (event.Landing, error)
	// Recover finishes or undoes a landing that was cut off.
	Recover(ctx context.Context, intent event.Landing) (landed bool, err error)
}

// Candidate is what would land.
type Candidate struct {
	Target string // full ref
	Old    string // the target's tip
	Tip    string // the task branch with that tip brought in
	From   string // tree of the worktree before that; the same when the target had not moved
	Tree   string
	Patch  string // patch id
	Empty  bool   // nothing to land
}

// LandOptions is how to land.
type LandOptions struct {
	Strategy string
	Message  string
	Intent   func(event.Landing) error
}

// ErrMoved says that the target moved since Integrate.
var ErrMoved = errors.New("the target moved")

// ConflictError says that the branch and its target changed the same lines.
type ConflictError struct {
	Target string
	Files  []string
	Dir    string // the worktree, where a person can resolve it
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("conflict with %s in %s (to resolve it: git merge %s, in %s)",
		e.Target, strings.Join(e.Files, ", "), shellword.Word(e.Target), shellword.Word(e.Dir))
}

// ConflictType is the ErrorType of a landing that met a conflict.
const ConflictType = event.ErrorConflict

// merge does a merge leaf: bring the target in, check that very tree, have it
// reviewed, land it.
func (w *Workshop) merge(ctx context.Context, c Call) (Result, error) {
	if snapshot := w.litter(c.Path); snapshot != "" {
		if err := w.Stage.Restore(ctx, snapshot); err != nil {
			return Result{}, err
		}
	}
	if landing, ok, err := w.recovered(ctx, c.Path); ok || err != nil {
		return landed(landing, c), err
	}
	release, err := w.turn(ctx)
	if err != nil {
		return Result{}, err
	}
	defer release()
	for {
		landing, result, err := w.attempt(ctx, c)
		conflict, refused := (*ConflictError)(nil), (*RefusedError)(nil)
		switch {
		case errors.As(err, &refused):
			return Result{Error: refused.Reason, ErrorType: "refused", Output: refused.Output, Next: refused.Next}, nil
		case errors.Is(err, ErrMoved):
			continue
		case errors.As(err, &conflict):
			return Result{Error: conflict.Error(), ErrorType: ConflictType, Files: conflict.Files}, nil
		case err != nil || result.Error != "" || result.OK:
			return result, err
		}
		return landed(landing, c), w.emit(event.LandDone, c.Path, landing)
	}
}

// turn waits for the turn to land. No clock of the step or the run goes on
// meanwhile: others take their time.
func (w *Workshop) turn(ctx context.Context) (release func(), err error) {
	resume := Pause(ctx)
	defer resume()
	return w.Lander.Turn(ctx)
}

// attempt tries to land once. Neither an error nor a finished result means that
// it landed.
func (w *Workshop) attempt(ctx context.Context, c Call) (event.Landing, Result, error) {
	candidate, err := w.Lander.Integrate(ctx)
	if err != nil {
		return event.Landing{}, Result{}, err
	}
	if candidate.Empty {
		return event.Landing{}, Result{OK: true, Summary: c.Merge.Summary, Output: "nothing to land"}, nil
	}
	if candidate.From != candidate.Tree {
		if err := w.emit(event.MergeDone, c.Path, event.Integrated{From: candidate.From, Tree: candidate.Tree}); err != nil {
			return event.Landing{}, Result{}, err
		}
	}
	if failed, err := w.prove(ctx, c, candidate); err != nil || failed.Error != "" {
		return event.Landing{}, failed, err
	}
	text := c.Merge.Message
	if text == "" {
		text = message(w.Title, c.Merge.Summary)
	}
	shown := text
	if c.Merge.Strategy == "rebase" {
		shown = "" // its commits keep theirs
	}
	if err := w.approval(c, candidate, shown); err != nil {
		return event.Landing{}, Result{}, err
	}
	landing, err := w.Lander.Land(ctx, candidate, LandOptions{
		Strategy: c.Merge.Strategy, Message: text,
		Intent: func(l event.Landing) error { return w.emit(event.LandIntended, c.Path, l) },
	})
	return landing, Result{}, err
}

// recovered ends a landing that was cut off between its intent and its record.
func (w *Workshop) recovered(ctx context.Context, path string) (event.Landing, bool, error) {
	var last event.Event
	for _, e := range w.remembered() {
		if e.Path == path && (e.Type == event.LandIntended || e.Type == event.LandDone) {
			last = e
		}
	}
	if last.Seq == 0 {
		return event.Landing{}, false, nil
	}
	var landing event.Landing
	if err := last.Decode(&landing); err != nil {
		return landing, false, err
	}
	if last.Type == event.LandDone {
		return landing, true, nil
	}
	ok, err := w.Lander.Recover(ctx, landing)
	if err != nil || !ok {
		return landing, false, err
	}
	return landing, true, w.emit(event.LandDone, path, landing)
}

// prove runs the checks on the candidate's tree, unless they passed on it.
func (w *Workshop) prove(ctx context.Context, c Call, candidate Candidate) (Result, error) {
	if proven(c.Merge.Checks, c.Merge.Receipts, candidate.Tree) || w.provenHere(c, candidate.Tree) {
		return Result{}, nil
	}
	transcript, _, err := w.Logs.Open(c.Path)
	if err != nil {
		return Result{}, err
	}
	defer transcript.Close() //nolint:errcheck // the events are the record, the log is for people
	result, err := w.checks(ctx, c.Path, c.Merge.Checks, transcript)
	switch {
	case err != nil || result.Error != "":
		return result, err
	case !proven(c.Merge.Checks, result.Receipts, candidate.Tree):
		return Result{Error: "the worktree is not what is to land: it changed while the checks ran", ErrorType: "internal"}, nil
	}
	return Result{}, nil
}

// provenHere looks for the receipts of this step before it was cut off.
func (w *Workshop) provenHere(c Call, tree string) bool {
	var receipts []event.Receipt
	for _, e := range w.remembered() {
		var r event.Receipt
		if e.Type == event.CheckEnded && e.Path == c.Path && e.Decode(&r) == nil {
			receipts = append(receipts, r)
		}
	}
	return proven(c.Merge.Checks, receipts, tree)
}

// proven says whether there is a receipt of success for every check on tree.
func proven(checks []string, receipts []event.Receipt, tree string) bool {
	for _, check := range checks {
		if !slices.ContainsFunc(receipts, func(r event.Receipt) bool {
			return r.Command == check && r.Tree == tree && r.ExitCode == 0 && r.Settings == ""
		}) {
			return false
		}
	}
	return true
}

// approval returns nil when the candidate is approved, or does not need to be;
// otherwise it asks and waits. What reviewers have not seen as it is, and what has
// open error findings, always needs a person. message is what the change lands with.
func (w *Workshop) approval(c Call, candidate Candidate, message string) error {
	open, err := findings.Open(w.Journal.Events())
	if err != nil {
		return err
	}
	unseen := slices.ContainsFunc(c.Merge.Reviewed, func(tree string) bool { return !w.becomes(tree, candidate.Tree) })
	byPerson := unseen || len(open) > 0
	if !c.Merge.RequireReview && !byPerson {
		return nil
	}
	asked, approved := w.askedAbout(c.Path, candidate)
	if approved && len(open) == 0 {
		return nil
	}
	question := event.Review{Patch: candidate.Patch, Tree: candidate.Tree}
	if w.Approve != "" && !byPerson {
		question.Approved, question.By = true, w.Approve
		return w.emit(event.ReviewAnswered, c.Path, question)
	}
	if !asked {
		question.Message = message
		if err := w.emit(event.ReviewAsked, c.Path, question); err != nil {
			return err
		}
	}
	return reviewWait(open, unseen)
}

// reviewWait says why a change waits for a person's approval, and what to look at.
func reviewWait(open []event.Finding, unseen bool) *Wait {
	const changed = "the change is not what the reviewers saw: it waits for a person's approval"
	w := &Wait{Reason: event.WaitReview, Detail: "the change is ready and waits for a person's approval", Next: "approve"}
	if unseen {
		w.Detail = changed
	}
	if len(open) == 0 {
		return w
	}
	w.Detail, w.Next = findings.Summary(open), "review"
	if unseen {
		w.Detail = changed + "; " + w.Detail
	}
	return w
}

// becomes says whether a tree is another one, but for what git alone has brought
// into it from the target since.
func (w *Workshop) becomes(tree, now string) bool {
	if tree == "" {
		return false
	}
	from := map[string]string{}
	for _, e := range w.Journal.Events() {
		var i event.Integrated
		if e.Type == event.MergeDone && e.Decode(&i) == nil {
			from[i.Tree] = i.From
		}
	}
	for range len(from) + 1 { // a target can go back to what it was
		if now == tree {
			return true
		}
		now = from[now]
	}
	return false
}

// askedAbout says whether a person was asked about a candidate, and whether one
// approved it, or what became it.
func (w *Workshop) askedAbout(path string, candidate Candidate) (asked, approved bool) {
	for _, e := range w.remembered() {
		var r event.Review
		if e.Path != path || e.Type != event.ReviewAsked && e.Type != event.ReviewAnswered || e.Decode(&r) != nil {
			continue
		}
		same := r.Patch == candidate.Patch
		asked = asked || same
		approved = approved || e.Type == event.ReviewAnswered && r.Approved && (same || w.becomes(r.Tree, candidate.Tree))
	}
	return asked, approved
}

func landed(l event.Landing, c Call) Result {
	return Result{OK: true, Commit: l.New, Tree: l.Tree, Summary: c.Merge.Summary, Output: "landed " + l.New + " on " + l.Target}
}
