package event

import (
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
	Grimoire string `json:"grimoire"`           // its name
	Agent    string `json:"agent,omitempty"`    // at depth 0 of the first step
	Provider string `json:"provider"`           // who drives the agents
	Model    string `json:"model"`              // what the agents are asked to use
	Target   string `json:"target"`             // full ref: refs/heads/main
	Base     string `json:"base"`               // commit the worktree starts from
	Upstream string `json:"upstream,omitempty"` // the remote-tracking branch whose commit Base is, such as origin/main
	Tracker  string `json:"tracker"`            // jsonl or none
	Version  string `json:"version"`            // of coven
	Attempt  int    `json:"attempt"`            // 1 for the first session of a task
	Approve  string `json:"approve,omitempty"`  // who approves merge reviews unasked: --auto-approve
	Holder   string `json:"holder"`             // the coven that runs it: coven/<host>/<pid>
	Actor    string `json:"actor,omitempty"`    // under which the task is claimed in the tracker
	Chat     bool   `json:"chat,omitempty"`     // it is a chat: its task is a conversation
	Sandbox  string `json:"sandbox,omitempty"`  // its level: full, partial or none
	Forked   *Fork  `json:"forked_from,omitempty"`
}

// Fork is where a session was forked from: the conversation of another one.
type Fork struct {
	Session  string `json:"session_id"`
	Message  string `json:"message"`            // the ID there of the last message that both have
	Snapshot string `json:"snapshot,omitempty"` // commit of the snapshot with the worktree at that message; empty: Base has it
	Todos    []Todo `json:"todos,omitempty"`    // what was to do then
}

// Created is the data of SessionCreated.
type Created struct {
	Directory string `json:"directory"` // of the session, relative to the project: .coven/sessions/2026-01-02-add-a-flag
	Agent     string `json:"agent"`     // at depth 0 of the first step
	Title     string `json:"title"`
}

// Resumed is the data of SessionResumed.
type Resumed struct {
	// Retry is the path of a step that runs again: its recorded result is discarded.
	Retry string `json:"retry,omitempty"`
	// From discards the results of all later steps, too.
	From   bool   `json:"from,omitempty"`
	Holder string `json:"holder,omitempty"` // the coven that continues it
	// Sandbox is the level of the sandbox from here on, as in Session.
	Sandbox string `json:"sandbox,omitempty"`
	// Budget is what a person adds to the budgets that apply to the step At, where the
	// session waits for a larger budget. If At is empty, it is added only to the budget of
	// the whole run.
	Budget budget.Amount `json:"budget,omitzero"`
	At     string        `json:"at,omitempty"`
}

// Waiting is the data of SessionWaiting.
type Waiting struct {
	Reason WaitReason `json:"reason"`
	Detail string     `json:"detail"`         // one line for a person
	Next   string     `json:"next"`           // the next command
	Step   string     `json:"step,omitempty"` // path of the step that waits
	More   string     `json:"more,omitempty"` // what a person adds to a budget of the session: usd=+5
	// Until is the end of a limit: resuming before is useless. Zero: there is none.
	Until time.Time `json:"until,omitzero"`
}

// Ended is the data of the events that end a session.
type Ended struct {
	Summary string `json:"summary,omitempty"`
	Commit  string `json:"commit,omitempty"` // what landed
	Reason  string `json:"reason,omitempty"` // why it did not
	Next    string `json:"next,omitempty"`
	Step    string `json:"step,omitempty"` // path of the step that ended it
	Rescue  string `json:"rescue,omitempty"`
	// Rejected reports whether a person rejected the change.
	Rejected bool `json:"rejected,omitempty"`
}

// StepStart is the data of StepStarted.
type StepStart struct {
	Kind     string `json:"kind"`               // agent, script, review, arbiter, merge, setup
	Snapshot string `json:"snapshot,omitempty"` // commit that holds the worktree at the start
	Tree     string `json:"tree,omitempty"`     // of that commit
	Tip      string `json:"tip,omitempty"`      // commit of the task's branch; only for reviewers, arbiters and setup
}

// AgentStart is the data of AgentStarted.
type AgentStart struct {
	Agent        string `json:"agent,omitempty"` // the name of its definition; empty: build
	Conversation string `json:"conversation"`    // the CLI's own session id
	Resumed      bool   `json:"resumed,omitempty"`
	Log          int64  `json:"log_offset"` // where in the step's log this run begins, in bytes
	Prompt       string `json:"prompt"`
}

