package session

import (
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session/away"
	"github.com/coven-run/coven/internal/session/collision"
	"github.com/coven-run/coven/plugins/provider"
	"github.com/coven-run/coven/plugins/reviewer"
)

// The states of a session.
const (
	Running     = event.StatusRunning
	Waiting     = event.StatusWaiting
	Completed   = event.StatusCompleted
	Failed      = event.StatusFailed
	Blocked     = event.StatusBlocked
	Cancelled   = event.StatusCancelled
	Interrupted = event.StatusInterrupted
)

// View is the state of a session, computed from its events.
type View struct {
	ID       string        `json:"session_id"`
	Dir      string        `json:"-"`
	Task     string        `json:"task"`
	TraceID  string        `json:"trace_id,omitempty"` // a UUID
	ClaimOid string        `json:"-"`
	Info     event.Session `json:"info"`
	State
	Outcome
	Timing
	History
	Chat

	added        budget.Amount    // by users to the budgets
	tokensBefore map[string]int64 // tokens of continued runs before they continued
}

// WaitsForWorker reports whether a session waits for a worker on another machine.
func (v View) WaitsForWorker() bool { return v.Status == Waiting && v.Reason == event.WaitWorker }

// WaitsForHost reports whether the session waits for the host of its pull request.
func (v View) WaitsForHost() bool {
	return v.Status == Waiting && (v.Reason == event.WaitCI || v.Reason == event.WaitMerge) && v.Pull != nil
}

