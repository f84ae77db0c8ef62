package event

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/reviewer"
)

// Session is the data of SessionStarted.
type Session struct {
	Project  string `json:"project"`            // absolute path of the main checkout
	Query    string `json:"query"`              // the task's title, or the prompt of run -p
	Grimoire string `json:"grimoire"`           // name of the grimoire
	Agent    string `json:"agent,omitempty"`    // agent of the first step, at depth 0
	Provider string `json:"provider"`           // provider of the agents
	Model    string `json:"model"`              // model of the agents
	Target   string `json:"target"`             // full ref: refs/heads/main
	Base     string `json:"base"`               // commit from which the worktree starts
	Upstream string `json:"upstream,omitempty"` // remote-tracking branch of Base, such as origin/main
	Tracker  string `json:"tracker"`            // jsonl or none
	Version  string `json:"version"`            // version of coven
	Attempt  int    `json:"attempt"`            // 1 for the first session of a task
	Approve  string `json:"approve,omitempty"`  // approves merge reviews without asking: --auto-approve
	Holder   string `json:"holder"`             // coven process that runs the session: coven/<host>/<pid>
	Actor    string `json:"actor,omitempty"`    // actor that claims the task in the tracker
	Chat     bool   `json:"chat,omitempty"`     // whether the session is a chat, whose task is a conversation
	Sandbox  string `json:"sandbox,omitempty"`  // level of the sandbox: full, partial or none
	Forked   *Fork  `json:"forked_from,omitempty"`
	Remote   string `json:"remote,omitempty"` // the remote that keeps the session, such as origin
	// StackedOn is the task whose pull request has the branch of Target, until that has landed.
	StackedOn string `json:"stacked_on,omitempty"`

	Budget budget.Amount `json:"budget,omitzero"` // of the whole run
}

// TargetBranch returns the short name of the target: main, or origin/main for the branch of a remote.
func (s Session) TargetBranch() string { return BranchName(s.Target) }

// Fork is the origin of a forked session: a message in the conversation of another session.
type Fork struct {
	Session  string `json:"session_id"`
	Message  string `json:"message"`            // ID of the last common message in the other session
	Snapshot string `json:"snapshot,omitempty"` // commit of the worktree's snapshot at that message; empty if it is Base
	Todos    []Todo `json:"todos,omitempty"`    // the todo list at that message
}

// Created is the data of SessionCreated.
type Created struct {
	Directory string `json:"directory"` // directory of the session, relative to the project: .coven/sessions/2026-01-02-add-a-flag
	Agent     string `json:"agent"`     // agent of the first step, at depth 0
	Title     string `json:"title"`
}

// Resumed is the data of SessionResumed.
type Resumed struct {
	// Retry is the path of a step to run again. Its recorded result is discarded.
	Retry string `json:"retry,omitempty"`
	// From means that the results of all later steps are discarded, too.
	From bool `json:"from,omitempty"`
	// Fresh means that no earlier conversation of an agent is continued: a new one takes over.
	Fresh bool `json:"fresh,omitempty"`
	// Provider and Model replace those of the session. Empty ones do not change. A new provider also begins new
	// conversations.
	Provider string `json:"provider,omitempty"`
	Model    string `json:"model,omitempty"`
	// Settings names the parts of the session's plan that are replaced by the present settings. Receipts and approvals before
	// that do not count.
	Settings []string      `json:"settings,omitempty"`
	Limit    budget.Amount `json:"limit,omitzero"`   // with Settings: the budget of the whole run
	Holder   string        `json:"holder,omitempty"` // coven process that continues the session
	// Sandbox is the level of the sandbox from now on, as in Session.
	Sandbox string `json:"sandbox,omitempty"`
	// Budget is added to the budgets that apply to the step At, which
	// waits for a larger budget. If At is empty, it is added only to the budget of
	// the whole run.
	Budget budget.Amount `json:"budget,omitzero"`
	At     string        `json:"at,omitempty"`
}

// WorktreeSettings names the commands that set a worktree up and tear it down, in Settings of Resumed.
const WorktreeSettings = "worktree"

// Switched returns the session with the provider and the model with which it was resumed.
func (s Session) Switched(r Resumed) Session {
	if r.Provider != "" {
		s.Provider, s.Model = r.Provider, r.Model
	}
	s.Model = cmp.Or(r.Model, s.Model)
	if len(r.Settings) > 0 {
		s.Budget = r.Limit
	}
	return s
}