// Check is the data of CheckStarted.
type Check struct {
	Text     string `json:"text"`     // the command
	Snapshot string `json:"snapshot"` // commit of the worktree before it
}

// Text is the data of events with a text for people.
type Text struct {
	Text string `json:"text"`
}

// Message is the data of AgentMessage: a message of a person to a running agent.
type Message struct {
	ID   string `json:"id"` // a UUID, new in the session
	Text string `json:"text"`
	By   string `json:"by"` // a person's name
}

// ChatMessage is the data of MessageCreated: a message of a chat. A message of the user that has
// the path of a step which waits is the next one that the agent gets.
type ChatMessage struct {
	ID   string `json:"id"`   // a UUID
	Role string `json:"role"` // user or assistant
	Text string `json:"text"`
	By   string `json:"by,omitempty"` // the name of the user, or of the agent
}

// The roles of messages.
const (
	RoleUser      = "user"
	RoleAssistant = "assistant"
)

// Usage is the data of AgentUsage: what a run of an agent has used since its
// AgentStarted. It is recorded at the end of each answer of the model API and after each
// result, so the last one has the usage of a killed run, except for its last answer.
type Usage struct {
	Input      int64   `json:"input"`           // tokens
	Output     int64   `json:"output"`          // tokens
	CacheRead  int64   `json:"cache_read"`      // tokens
	CacheWrite int64   `json:"cache_write"`     // tokens
	Cost       float64 `json:"cost,omitempty"`  // US dollars up to the last result, as reported by the CLI; 0: no result yet
	Turns      int     `json:"turns"`           // answers of the model API
	Model      string  `json:"model,omitempty"` // id of the model that answered last
}

// Limit is the data of LimitMet: the account's API refuses requests, and no agent of
// the task is running.
type Limit struct {
	Account string    `json:"account"`
	Until   time.Time `json:"until,omitzero"` // when the limit ends, as reported by the API; zero: not reported
	Reason  string    `json:"reason"`         // one word: five_hour, rate_limit, overloaded
	At      time.Time `json:"at"`             // when the task continues automatically
}

// Compacted is the data of SessionCompacted.
type Compacted struct {
	Conversation string `json:"conversation"`
	Messages     int    `json:"messages"` // that the summary stands for, beside those of summaries before
	Kept         int    `json:"kept"`     // messages that stay as they are
	Before       int    `json:"before"`   // tokens of the request, estimated
	After        int    `json:"after"`
}

// Loop is the data of AgentStuck: calls that an agent kept repeating.
type Loop struct {
	Calls []LoopCall `json:"calls"` // of one round, in order
	Count int        `json:"count"` // rounds
}

// LoopCall is a call of a Loop, which had the same result each time.
type LoopCall struct {
	Tool   string          `json:"tool"`
	Input  json.RawMessage `json:"input"`
	Result string          `json:"result"` // at most the first 2 KiB
	Error  bool            `json:"error,omitempty"`
}

// Tool is the data of AgentTool: a call as it was seen in the agent's stream.
type Tool struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Summary string `json:"summary"` // for people: Write src/app.ts
}

// Decision is the data of GateDecided: one call that reached the gate.
type Decision struct {
	ID         string `json:"id"` // of the tool call
	Tool       string `json:"tool"`
	Permission string `json:"permission"` // file.read, file.write, bash.execute
	Subject    string `json:"subject"`    // the path or the command
	Allowed    bool   `json:"allowed"`
	Reason     string `json:"reason"` // the rule that decided
	Snapshot   int    `json:"snapshot,omitempty"`
}

// Snapshot is the data of SnapshotTaken.
type Snapshot struct {
	N      int    `json:"n"`
	Commit string `json:"commit"`
	Tree   string `json:"tree"`
	Note   string `json:"note"`
	// Clean means that a commit is known to have Tree, too: nothing is uncommitted. It is not
	// recorded.
	Clean bool `json:"-"`
}

// Receipt is the data of CheckEnded: proof, made by coven, that a command ran.
type Receipt struct {
	Command  string        `json:"command"`
	ExitCode int           `json:"exit_code"`
	Tree     string        `json:"tree"` // of the worktree when the command started
	Duration time.Duration `json:"duration_ns"`
	Log      string        `json:"log_sha256"`
	Settings string        `json:"settings,omitempty"` // sha256 of the variables and the directory that a step set; such a run is no proof for other steps
}

