package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/config/check"
	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/reviewer"
)

// This file declares the interfaces of everything that the package needs from outside. The caller
// implements them; fakes_test.go contains a fake of each.

// journal is the record of the session: its events, and the raw output of its steps.
type journal interface {
	Events() []event.Event
	// Append makes an event durable before it returns.
	Append(e event.Event, data any) error
	// OpenLog opens the log of a step for appending. at is its current size.
	OpenLog(path string) (log io.WriteCloser, at int64, err error)
	ReadLog(path string, from int64) (io.ReadCloser, error)
}

type tracker interface {
	Close(ctx context.Context, summary, commit string) error
	Block(ctx context.Context, why string) error
	Release(ctx context.Context, why string) error
	// Note adds a note to the task. After an interruption, it may be added twice.
	Note(ctx context.Context, text string) error
}

// claims claims the task for this session.
type claims interface {
	Claim(ctx context.Context) (event.Claim, error)
	Release(ctx context.Context) error
}

// workspace is the task's worktree and branch.
type workspace interface {
	// Enter opens the worktree, and creates it if necessary. n is 1 for the first worktree of the task, and
	// is incremented each time that it is created again.
	Enter(ctx context.Context) (n int, err error)
	// Leave removes the worktree, if it exists. landed is the tip of the task's branch that has landed, or
	// empty. rescue is the ref of work that has not landed.
	Leave(ctx context.Context, landed string) (rescue string, err error)
	// Snapshot saves the current worktree.
	Snapshot(ctx context.Context, note string) (event.Snapshot, error)
	// Restore restores the worktree to a snapshot.
	Restore(ctx context.Context, commit string) error
	// Changed returns the files that differ between two snapshots.
	Changed(ctx context.Context, from, to string) ([]string, error)
	// Tree returns the tree that a commit of the worktree would have.
	Tree(ctx context.Context) (string, error)
	// Commit commits uncommitted changes. merges is the commit of the target that has been merged in the
	// worktree. It may be empty.
	Commit(ctx context.Context, message, merges string) (Commit, error)
	// Tip returns the commit of the branch.
	Tip(ctx context.Context) (string, error)
	// PutTip moves the branch back. Its commits are saved under the ref rescue.
	PutTip(ctx context.Context, tip, note string) (rescue string, err error)
}

// tripwire detects changes in the parts of the repository that no program of the task may change.
type tripwire interface {
	// Watch records the state of these parts.
	Watch(ctx context.Context) error
	// Compare returns the changes since Watch, or nil. No program of the task may still be running. Until
	// EndWatch is called, it returns the same changes, also after a crash.
	Compare(ctx context.Context) (*event.RepositoryChange, error)
	// EndWatch ends Watch. Call it after recording the result of Compare.
	EndWatch() error
}

// Commit is the state of the task branch after workspace.Commit.
type Commit struct {
	Oid   string
	Tree  string
	Files []string // files in the new commit; empty if there was nothing to commit
}

// RefusedError means that the worktree must not be committed or landed in this state.
type RefusedError struct {
	Reason string // one line for a person, and for an agent that fixes the problem
	Output string // output of the hook that refused
	Next   string // the coven command that helps, "VERB ARGUMENTS"; empty for resume
}

func (e *RefusedError) Error() string { return e.Reason }

// landing integrates and lands the task branch.
type landing interface {
	// Turn waits until no other session lands on the target. Sessions are served in order.
	Turn(ctx context.Context) (Turn, error)
	// Integrate merges the target's tip into the task branch and its worktree. It returns the candidate: a
	// Landing without New and Strategy.
	Integrate(ctx context.Context) (event.Landing, error)
	// Conflict writes a conflict with the target to the worktree, for an agent to resolve. Target of the
	// returned Merging is empty if there is no longer a conflict; Snapshot and Tree are always empty. A
	// *RefusedError means that an agent cannot resolve the conflict.
	Conflict(ctx context.Context) (event.Merging, error)
	// Stack merges the task branch onto a candidate of another task, without changing the branch or the
	// worktree. New of the returned candidate is a commit with the changes of both, to be checked.
	Stack(ctx context.Context, below event.Landing) (event.Landing, error)
	// Land moves the target, once, to the last of the changes: the candidate that Integrate returned, and
	// those that are stacked on it. Before anything moves, it calls the Intent of each change, which
	// records the landing.
	Land(ctx context.Context, changes []Change) ([]event.Landing, error)
	// PushCommand returns the command that pushes the task branch to the remote of its target, or "" if
	// there is no such remote.
	PushCommand(ctx context.Context) (string, error)
	// Recover completes or undoes an interrupted landing.
	Recover(ctx context.Context, intent event.Landing) (landed bool, err error)
}

// Change is a change to land.
type Change struct {
	Of        landing
	Candidate event.Landing
	Message   string
	Intent    func(event.Landing) error
}