// Waiting is the data of SessionWaiting.
type Waiting struct {
	Reason WaitReason `json:"reason"`
	Detail string     `json:"detail"`         // one line
	Next   string     `json:"next"`           // the next command
	Step   string     `json:"step,omitempty"` // path of the waiting step
	More   string     `json:"more,omitempty"` // suggested budget increase: usd=+5
	// Until is the end of a limit, before which resuming is useless. It is zero if there is none. If a budget has an end, it is
	// that of the repository for a day.
	Until time.Time `json:"until,omitzero"`
}

// ForDay reports whether the session waits because the budget of the repository for a day is spent.
func (w Waiting) ForDay() bool { return w.Reason == WaitBudget && !w.Until.IsZero() }

// Ended is the data of the events that end a session.
type Ended struct {
	Summary string `json:"summary,omitempty"`
	Commit  string `json:"commit,omitempty"` // landed commit
	Reason  string `json:"reason,omitempty"` // why nothing landed
	Next    string `json:"next,omitempty"`
	Step    string `json:"step,omitempty"` // path of the step that ended the session
	Rescue  string `json:"rescue,omitempty"`
	// Rejected reports whether a person rejected the change.
	Rejected bool `json:"rejected,omitempty"`
}

// StepStart is the data of StepStarted.
type StepStart struct {
	Kind     string `json:"kind"`               // agent, script, review, arbiter, merge, setup
	Snapshot string `json:"snapshot,omitempty"` // commit of the worktree's snapshot at the start
	Tree     string `json:"tree,omitempty"`     // tree of that commit
	Tip      string `json:"tip,omitempty"`      // commit of the task's branch; only for reviewers, arbiters and setup
}

// AgentStart is the data of AgentStarted.
type AgentStart struct {
	Agent        string `json:"agent,omitempty"` // name of its definition; empty for build
	Conversation string `json:"conversation"`    // session ID of the agent CLI
	Resumed      bool   `json:"resumed,omitempty"`
	Log          int64  `json:"log_offset"` // start of this run in the step's log, in bytes
	Prompt       string `json:"prompt"`
}

// Check is the data of CheckStarted.
type Check struct {
	Text     string `json:"text"`           // command
	Snapshot string `json:"snapshot"`       // commit of the worktree's snapshot before the check
	Base     bool   `json:"base,omitempty"` // it runs without the change: see CheckOnBase
}

// BaseCheck is the data of CheckOnBase.
type BaseCheck struct {
	Text     string `json:"text"` // command
	ExitCode int    `json:"exit_code"`
	Same     bool   `json:"same"` // it failed in the same way as with the change
}

// CheckRepeat is the data of CheckRepeated.
type CheckRepeat struct {
	Text   string `json:"text"`   // command
	Tree   string `json:"tree"`   // on which it failed
	Beside string `json:"beside"` // the other tasks whose checks ran at the same time
}

// Text is the data of events that only have a text for people.
type Text struct {
	Text string `json:"text"`
}

// Message is the data of AgentMessage: a person's message to a running agent.
type Message struct {
	ID   string `json:"id"` // UUID, unique in the session
	Text string `json:"text"`
	By   string `json:"by"` // the person's name
}

// ChatMessage is the data of MessageCreated: a message of a chat. A message of the user with
// the path of a waiting step is the agent's next message.
type ChatMessage struct {
	ID   string `json:"id"`   // UUID
	Role string `json:"role"` // user or assistant
	Text string `json:"text"`
	By   string `json:"by,omitempty"` // name of the user or the agent
}

// Roles of messages.
const (
	RoleUser      = "user"
	RoleAssistant = "assistant"
)

// Usage is the data of AgentUsage: the usage of an agent's run since its
// AgentStarted. It is recorded after each answer of the model API and after each
// result, so the last one has the usage of a killed run except for its last answer.
type Usage struct {
	Input      int64   `json:"input"`           // tokens
	Output     int64   `json:"output"`          // tokens
	CacheRead  int64   `json:"cache_read"`      // tokens
	CacheWrite int64   `json:"cache_write"`     // tokens
	Cost       float64 `json:"cost,omitempty"`  // US dollars up to the last result, as reported by the CLI; 0 before the first result
	Turns      int     `json:"turns"`           // answers of the model API
	Model      string  `json:"model,omitempty"` // ID of the model that answered last
}

// Limit is the data of LimitMet: the API refuses the account's requests, and no agent of
// the task is running.
type Limit struct {
	Account string    `json:"account"`
	Until   time.Time `json:"until,omitzero"` // end of the limit as reported by the API, or zero
	Reason  string    `json:"reason"`         // one word: five_hour, rate_limit, overloaded
	At      time.Time `json:"at"`             // time at which the task continues automatically
}