// Landing is a change on its way to its target, and the data of LandIntended and
// LandDone.
type Landing struct {
	Target   string `json:"target"` // full ref
	Old      string `json:"old"`    // the target's tip before
	New      string `json:"new"`    // and after; empty: not known yet
	Tree     string `json:"tree"`   // of New
	Strategy string `json:"strategy"`
	Tip      string `json:"tip,omitempty"` // of the task's branch: the part of New; with Old merged, unless others land below it
	// Head is where the target moves if changes of other tasks land above New in the same
	// move, and With lists the tasks with which the change was checked and lands.
	Head  string   `json:"head,omitempty"`
	With  []string `json:"with,omitempty"`
	Patch string   `json:"-"` // patch id; empty: there is no change, or it was read from a record
	From  string   `json:"-"` // the branch's tree before Old was merged into it; empty: read from a record
}

// Together describes with what the change was checked; empty: alone.
func (l Landing) Together() string {
	if len(l.With) == 0 {
		return ""
	}
	return ", checked together with " + strings.Join(l.With, ", ")
}

// Batch is the data of BatchStarted: the changes of several tasks are checked together, in the
// worktree of the first one.
type Batch struct {
	Tasks []string `json:"tasks"` // in the order in which they land
	Tree  string   `json:"tree"`  // with all changes
	// Snapshot is the commit of the worktree before; only in the session of the first task.
	Snapshot string `json:"snapshot,omitempty"`
}

// BatchEnd is the data of BatchEnded: the checks passed, or why they did not.
type BatchEnd struct {
	Passed bool   `json:"passed,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Merging is the data of MergeStarted.
type Merging struct {
	Target   string   `json:"target"`   // commit of the target that is merged
	Snapshot string   `json:"snapshot"` // commit of the worktree with the conflict
	Tree     string   `json:"tree"`     // that a commit of the worktree would have
	Files    []string `json:"files"`    // in conflict
}

// MergeDecision is the data of ReviewAsked and ReviewAnswered. It is bound to a
// patch: an answer to another patch does not count.
type MergeDecision struct {
	Patch    string `json:"patch"`             // patch id of the change to land
	Tree     string `json:"tree,omitempty"`    // the tree to land, or the tree that the person saw
	Message  string `json:"message,omitempty"` // of the commit that it lands as; only asked
	Approved bool   `json:"approved,omitempty"`
	By       string `json:"by,omitempty"` // a person's name, or --auto-approve
	Reason   string `json:"reason,omitempty"`
	// Accepted lists the open error findings that the person accepts with the
	// change; only answered.
	Accepted []Finding `json:"accepted,omitempty"`
	// Changes lists what the person asks to change; only answered, and not approved.
	Changes []reviewer.Finding `json:"changes,omitempty"`
}

// Finding is a reviewer's finding, with the step that has it reviewed.
type Finding struct {
	Step     string `json:"step"` // path without iterations and attempts: quality/review
	Reviewer string `json:"reviewer"`
	reviewer.Finding
}

// Opinion is the data of ReviewGiven: a reviewer's opinion of a change.
type Opinion struct {
	arbiter.Opinion
	Tree        string   `json:"tree"` // the worktree that it is about
	Suggestions []string `json:"suggestions,omitempty"`
	Summary     string   `json:"summary,omitempty"`
	Flagged     bool     `json:"flagged,omitempty"`   // verdict "pass" contradicts an error finding: it counts as fail
	Truncated   string   `json:"truncated,omitempty"` // the parts of the change that the reviewer did not see
}

// Integrated is the data of MergeDone: the target's tip was merged into a tree without
// a conflict.
type Integrated struct {
	From string `json:"from"` // tree of the task's worktree before
	Tree string `json:"tree"` // and after
}

// Claim is the data of TaskClaimed.
type Claim struct {
	Oid    string `json:"oid"` // what landing verifies
	Holder string `json:"holder"`
}

// The statuses of a Todo.
const (
	TodoPending    = "pending"
	TodoInProgress = "in_progress"
	TodoDone       = "done"
)

// Todo is something that an agent has to do.
type Todo struct {
	Text   string `json:"text"`
	Status string `json:"status"` // pending, in_progress or done
}

// Todos is the whole list of an agent, after a change.
type Todos struct {
	Spawn string `json:"spawn,omitempty"` // path of the subagent or the reviewer whose list it is; empty: that of the session
	Items []Todo `json:"items"`
}
