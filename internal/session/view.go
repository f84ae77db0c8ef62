package session

import (
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/event"
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
	ID       string           `json:"session_id"`
	Dir      string           `json:"-"`
	Task     string           `json:"task"`
	TraceID  string           `json:"trace_id,omitempty"` // a UUID
	Info     event.Session    `json:"info"`
	Status   event.Status     `json:"status"`
	Reason   event.WaitReason `json:"reason,omitempty"` // of waiting
	Detail   string           `json:"detail,omitempty"`
	Next     string           `json:"next,omitempty"`
	WaitsAt  string           `json:"waits_at,omitempty"` // path of the step that waits
	More     string           `json:"more,omitempty"`     // suggested increase of the budget that it waits for: usd=+5
	Until    time.Time        `json:"until,omitzero"`     // of waiting: the earliest time to resume
	Summary  string           `json:"summary,omitempty"`
	Commit   string           `json:"commit,omitempty"`
	Sandbox  string           `json:"sandbox,omitempty"` // level of the sandbox in which the session last ran
	Rescue   string           `json:"rescue,omitempty"`
	Failing  string           `json:"failing_step,omitempty"`
	Started  time.Time        `json:"started_at"`
	Updated  time.Time        `json:"updated_at"`
	Ended    time.Time        `json:"completed_at,omitzero"`
	Active   time.Duration    `json:"active_ns"` // without waiting time
	Steps    []Step           `json:"steps"`
	Usage    provider.Usage   `json:"usage"`
	Used     budget.Amount    `json:"used,omitzero"` // as in a budget, including killed attempts
	Receipts []event.Receipt  `json:"receipts"`
	Calls    []event.Decision `json:"calls"` // decisions of the gate
	Review   *Review          `json:"review,omitempty"`

	Subagents []Subagent  `json:"subagents,omitempty"`
	Grants    []Grant     `json:"permission_grants,omitempty"`
	Queue     event.Queue `json:"queue,omitzero"` // of subagents
	Approvals []Approval  `json:"approvals,omitempty"`
	Trace     []tracedRun `json:"-"` // see ExecutionTrace

	// Said is the last message of the user of a chat, and Answer what the agent answered; empty:
	// nothing yet.
	Said   string `json:"-"`
	Answer string `json:"-"`

	tokensBefore map[string]int64 // of the runs of Trace that continue

	// Reasoning is what the agents of steps wrote, and the subagents they started, in order.
	Reasoning []string        `json:"-"`
	Rounds    []Round         `json:"rounds,omitempty"`        // of review by plugins
	Open      []event.Finding `json:"open_findings,omitempty"` // error findings that are neither fixed nor accepted
	ClaimOid  string          `json:"-"`

	// Revisions are the changes that people asked for, in order.
	Revisions []Revision    `json:"revisions,omitempty"`
	Landed    event.Landing `json:"landed,omitzero"`
	Landing   event.Landing `json:"-"` // a recorded landing that is not complete
	Warnings  []string      `json:"warnings,omitempty"`

	// FailedAt is the step that ended the session, and FailedWhy the reason, also after
	// the session was cancelled or rejected. They are empty if no step has failed since
	// the session was last resumed.
	FailedAt  string `json:"-"`
	FailedWhy string `json:"-"`

	// Rejected reports whether a person rejected the change.
	Rejected bool `json:"-"`

	// Damage is the reason why an unfinished session with readable events cannot continue:
	// its plan is missing.
	Damage string `json:"damage,omitempty"`
	// Crashed reports whether the process that ran the session ended unexpectedly.
	Crashed bool `json:"crashed,omitempty"`
	// Parked is the limit for which a running session waits in its own process, or nil.
	// Shown turns it into a state.
	Parked *event.Limit `json:"limit,omitempty"`
	// Turn is what a running session waits for before it lands, or nil. It is no part of the
	// record: package control adds it.
	Turn *Turn `json:"turn,omitempty"`
	// Holder is the coven process that last ran the session: coven/<host>/<pid>. Since is
	// when it started to.
	Holder string    `json:"holder,omitempty"`
	Since  time.Time `json:"since,omitzero"`
}