// Compacted is the data of SessionCompacted.
type Compacted struct {
	Conversation string `json:"conversation"`
	Messages     int    `json:"messages"` // number of newly summarized messages
	Kept         int    `json:"kept"`     // number of messages that are not summarized
	Before       int    `json:"before"`   // estimated tokens of the request before
	After        int    `json:"after"`
}

// Loop is the data of AgentStuck: the repeated calls of an agent.
type Loop struct {
	Calls []LoopCall `json:"calls"` // calls of one round, in order
	Count int        `json:"count"` // number of rounds
}

// LoopCall is a call of a Loop. It had the same result in each round.
type LoopCall struct {
	Tool   string          `json:"tool"`
	Input  json.RawMessage `json:"input"`
	Result string          `json:"result"` // at most the first 2 KiB
	Error  bool            `json:"error,omitempty"`
}

// Tool is the data of AgentTool: a call in the agent's output.
type Tool struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Summary string `json:"summary"` // for people, such as: Write src/app.ts
}

// ToolFailure is the data of AgentToolFailed: the failure of a call that was allowed.
type ToolFailure struct {
	ID    string `json:"id"`
	Error string `json:"error"` // the beginning, in one line
}

// Decision is the data of GateDecided: a call that reached the gate.
type Decision struct {
	ID         string `json:"id"` // ID of the tool call
	Tool       string `json:"tool"`
	Permission string `json:"permission"` // file.read, file.write, bash.execute
	Subject    string `json:"subject"`    // path, command, or other subject
	Allowed    bool   `json:"allowed"`
	Reason     string `json:"reason"` // the deciding rule
	Snapshot   int    `json:"snapshot,omitempty"`
}

// Snapshot is the data of SnapshotTaken.
type Snapshot struct {
	N      int    `json:"n"`
	Commit string `json:"commit"`
	Tree   string `json:"tree"`
	Note   string `json:"note"`
	// Clean means that a commit has the same Tree, so nothing is uncommitted. It is not
	// recorded.
	Clean bool `json:"-"`
}

// LogPart is the output of a command in the log of its step, as it is stored: without secrets.
type LogPart struct {
	Sum  string `json:"log_sha256"`
	At   int64  `json:"log_at,omitempty"`   // offset
	Size int64  `json:"log_size,omitempty"` // older versions did not record it; their sum is that of the output with its secrets
}

// Receipt is the data of CheckEnded: coven's proof that a command ran.
type Receipt struct {
	Command  string        `json:"command"`
	ExitCode int           `json:"exit_code"`
	Tree     string        `json:"tree"` // tree of the worktree when the command started
	Duration time.Duration `json:"duration_ns"`
	LogPart
	Settings string `json:"settings,omitempty"` // sha256 of the variables and the directory set by a step; such a receipt is not valid for other steps
	// FailedBeside names tasks whose checks ran while the check failed for the first time. The receipt is that of its
	// second run, alone.
	FailedBeside string `json:"failed_beside,omitempty"`
	// NotIsolated means that the command could read the files of the main checkout instead of those in the tree: without
	// a sandbox, or where the user's settings show them.
	NotIsolated bool `json:"not_isolated,omitempty"`
	// Read describes the files that the command read outside the worktree, such as "3 in node_modules". Reads is the sha256 of their list, which
	// has the format of sha256sum: the name of a file in the session's directory reads. They are empty if there are no such files,
	// or if they could not be recorded.
	Read  string `json:"read,omitempty"`
	Reads string `json:"reads_sha256,omitempty"`
	// Reused is the session in which the command passed, if it was not run again because nothing that it read there has
	// changed.
	Reused string `json:"reused,omitempty"`
}

// Landing is a change that is landing, and the data of LandIntended and
// LandDone.
type Landing struct {
	Target   string `json:"target"` // full ref
	Old      string `json:"old"`    // the target's tip before
	New      string `json:"new"`    // the target's tip after; empty if not known yet
	Tree     string `json:"tree"`   // tree of New
	Strategy string `json:"strategy"`
	Tip      string `json:"tip,omitempty"` // tip of the task's branch, the task's part of New; includes a merge of Old unless it lands on top of other tasks
	// Head is the new tip of the target if changes of other tasks land on top of New in the same
	// update. With lists the tasks with which the change was checked and lands.
	Head  string   `json:"head,omitempty"`
	With  []string `json:"with,omitempty"`
	Patch string   `json:"-"` // patch ID; empty if there is no change or it was read from a record
	Many  string   `json:"-"` // describes the new files if they are too many to land without a person
	From  string   `json:"-"` // tree of the branch before Old was merged into it; empty if read from a record
	// Dropped names the commits that the target contained when the change started and no longer contains, if the branch has
	// just been rebased without them. Empty if read from a record.
	Dropped string `json:"-"`
}