// Turn is the exclusive right to land on a target.
type Turn struct {
	alone bool // the session's change is not checked together with others

	Doing   func(what string) // sets the description that other waiters see: "runs its checks"
	Release func()
}

// ErrMoved means that the target has moved since Integrate.
var ErrMoved = errors.New("the target moved")

// ConflictError means that the branch and its target changed the same lines.
type ConflictError struct {
	Target string
	Files  []string
	Dir    string // the worktree, in which a person can resolve the conflict
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("conflict with %s in %s (to resolve it: git merge %s, in %s)",
		e.Target, strings.Join(e.Files, ", "), shellword.Word(e.Target), shellword.Word(e.Dir))
}

type agents interface {
	// Await waits until the provider's account has no known rate limit. While it waits, the clocks of the
	// step are paused. The error is a *Wait if the wait would be too long.
	Await(ctx context.Context, path, provider string) error
	Run(ctx context.Context, run AgentRun) (driver.Report, error)
	// Reader returns the provider and the model of the agent definition that a plugin asks for. The error
	// is pluginerr.ErrInvalid if there is no definition with this name.
	Reader(name string) (provider, model string, err error)
	// Instructions returns the parts of the system text of an agent of a step.
	Instructions(ctx context.Context, run AgentRun) ([]grimoires.PromptPart, error)
	// Recall reads the report of an interrupted run from its transcript. complete reports whether the agent
	// had already given its result.
	Recall(ctx context.Context, provider string, transcript io.Reader) (report driver.Report, complete bool, err error)
}

// AgentRun is one run of an agent for a step.
type AgentRun struct {
	Path         string
	Key          string // COVEN_STEP_KEY
	Conversation string
	Resume       bool
	Prompt       string
	Agent        string // name of the agent definition, empty for build
	Model        string
	Provider     string   // empty for the plan's provider
	Env          []string // KEY=VALUE, with marks for secrets: tmpl.Reveal
	Workdir      string   // relative to the worktree
	ReadOnly     bool     // the agent may only read the worktree
	Chat         bool     // the agent talks with a person, and the prompt is a message
	Transcript   io.Writer
	// Spend is called after each turn of the model with the usage of the run so far. If it returns an
	// error, the agent is stopped.
	Spend func(used event.Usage) error
	// Subagent returns the Charge for a run of a subagent that the agent starts.
	Subagent func() Charge
}

// Charge receives the usage of one run of a subagent.
type Charge struct {
	Spend func(used event.Usage) error // like AgentRun.Spend
	Ended func(driver.Report)
}

// commands runs shell commands in a sandbox in the worktree.
type commands interface {
	Run(ctx context.Context, c Command) (Ran, error)
	// Reserve waits until a check may run beside those of other tasks, or alone. It calls waiting with the reason.
	Reserve(ctx context.Context, c check.Check, alone bool, waiting func(reason string) error) (Reservation, error)
	// Start returns the commit from which the change starts, for a check that runs without the change. It may be empty.
	Start(ctx context.Context) (string, error)
	// Prepared is called after the commands of setup. It leaves the present untracked files out of the task's change,
	// and returns them.
	Prepared(ctx context.Context) (files []string, err error)
	// Rehearse tries the hooks, filters and the signature of a commit with a message. The error is a *RefusedError if one
	// of them fails.
	Rehearse(ctx context.Context, message string) error
}

// Reservation is the right of a check to run.
type Reservation struct {
	Beside  func() []string // the other tasks whose checks have run since
	Release func()          // further calls do nothing
}

// Command is one shell command of a step.
type Command struct {
	Shell      string    // for sh -c
	Env        []string  // KEY=VALUE, with marks for secrets: tmpl.Reveal
	Secrets    []string  // names of the secrets that the command uses
	Workdir    string    // relative to the worktree
	Setup      bool      // it may read the files of the main checkout, to copy them
	TTY        bool      // its output is a terminal instead of a pipe
	Reuse      bool      // it need not run if nothing that it reads has changed since it last passed
	Transcript io.Writer // set by the executor
}

// Ran is the result of a command.
type Ran struct {
	ExitCode int
	Output   string        // terminal output, with the middle cut out if it is long
	Stopped  string        // the reason why coven stopped it, empty if it exited
	Duration time.Duration // wall clock
	// NotIsolated means that it could read the files of the main checkout instead of those of the worktree.
	NotIsolated bool
	// Read, Reads and Reused are those of its receipt.
	Read, Reads, Reused string
	logged              event.LogPart
	Keep                func() // lets a later command with Reuse rely on the success; it may be nil
}

type reviewers interface {
	// Change returns the change in the worktree and its patch ID. Texts that are too long for a plugin are
	// truncated; Change.Truncated describes the missing parts.
	Change(ctx context.Context) (change reviewer.Change, patch string, err error)
	Review(ctx context.Context, plugin string, change reviewer.Change, services *HostServices) (reviewer.Review, error)
	Decide(ctx context.Context, plugin string, question arbiter.Question, services *HostServices) (arbiter.Decision, error)
}
