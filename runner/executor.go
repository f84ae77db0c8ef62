package runner

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/event"
	ourclock "github.com/coven-run/coven/internal/process/clock"
	"github.com/coven-run/coven/internal/session/usage"
	"github.com/coven-run/coven/runner/engine"
	"github.com/coven-run/coven/runner/evidence"
	"github.com/coven-run/coven/runner/pullrequest"
	"github.com/coven-run/coven/runner/workclock"
)

// Executor does the work of leaves in the worktree of one task.
type Executor struct {
	Task      string // task ID
	Session   string
	Title     string // title of the task and of its commits
	Journal   *Journal
	Workspace workspace
	Tripwire  tripwire
	Landing   landing
	Pulls     pullrequest.Host // used by merges with the strategy pull-request
	Agents    agents
	Reviewers reviewers
	Commands  commands
	// Approve approves merge reviews automatically, and is recorded as the approver. If it is empty, a
	// person must approve.
	Approve string
	Batch   *Batch         // shared with other tasks for the same target; nil to land each alone
	Prices  budget.Prices  // prices of models whose CLI does not report the cost
	Budget  *budget.Budget // shared with other tasks; may be nil
	// StopTurn receives a value when the user stops the turn of a chat. It may be nil.
	StopTurn <-chan struct{}

	mu    sync.Mutex
	usage *usage.Usage
}

// Do implements Leaves.
func (x *Executor) Do(ctx context.Context, c engine.Call) (event.Result, error) {
	if err := context.Cause(ctx); err != nil {
		return event.Result{Used: x.usedBefore(c.Path)}, err
	}
	if changed := x.unstopped(); changed != nil {
		result := changed.result()
		result.Used = x.usedBefore(c.Path)
		return result, nil
	}
	usage, err := x.leafUsage(c)
	if err != nil {
		return event.Result{}, err
	}
	b, err := x.begin(ctx, c)
	if err != nil {
		return event.Result{}, err
	}
	b.usage = usage
	workclock.Charge(ctx, usage.before.Wall)
	timed, stop := usage.clock(ctx)
	defer stop()
	result, err := x.do(timed, c, b)
	changed := isChanged(err)
	result, err = ended(timed, result, err)
	result.Used = usage.total()
	if c.Review != nil || c.Arbiter != nil {
		result.Usage = usage.pluginUsage()
	}
	if changed {
		return result, err // the worktree must not be changed
	}
	return result, errors.Join(err, x.afterInterruption(context.WithoutCancel(ctx), c, b, err))
}

// ended converts the error of a leaf to a result, or to the reason for its interruption. A change of the
// repository is the result even if the time or a budget has also ended.
func ended(ctx context.Context, result event.Result, err error) (event.Result, error) {
	cause := context.Cause(ctx)
	changed, refused := (*changedError)(nil), (*RefusedError)(nil)
	if errors.As(err, &changed) && (cause == nil || isSpent(cause) || errors.As(cause, new(*engine.OverTimeError))) {
		return changed.result(), nil
	}
	if err != nil && cause != nil {
		err = cause
	}
	if errors.As(err, &refused) {
		return event.Result{Error: refused.Reason, ErrorType: event.ErrorRefused, Output: refused.Output}, nil
	}
	return result, err
}

// afterInterruption brings the worktree of an interrupted leaf into a state that is useful for a person and
// for the resumed leaf.
func (x *Executor) afterInterruption(ctx context.Context, c engine.Call, b leafStart, why error) error {
	switch {
	case (c.Review != nil || c.Arbiter != nil) && why != nil:
		return x.emit(event.StepParked, c.Path, nil) // the worktree was restored when the plugins ended
	case !isSpent(why) && !errors.Is(why, ErrInterrupted):
		return nil
	case c.Script != nil, c.Setup != nil:
		return x.park(ctx, c, b)
	case c.Agent != nil && isSpent(why):
		_, err := x.Workspace.Snapshot(ctx, "the budget is spent in "+c.Path)
		return err
	}
	return nil
}

func (x *Executor) do(ctx context.Context, c engine.Call, b leafStart) (event.Result, error) {
	if c.Agent == nil && c.Merge == nil { // agents are told, and merges look by themselves
		if result, ok, err := x.revision(c.Path); ok || err != nil {
			return result, err
		}
	}
	switch {
	case c.Pause != nil:
		return x.pause(ctx, c, b)
	case c.Agent != nil:
		return x.agent(ctx, c, b)
	case c.Script != nil:
		return x.script(ctx, c, b)
	case c.Setup != nil:
		return x.setup(ctx, c, b)
	case c.Review != nil:
		return x.review(ctx, c, b)
	case c.Arbiter != nil:
		return x.arbiter(ctx, c, b)
	default:
		return x.merge(ctx, c)
	}
}

// park restores the worktree to the state at the start of a stopped script. A person's later changes are
// therefore not undone when the script runs again.
func (x *Executor) park(ctx context.Context, c engine.Call, b leafStart) error {
	if err := x.restoreStart(ctx, c.Path, b.Snapshot); err != nil {
		return err
	}
	return x.emit(event.StepParked, c.Path, nil)
}