// Together describes the tasks with which the change was checked. It returns "" if there are none.
func (l Landing) Together() string {
	if len(l.With) == 0 {
		return ""
	}
	return ", checked together with " + strings.Join(l.With, ", ")
}

// Batch is the data of BatchStarted: the changes of several tasks are checked together in the
// worktree of the first task.
type Batch struct {
	Tasks []string `json:"tasks"` // in landing order
	Tree  string   `json:"tree"`  // tree with all changes
	// Snapshot is the commit of the worktree's previous state. It is set only in the session of the first task.
	Snapshot string `json:"snapshot,omitempty"`
}

// BatchEnd is the data of BatchEnded: whether the checks passed, or the reason for a failure.
type BatchEnd struct {
	Passed bool   `json:"passed,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Merging is the data of MergeStarted.
type Merging struct {
	Target   string   `json:"target"`   // commit of the target that is being merged
	Snapshot string   `json:"snapshot"` // commit of the worktree's snapshot with the conflict
	Tree     string   `json:"tree"`     // tree that a commit of the worktree would have
	Files    []string `json:"files"`    // files in conflict
	// Dropped names the commits that the target contained when the change started and no longer contains. The change
	// conflicts because it builds on them.
	Dropped string `json:"dropped,omitempty"`
}

// MergeDecision is the data of ReviewAsked and ReviewAnswered. It is bound to a
// patch: an answer for another patch is ignored.
type MergeDecision struct {
	Patch    string `json:"patch"`             // patch ID of the change
	Tree     string `json:"tree,omitempty"`    // tree to land, or tree that the person saw
	Message  string `json:"message,omitempty"` // commit message; in ReviewAnswered the person's
	Approved bool   `json:"approved,omitempty"`
	By       string `json:"by,omitempty"` // a person's name, or --auto-approve
	Reason   string `json:"reason,omitempty"`
	// Accepted lists the open error findings that the person accepts with the
	// change. It is set only in ReviewAnswered.
	Accepted []Finding `json:"accepted,omitempty"`
	// Changes lists requested changes. It is set only in a ReviewAnswered without approval.
	Changes []reviewer.Finding `json:"changes,omitempty"`
	// Comments are the IDs of the comments of the person's review with which Changes begins.
	Comments []string `json:"comments,omitempty"`
	// Remote are the IDs of the same comments on the host of the pull request. It is empty for a comment that does not come from there.
	Remote []string `json:"remote,omitempty"`
}

// Finding is a reviewer's finding, with the step that was reviewed.
type Finding struct {
	Step     string `json:"step"` // path without iterations and attempts: quality/review
	Reviewer string `json:"reviewer"`
	reviewer.Finding
}

// Opinion is the data of ReviewGiven: a reviewer's opinion of a change.
type Opinion struct {
	arbiter.Opinion
	Tree        string   `json:"tree"` // tree of the reviewed worktree
	Suggestions []string `json:"suggestions,omitempty"`
	Summary     string   `json:"summary,omitempty"`
	Flagged     bool     `json:"flagged,omitempty"`   // verdict "pass" contradicts an error finding, so it counts as fail
	Truncated   string   `json:"truncated,omitempty"` // parts of the change that the reviewer did not see
}

// Integrated is the data of MergeDone: the target's tip was merged into the worktree without
// a conflict.
type Integrated struct {
	From string `json:"from"` // tree of the task's worktree before
	Tree string `json:"tree"` // tree of the task's worktree after
}

// Claim is the data of TaskClaimed.
type Claim struct {
	Oid    string `json:"oid"` // verified when landing
	Holder string `json:"holder"`
}

// Statuses of a Todo.
const (
	TodoPending    = "pending"
	TodoInProgress = "in_progress"
	TodoDone       = "done"
)

// Todo is an item of an agent's todo list.
type Todo struct {
	Text   string `json:"text"`
	Status string `json:"status"` // pending, in_progress or done
}

// Todos is the data of TodoChanged: an agent's complete list after a change.
type Todos struct {
	Spawn string `json:"spawn,omitempty"` // path of the list's subagent or reviewer; empty for the session's list
	Items []Todo `json:"items"`
}
