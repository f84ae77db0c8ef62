package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/agent"
	"github.com/coven-run/coven/internal/budget"
	ourclock "github.com/coven-run/coven/internal/clock"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/ledger"
)

// Workshop is Leaves that does the work for real, in the worktree of one task.
type Workshop struct {
	Session  string
	Title    string // of the task: what coven's commits are called
	Journal  journal
	Stage    stage
	Branch   branch
	Lander   lander
	Agents   agents
	Judges   judges
	Commands commands
	Logs     logs
	// Approve answers a merge review by itself; empty: a person does. It is who
	// the record says has approved.
	Approve string
	Prices  budget.Prices // of models whose CLI does not say what they cost
	Purse   *Purse        // shared with other tasks; nil: there is none

	ledger *ledger.Ledger
}

// stage is the worktree as a step finds and leaves it.
type stage interface {
	// Snapshot stores the worktree as it is.
	Snapshot(ctx context.Context, note string) (event.Snapshot, error)
	// Restore puts the worktree back to a snapshot.
	Restore(ctx context.Context, commit string) error
	// Changed names what differs between two snapshots.
	Changed(ctx context.Context, from, to string) ([]string, error)
}

// branch is the task branch as a step finds and leaves it.
type branch interface {
	// Tree is the tree that a commit would have now.
	Tree(ctx context.Context) (string, error)
	// Commit commits what is uncommitted. merges is the commit of the target
	// that the worktree holds merged, or empty.
	Commit(ctx context.Context, message, merges string) (Commit, error)
	// Tip is the commit that the branch is at.
	Tip(ctx context.Context) (string, error)
	// PutTip makes the branch what it was; what it holds is stored first, under a ref.
	PutTip(ctx context.Context, tip, note string) (rescue string, err error)
}

// Commit is the task branch after branch.Commit.
type Commit struct {
	Oid   string
	Tree  string
	Files []string // what the new commit changed; empty: there was nothing to commit
}

// RefusedError says that the worktree must not be committed as it is.
type RefusedError struct {
	Reason string // one line for a person and for an agent that mends it
	Output string // of the hook that refused
	Next   string // the coven command that helps, "VERB ARGUMENTS"; empty: resume
}

func (e *RefusedError) Error() string { return e.Reason }

// agents runs agents.
type agents interface {
	// Await returns when the account of a provider's agents has no limit that is known. The clocks
	// of the step stand still meanwhile. A limit that is not waited for is a *Wait.
	Await(ctx context.Context, path, provider string) error
	Run(ctx context.Context, run AgentRun) (agent.Report, error)
	// Recall reads the report of a run that coven did not see the end of from
	// its transcript; complete says whether the agent had given its result.
	Recall(ctx context.Context, provider string, transcript io.Reader) (report agent.Report, complete bool, err error)
}

// AgentRun is one run of an agent for a step.
type AgentRun struct {
	Path         string
	Key          string // COVEN_STEP_KEY
	Conversation string
	Resume       bool
	Prompt       string
	Agent        string // its definition; empty: build
	Model        string
	Provider     string   // empty: the plan's
	Env          []string // KEY=VALUE, with marks for secrets: tmpl.Reveal
	Workdir      string   // relative to the worktree
	ReadOnly     bool     // it may read the worktree, and nothing else
	Transcript   io.Writer
	// Spend is told what the run has used so far after each answer of the model;
	// an error stops the agent.
	Spend func(used event.Usage) error
}

// commands runs shell commands, contained, in the worktree.
type commands interface {
	Run(ctx context.Context, c Command) (Ran, error)
}

// Command is one shell command of a step.
type Command struct {
	Shell      string   // given to sh -c
	Env        []string // KEY=VALUE, with marks for secrets: tmpl.Reveal
	Secrets    []string // names of those that the command uses
	Workdir    string   // relative to the worktree
	Transcript io.Writer
}

// Ran is how a command ended.
type Ran struct {
	ExitCode int
	Output   string        // its terminal output, the middle cut out when it is long
	Stopped  string        // why coven stopped it; empty: it ended by itself
	Duration time.Duration // wall clock
}

// logs holds the raw terminal bytes of steps.
type logs interface {
	// Open appends; at is where.
	Open(path string) (log io.WriteCloser, at int64, err error)
	Read(path string, from int64) (io.ReadCloser, error)
}

// Do implements Leaves.
func (w *Workshop) Do(ctx context.Context, c Call) (Result, error) {
	if err := context.Cause(ctx); err != nil {
		w.book().Read(w.Journal.Events())
		return Result{Used: w.book().Cut(c.Path)}, err
	}
	spending, err := w.spending(c)
	if err != nil {
		return Result{}, err
	}
	b, err := w.begin(ctx, c)
	if err != nil {
		return Result{}, err
	}
	b.spending = spending
	charge(ctx, spending.before.Wall)
	timed, stop := spending.clock(ctx)
	defer stop()
	result, err := w.do(timed, c, b)
	if cause := context.Cause(timed); err != nil && cause != nil {
		err = cause // whatever was cut off, this is why
	}
	if refused := (*RefusedError)(nil); errors.As(err, &refused) {
		result, err = Result{Error: refused.Reason, ErrorType: "refused", Output: refused.Output}, nil
	}
	result.Used = spending.total()
	if c.Review != nil || c.Arbiter != nil {
		result.Usage = spending.asked()
	}
	return result, errors.Join(err, w.cutShort(context.WithoutCancel(ctx), c, b, err))
}