// restoreStart restores the worktree to the state at the start of a step, and warns of the changes since
// then.
func (x *Executor) restoreStart(ctx context.Context, path, before string) error {
	files, saved, err := x.revert(ctx, before, "cut off in "+path)
	if err != nil || len(files) == 0 {
		return err
	}
	return x.warn(path, fmt.Sprintf("the step was interrupted and runs again: the worktree was restored; changes since its start are saved as snapshot %d: %s",
		saved.N, strings.Join(files, " ")))
}

// revert restores the worktree to a snapshot if it has changed since then. The changes are saved in another
// snapshot with the given note. files is empty if there are none.
func (x *Executor) revert(ctx context.Context, before, note string) (files []string, saved event.Snapshot, err error) {
	saved, err = x.Workspace.Snapshot(ctx, note)
	if err != nil {
		return nil, saved, err
	}
	files, err = x.Workspace.Changed(ctx, before, saved.Commit)
	if err == nil && len(files) > 0 {
		err = x.Workspace.Restore(ctx, before)
	}
	return files, saved, err
}

// leafStart is the start of a leaf and the worktree at that time.
type leafStart struct {
	event.StepStart
	cutOff  bool      // the leaf was started before and has no recorded result
	stopped bool      // it has a result because the repository changed, and continues
	since   int64     // number of its start event
	at      time.Time // time of the start
	origin  string    // the tree at the start of the first attempt

	usage *leafUsage
}

// begin records the start of a leaf with the current worktree. For an interrupted leaf, it returns the
// recorded start.
func (x *Executor) begin(ctx context.Context, c engine.Call) (leafStart, error) {
	b, ok, err := x.started(c.Path)
	if err == nil && b.stopped {
		return b, x.emit(event.StepStarted, c.Path, b.StepStart)
	}
	if ok || err != nil {
		return b, err
	}
	if c.Pause != nil {
		return b, x.emit(event.StepStarted, c.Path, event.StepStart{Kind: c.Kind()})
	}
	snapshot, tree, err := x.save(ctx, "start of "+c.Path)
	if err != nil {
		return leafStart{}, err
	}
	start := event.StepStart{Kind: c.Kind(), Snapshot: snapshot.Commit, Tree: tree}
	if c.Review != nil || c.Arbiter != nil || c.Setup != nil {
		if start.Tip, err = x.Workspace.Tip(ctx); err != nil {
			return leafStart{}, err
		}
	}
	b.origin = cmp.Or(b.origin, tree)
	b.StepStart = start
	return b, x.emit(event.StepStarted, c.Path, start)
}

// save saves the worktree, and also returns the tree that a commit would have.
func (x *Executor) save(ctx context.Context, note string) (event.Snapshot, string, error) {
	s, err := x.Workspace.Snapshot(ctx, note)
	if err != nil || s.Clean {
		return s, s.Tree, err
	}
	tree, err := x.Workspace.Tree(ctx)
	return s, tree, err
}

// started returns the recorded start of an interrupted leaf.
func (x *Executor) started(path string) (b leafStart, ok bool, err error) {
	for _, e := range x.Journal.starts(path) {
		if b.origin = event.As[event.StepStart](e).Tree; b.origin != "" {
			break
		}
	}
	// A leaf with a result after its start runs again on request. A parked leaf has restored the worktree,
	// so that differences are a person's later changes. Both start again.
	events := x.Journal.At(path, event.StepStarted, event.StepCompleted, event.StepParked)
	last := startOf(events)
	if last.Type != event.StepStarted {
		return b, false, nil
	}
	b.cutOff, b.since, b.at, b.stopped = true, last.Seq, last.Time, evidence.IsStop(events[len(events)-1])
	return b, true, last.Decode(&b.StepStart)
}

// startOf returns the last of a leaf's events. If the leaf continued after a change of the repository, it
// returns the start before that change.
func startOf(events []event.Event) (last event.Event) {
	for i := len(events) - 1; i >= 0; i-- {
		e := events[i]
		switch {
		case evidence.IsStop(e):
			continue
		case last.Type == "", e.Type == event.StepStarted:
			last = e
		}
		if e.Type != event.StepStarted || i == 0 || !evidence.IsStop(events[i-1]) {
			return last
		}
	}
	return last
}

// pause waits. After an interruption, it waits for the remaining time.
func (x *Executor) pause(ctx context.Context, c engine.Call, b leafStart) (event.Result, error) {
	left := c.Pause.For
	if b.cutOff {
		left -= ourclock.Since(b.at)
	}
	timer := ourclock.NewTimer(left)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return event.Result{}, context.Cause(ctx)
	case <-timer.C:
		return event.Result{OK: true, Output: "waited " + c.Pause.For.String()}, nil
	}
}

func (x *Executor) emit(t event.Type, path string, data any) error {
	return x.Journal.Append(event.Event{Type: t, Path: path}, data)
}

// warn records a warning for the user.
func (x *Executor) warn(path, text string) error {
	return x.emit(event.Warning, path, event.Text{Text: text})
}

// key returns the value of COVEN_STEP_KEY. It is the same for every run of a leaf, so that a script with an
// external effect can check whether the effect has already happened.
func (x *Executor) key(path string) string {
	sum := sha256.Sum256([]byte(x.Session + "\x00" + path))
	return hex.EncodeToString(sum[:16])
}