// State is the current state of a session.
type State struct {
	Status  event.Status     `json:"status"`
	Reason  event.WaitReason `json:"reason,omitempty"` // reason for waiting
	Detail  string           `json:"detail,omitempty"`
	Next    string           `json:"next,omitempty"`         // the next command
	WaitsAt string           `json:"waits_at,omitempty"`     // path of the step that waits
	More    string           `json:"more,omitempty"`         // suggested budget increase if it waits for one: usd=+5
	Until   time.Time        `json:"until,omitzero"`         // earliest time to resume a waiting session
	Failing string           `json:"failing_step,omitempty"` // the step that ended or interrupted the last run
	// Damage is the reason why an unfinished session cannot continue although its events are
	// readable: its plan is missing or invalid.
	Damage string `json:"damage,omitempty"`
	// Crashed reports whether the process that ran the session ended unexpectedly.
	Crashed bool `json:"crashed,omitempty"`
	// Parked is the limit that a running session waits for in its own process, or nil.
	// Shown converts it to a status.
	Parked *event.Limit `json:"limit,omitempty"`
	// Turn describes a running session's wait for its turn to land, or is nil. It is not part of the
	// record: package control sets it.
	Turn *Turn `json:"turn,omitempty"`
	// Collisions are predicted conflicts with the changes of other tasks. They are not part of the record: package control
	// sets them.
	Collisions []collision.Collision `json:"collisions,omitempty"`
	// Away is set if another machine has continued or ended the session.
	Away *away.State `json:"away,omitempty"`
	// Worktree is the directory of the task's worktree, if it exists. It is not part of the record: package control sets it.
	Worktree string `json:"worktree,omitempty"`
	// Holder is the coven process that last ran the session: coven/<host>/<pid>. Since is
	// the time when it started to do so, and Sandbox its sandbox level.
	Holder  string    `json:"holder,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	Sandbox string    `json:"sandbox,omitempty"`
}

// Outcome is the result of a session so far.
type Outcome struct {
	Summary string        `json:"summary,omitempty"`
	Commit  string        `json:"commit,omitempty"`
	Rescue  string        `json:"rescue,omitempty"`
	Landed  event.Landing `json:"landed,omitzero"`
	Landing event.Landing `json:"-"` // an intended landing that is not complete

	// FailedAt is the step that ended the session, and FailedWhy the reason. They are kept when
	// the session is cancelled or rejected, and cleared when it is resumed.
	FailedAt  string `json:"-"`
	FailedWhy string `json:"-"`
	// Rejected reports whether a person rejected the change.
	Rejected bool `json:"-"`
}

// Timing has the times and the usage of a session.
type Timing struct {
	Started time.Time      `json:"started_at"`
	Updated time.Time      `json:"updated_at"`
	Ended   time.Time      `json:"completed_at,omitzero"`
	Active  time.Duration  `json:"active_ns"` // excludes waiting time
	Usage   provider.Usage `json:"usage"`
	Used    budget.Amount  `json:"used,omitzero"`   // counted like a budget: includes killed attempts
	Limit   budget.Amount  `json:"budget,omitzero"` // the budget of the whole run, with the amounts that users have added
}

// History lists the events of a session by kind, each in order.
type History struct {
	Steps    []Step           `json:"steps"`
	Receipts []event.Receipt  `json:"receipts"`
	Calls    []event.Decision `json:"calls"` // decisions of the gate

	Subagents []Subagent  `json:"subagents,omitempty"`
	Queue     event.Queue `json:"queue,omitzero"` // queue of subagents
	Grants    []Grant     `json:"permission_grants,omitempty"`
	Approvals []Approval  `json:"approvals,omitempty"`

	Rounds []Round         `json:"rounds,omitempty"`        // review rounds by plugins
	Open   []event.Finding `json:"open_findings,omitempty"` // error findings that are neither fixed nor accepted
	Review *Review         `json:"review,omitempty"`        // the last question to a person
	// Pull is the pull request of the change, as it was last published.
	Pull      *event.PullRequest `json:"pull_request,omitempty"`
	Revisions []Revision         `json:"revisions,omitempty"` // requested changes of people
	Warnings  []string           `json:"warnings,omitempty"`

	// Reasoning lists the texts of the steps' agents and the subagents that they started.
	Reasoning []string    `json:"-"`
	Trace     []tracedRun `json:"-"` // see ExecutionTrace
}

// Chat is the current turn of a chat: the last message of the user, and the agent's answer, which is empty if there
// is none yet.
type Chat struct {
	Said   string `json:"-"`
	Answer string `json:"-"`
}

// Turn describes a session that waits for its turn to land.
type Turn struct {
	Target   string    `json:"target"`           // full ref
	Position int       `json:"position"`         // in the queue; 1 for the next
	Before   []string  `json:"before,omitempty"` // tasks ahead in the queue, in order
	Task     string    `json:"task,omitempty"`   // the task whose turn it is; empty if unknown or none
	Doing    string    `json:"doing,omitempty"`  // its current activity: "runs its checks"
	PID      int       `json:"pid,omitempty"`    // of the coven that runs Task
	Since    time.Time `json:"since,omitzero"`   // start of its turn
}

// Step is one leaf of a session.
type Step struct {
	Path      string       `json:"path"`
	Kind      string       `json:"kind"`
	Status    event.Status `json:"status"` // running, completed, failed
	StartedAt time.Time    `json:"started_at"`
	EndedAt   time.Time    `json:"completed_at,omitzero"`
	Summary   string       `json:"summary,omitempty"`
	Error     string       `json:"error,omitempty"`
	Doing     string       `json:"doing,omitempty"` // the last tool call or check of a running step
}

// Round is a review by plugins and its outcome.
type Round struct {
	Path      string          `json:"path"`
	Patch     string          `json:"patch,omitempty"` // patch id of the reviewed change
	Opinions  []event.Opinion `json:"opinions"`
	Error     string          `json:"error,omitempty"`      // why it did not complete
	Decided   bool            `json:"decided,omitempty"`    // an arbiter decided
	Continue  bool            `json:"continue,omitempty"`   // the arbiter's decision: the findings are actionable
	LastRound bool            `json:"last_round,omitempty"` // max_iterations allows no further round
	Reason    string          `json:"reason,omitempty"`     // why
}

// Revision is a person's request for changes.
type Revision struct {
	By      string             `json:"by"`
	Changes []reviewer.Finding `json:"changes"`
}

// Review is the last review question of a session, with its answer.
type Review struct {
	Path string `json:"path"` // of the step that asked
	event.MergeDecision
}

// WaitsForDay reports whether the session waits because the budget of the repository for a day, which ends at Until, is spent.
func (v View) WaitsForDay() bool {
	return v.Status == Waiting && event.Waiting{Reason: v.Reason, Until: v.Until}.ForDay()
}

// Live reports whether the session is running or can be resumed, so that it owns its worktree and
// claim.
func (v View) Live() bool {
	return v.Status == Running || v.Status == Waiting || v.Status == Blocked || v.Status == Interrupted
}

// Unfinished reports whether the session is live, or can be retried because it failed by its grimoire.
func (v View) Unfinished() bool { return v.Live() || v.Status == Failed && !v.Rejected }

// Elsewhere reports whether another machine has the session. The record here is a copy of its last one, see Mirror.
func (v View) Elsewhere() bool { return v.Away != nil && v.Away.Tip != "" }

// Shown returns the view for display: a running session that waits for a limit or an approval
// is shown as waiting, a session with a damaged plan as damaged, and one that another machine has ended as interrupted.
func (v View) Shown() View {
	if v.Away != nil && !v.Elsewhere() {
		v.Status, v.Reason = Interrupted, ""
		return v
	}
	if v.Damage != "" && v.Status != Running {
		v.Status, v.Reason, v.Detail = Damaged, "", v.Damage
	}
	if v.Status == Running && v.Parked != nil {
		v.Status, v.Reason, v.Until = Waiting, event.WaitLimit, v.Parked.At
	}
	if open := v.OpenApprovals(); v.Status == Running && len(open) > 0 {
		v.Status, v.Reason, v.Until, v.Next = Waiting, event.WaitApproval, open[0].Until, "coven approvals list"
		v.Detail = open[0].Agent + " asks for approval: " + open[0].Action()
		if v.Elsewhere() {
			v.Detail = v.Away.Text(v.Detail)
		}
	}
	return v
}

// clone returns a copy that later events do not change.
func (v View) clone() View {
	v.Steps, v.Receipts = slices.Clone(v.Steps), slices.Clone(v.Receipts)
	v.Subagents, v.Grants, v.Reasoning = slices.Clone(v.Subagents), slices.Clone(v.Grants), slices.Clone(v.Reasoning)
	v.Approvals, v.Trace = slices.Clone(v.Approvals), slices.Clone(v.Trace)
	v.Calls, v.Warnings, v.Rounds = slices.Clone(v.Calls), slices.Clone(v.Warnings), slices.Clone(v.Rounds)
	return v
}

// Same reports whether two views show the same state and the same review question.
func (v View) Same(other View) bool {
	question := func(v View) Review {
		if v.Review == nil {
			return Review{}
		}
		return *v.Review
	}
	status := func(v View) event.Status {
		if v.Status == Running {
			return Interrupted // the caller holds the lock, so no process runs it
		}
		return v.Status
	}
	a, b := question(v), question(other)
	return status(v) == status(other) && v.Reason == other.Reason && a.Patch == b.Patch && a.Path == b.Path
}

// At returns the position of a session: its latest step, with the current action if the step
// is running.
func (v View) At() string {
	if len(v.Steps) == 0 {
		return ""
	}
	last := v.Steps[len(v.Steps)-1]
	return strings.TrimSpace(strings.TrimSuffix(last.Path, "#1") + " " + last.Doing)
}