// cutShort leaves the worktree of a leaf that was stopped so that a person, and
// the leaf when it goes on, find what they can use.
func (w *Workshop) cutShort(ctx context.Context, c Call, b beginning, why error) error {
	switch {
	case (c.Review != nil || c.Arbiter != nil) && why != nil:
		return w.emit(event.StepParked, c.Path, nil) // it was put back when the judges had ended
	case !isSpent(why) && !errors.Is(why, ErrInterrupted):
		return nil
	case c.Script != nil:
		return w.park(ctx, c, b)
	case c.Agent != nil && isSpent(why):
		_, err := w.Stage.Snapshot(ctx, "the budget is spent in "+c.Path)
		return err
	}
	return nil
}

func (w *Workshop) do(ctx context.Context, c Call, b beginning) (Result, error) {
	switch {
	case c.Pause != nil:
		return w.pause(ctx, c, b)
	case c.Agent != nil:
		return w.agent(ctx, c, b)
	case c.Script != nil:
		return w.script(ctx, c, b)
	case c.Review != nil:
		return w.review(ctx, c, b)
	case c.Arbiter != nil:
		return w.arbiter(ctx, c, b)
	default:
		return w.merge(ctx, c)
	}
}

// park puts the worktree back to where a script that was stopped found it: what
// a person does there afterwards is not undone when it runs again.
func (w *Workshop) park(ctx context.Context, c Call, b beginning) error {
	if err := w.putBack(ctx, c.Path, b.Snapshot); err != nil {
		return err
	}
	return w.emit(event.StepParked, c.Path, nil)
}

// putBack makes the worktree what it was at the start of a step, and names what
// had come since.
func (w *Workshop) putBack(ctx context.Context, path, before string) error {
	now, err := w.Stage.Snapshot(ctx, "cut off in "+path)
	if err != nil {
		return err
	}
	files, err := w.Stage.Changed(ctx, before, now.Commit)
	if err != nil || len(files) == 0 {
		return err
	}
	if err := w.Stage.Restore(ctx, before); err != nil {
		return err
	}
	return w.warn(path, fmt.Sprintf("the step was cut off and runs anew: the worktree went back to where it began; what came since is snapshot %d: %s",
		now.N, strings.Join(files, " ")))
}

// beginning is how a leaf finds the worktree.
type beginning struct {
	event.StepStart
	cutOff bool      // the leaf began before and its result was never recorded
	since  int64     // number of the event of its start
	at     time.Time // when it began
	origin string    // the tree when the leaf began for the first time, earlier attempts included

	spending *spending
}

// begin records that a leaf starts, with the worktree as it is, or finds the
// record of the start that was cut off.
func (w *Workshop) begin(ctx context.Context, c Call) (beginning, error) {
	b, ok, err := w.begun(c.Path)
	if ok || err != nil {
		return b, err
	}
	if c.Pause != nil {
		return b, w.emit(event.StepStarted, c.Path, event.StepStart{Kind: c.Kind()})
	}
	snapshot, err := w.Stage.Snapshot(ctx, "start of "+c.Path)
	if err != nil {
		return beginning{}, err
	}
	tree, err := w.Branch.Tree(ctx)
	if err != nil {
		return beginning{}, err
	}
	start := event.StepStart{Kind: c.Kind(), Snapshot: snapshot.Commit, Tree: tree}
	if c.Review != nil || c.Arbiter != nil {
		if start.Tip, err = w.Branch.Tip(ctx); err != nil {
			return beginning{}, err
		}
	}
	if b.origin == "" {
		b.origin = tree
	}
	b.StepStart = start
	return b, w.emit(event.StepStarted, c.Path, start)
}

// remembered are the events of the session that still count.
func (w *Workshop) remembered() []event.Event { return remembered(w.Journal.Events()) }

// begun finds the start of a leaf that was cut off.
func (w *Workshop) begun(path string) (b beginning, ok bool, err error) {
	for _, e := range w.remembered() {
		var first event.StepStart
		if e.Type == event.StepStarted && b.origin == "" && leafOf(e.Path) == leafOf(path) && e.Decode(&first) == nil {
			b.origin = first.Tree
		}
		switch {
		case e.Type == event.StepStarted && e.Path == path:
			if err := e.Decode(&b.StepStart); err != nil {
				return b, false, err
			}
			b.cutOff, b.since, b.at, ok = true, e.Seq, e.Time, true
		case (e.Type == event.StepCompleted || e.Type == event.StepParked) && e.Path == path:
			// It ran, and runs again because a person said so; or it was stopped,
			// and the worktree is as it was, but for what a person did since.
			b, ok = beginning{origin: b.origin}, false
		}
	}
	return b, ok, nil
}

// leafOf is the path of a leaf without the number of the attempt.
func leafOf(path string) string { return path[:max(strings.LastIndexByte(path, '#'), 0)] }

// pause lets time pass: what is left of it when it was cut off.
func (w *Workshop) pause(ctx context.Context, c Call, b beginning) (Result, error) {
	left := c.Pause.For
	if b.cutOff {
		left -= ourclock.Since(b.at)
	}
	timer := ourclock.NewTimer(left)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return Result{}, context.Cause(ctx)
	case <-timer.C:
		return Result{OK: true, Output: "waited " + c.Pause.For.String()}, nil
	}
}

func (w *Workshop) emit(t event.Type, path string, data any) error {
	return w.Journal.Append(event.Event{Type: t, Path: path}, data)
}

// warn tells the user something that stops nothing.
func (w *Workshop) warn(path, text string) error {
	return w.emit(event.Warning, path, event.Text{Text: text})
}

// key is the same for every run of a leaf: a script that must act once on the
// world outside can ask whether it did.
func (w *Workshop) key(path string) string {
	sum := sha256.Sum256([]byte(w.Session + "\x00" + path))
	return hex.EncodeToString(sum[:16])
}