// Turn is the wait of a session for its turn to land.
type Turn struct {
	Target   string    `json:"target"`           // full ref
	Position int       `json:"position"`         // among those that wait; 1: the next
	Before   []string  `json:"before,omitempty"` // tasks whose turn comes before, in order
	Task     string    `json:"task,omitempty"`   // whose turn it is; empty: nobody's, or it is not known
	Doing    string    `json:"doing,omitempty"`  // what it does: "runs its checks"
	PID      int       `json:"pid,omitempty"`    // of its coven
	Since    time.Time `json:"since,omitzero"`   // when its turn came
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
	Error     string          `json:"error,omitempty"`      // why it did not finish
	Decided   bool            `json:"decided,omitempty"`    // an arbiter decided
	Continue  bool            `json:"continue,omitempty"`   // the arbiter's decision: the findings are actionable
	LastRound bool            `json:"last_round,omitempty"` // max_iterations allows no further round
	Reason    string          `json:"reason,omitempty"`     // why
}

// Revision is what a person asked to change.
type Revision struct {
	By      string             `json:"by"`
	Changes []reviewer.Finding `json:"changes"`
}

// Review is the last question of a session, with its answer.
type Review struct {
	Path string `json:"path"` // of the step that asked
	event.MergeDecision
}

// Live reports whether the session runs or can be resumed, so that its worktree and
// claim belong to it.
func (v View) Live() bool {
	return v.Status == Running || v.Status == Waiting || v.Status == Blocked || v.Status == Interrupted
}

// Shown returns the view for display: a running session that waits for the end of a
// limit is waiting, and a session without a plan is damaged.
func (v View) Shown() View {
	if v.Damage != "" && v.Status != Running {
		v.Status, v.Reason, v.Detail = Damaged, "", v.Damage
	}
	if v.Status == Running && v.Parked != nil {
		v.Status, v.Reason, v.Until = Waiting, event.WaitLimit, v.Parked.At
	}
	if open := v.OpenApprovals(); v.Status == Running && len(open) > 0 {
		v.Status, v.Reason, v.Until, v.Next = Waiting, event.WaitApproval, open[0].Until, "coven approvals list"
		v.Detail = open[0].Agent + " asks for approval: " + open[0].Action()
	}
	return v
}

// clone returns a view that later events do not change.
func (v View) clone() View {
	v.Steps, v.Receipts = slices.Clone(v.Steps), slices.Clone(v.Receipts)
	v.Subagents, v.Grants, v.Reasoning = slices.Clone(v.Subagents), slices.Clone(v.Grants), slices.Clone(v.Reasoning)
	v.Approvals, v.Trace = slices.Clone(v.Approvals), slices.Clone(v.Trace)
	v.Calls, v.Warnings, v.Rounds = slices.Clone(v.Calls), slices.Clone(v.Warnings), slices.Clone(v.Rounds)
	return v
}

// Same reports whether two views show a session in the same state, with the same
// question.
func (v View) Same(other View) bool {
	question := func(v View) Review {
		if v.Review == nil {
			return Review{}
		}
		return *v.Review
	}
	status := func(v View) event.Status {
		if v.Status == Running {
			return Interrupted // the caller has the lock, so no process runs it
		}
		return v.Status
	}
	a, b := question(v), question(other)
	return status(v) == status(other) && v.Reason == other.Reason && a.Patch == b.Patch && a.Path == b.Path
}

// At returns the position of a session: the running step and its current action, or
// the last step that ended.
func (v View) At() string {
	if len(v.Steps) == 0 {
		return ""
	}
	last := v.Steps[len(v.Steps)-1]
	return strings.TrimSpace(strings.TrimSuffix(last.Path, "#1") + " " + last.Doing)
}
