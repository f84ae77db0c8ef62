// Package event implements the journal of a session, which has one line of JSON for each event, in
// order.
//
// A journal has one writer. Append returns only when the line is on
// disk, so nothing that depends on an event starts before it is recorded.
// Lines are never changed. All views of a session are
// computed from its events. This package also owns the types that events contain, such as
// results, statuses and waiting reasons; other packages use them under these names.
package event

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// Version is the format version of the lines that this package writes.
const Version = 1

// Type is the type of an event: "step.completed".
type Type string

// Stops reports whether the session stops working after an event of this type.
func (t Type) Stops() bool {
	switch t {
	case SessionWaiting, SessionCompleted, SessionFailed, SessionBlocked, SessionCancelled, SessionStopped:
		return true
	}
	return false
}

// Types of events. The comment contains the type of the data.
const (
	SessionStarted   Type = "session.started"     // Session
	SessionCreated   Type = "session.created"     // Created: the second event, after all files of the session were created
	SessionResumed   Type = "session.resumed"     // Resumed
	SessionWaiting   Type = "session.waiting"     // Waiting
	SessionCompleted Type = "session.completed"   // Ended
	SessionFailed    Type = "session.failed"      // Ended
	SessionBlocked   Type = "session.blocked"     // Ended
	SessionCancelled Type = "session.cancelled"   // Ended
	SessionStopped   Type = "session.interrupted" // Ended

	StepStarted   Type = "step.started"   // StepStart
	StepCompleted Type = "step.completed" // Result: for a leaf
	StepSkipped   Type = "step.skipped"   // no data: its condition was false
	StepParked    Type = "step.parked"    // no data: the step was stopped, and the worktree restored to its start

	AgentStarted     Type = "agent.started"     // AgentStart: before the process is started
	AgentText        Type = "agent.text"        // Text
	AgentTool        Type = "agent.tool"        // Tool
	AgentToolFailed  Type = "agent.tool.failed" // ToolFailure
	AgentRetry       Type = "agent.retry"       // Text
	AgentMessage     Type = "agent.message"     // Message: before the agent receives it
	AgentUsage       Type = "agent.usage"       // Usage
	AgentStuck       Type = "agent.stuck"       // Loop: the reason why coven stops the agent
	SessionCompacted Type = "session.compacted" // Compacted: older messages of a conversation were summarized
	GateDecided      Type = "gate.decided"      // Decision
	TodoChanged      Type = "todo.changed"      // Todos

	MessageCreated Type = "message.created" // ChatMessage

	PermissionRequested Type = "permission.requested" // Approval
	PermissionAnswered  Type = "permission.answered"  // ApprovalAnswer

	SpawnQueued   Type = "spawn.queued"   // Spawn
	SpawnStarted  Type = "spawn.started"  // SpawnStart
	SpawnEnded    Type = "spawn.ended"    // SpawnEnd
	SpawnRejected Type = "spawn.rejected" // SpawnRefusal

	SpawnAttempted Type = "spawn.attempted" // Attempt: by a subagent whose work is evaluated
	SpawnEvaluated Type = "spawn.evaluated" // Evaluation

	SnapshotTaken Type = "snapshot.taken" // Snapshot: on a timer while an agent works

	LimitMet  Type = "limit.met"  // Limit: the task waits, and its clocks are paused
	LimitOver Type = "limit.over" // no data: the task continues

	CheckWaiting  Type = "check.waiting"  // Text: it waits for checks of other tasks, and the clocks are paused
	CheckStarted  Type = "check.started"  // Check
	CheckRepeated Type = "check.repeated" // CheckRepeat: it failed while others ran, and runs again, alone
	CheckOnBase   Type = "check.base"     // BaseCheck: a check that failed has run without the change
	CheckEnded    Type = "check.ended"    // Receipt

	ReviewGiven Type = "review.given" // Opinion: by one reviewer

	BatchStarted Type = "batch.started" // Batch
	BatchEnded   Type = "batch.ended"   // BatchEnd

	LandIntended   Type = "land.intended"   // Landing
	LandDone       Type = "land.done"       // Landing
	MergeStarted   Type = "merge.begun"     // Merging: the worktree has a conflict that an agent must resolve
	MergeDone      Type = "merge.done"      // Integrated: git merged the target without a conflict
	ReviewAsked    Type = "review.asked"    // MergeDecision
	ReviewAnswered Type = "review.answered" // MergeDecision

	PullPublished Type = "pull.published" // PullRequest: the branch was pushed, and the pull request opened or updated
	PullSeen      Type = "pull.seen"      // PullState: of the host, if it has changed
	PullRerun     Type = "pull.rerun"     // PullCheck: a failed check runs again on the same commit
	PullAnswered  Type = "pull.answered"  // PullAnswer: to a comment
	PullMoved     Type = "pull.moved"     // PullTarget: the change on which it was stacked has landed

	TaskClaimed  Type = "task.claimed"  // Claim
	TaskClosed   Type = "task.closed"   // Text
	TaskReleased Type = "task.released" // no data
	TaskBlocked  Type = "task.blocked"  // Text

	RepositoryChanged Type = "repository.changed" // RepositoryChange: in parts that no program of a task may change

	Warning Type = "warning" // Text
)

// Event is one line of a journal.
type Event struct {
	V       int             `json:"v"`
	Seq     int64           `json:"seq"`  // 1, 2, 3, ... without gaps
	Time    time.Time       `json:"time"` // UTC, nanoseconds
	Type    Type            `json:"type"`
	Session string          `json:"session"`
	Task    string          `json:"task,omitempty"`
	Path    string          `json:"path,omitempty"` // step path with attempt: tests[2]/fix#1
	TraceID string          `json:"trace_id,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Decode decodes the data of the event into a value of the type that belongs to
// the event's Type.
func (e Event) Decode(into any) error {
	if err := json.Unmarshal(e.Data, into); err != nil {
		return fmt.Errorf("event %d (%s): %w", e.Seq, e.Type, err)
	}
	return nil
}

// As returns the data of an event, or the zero value if it cannot be decoded. Use As
// to display events, and Decode to compute views.
func As[T any](e Event) T {
	var data T
	_ = e.Decode(&data)
	return data
}

// ReviseStep is the name of the step in which an agent makes requested
// changes. The steps of the n-th revision are in the place revise@n, which is not a valid
// name of a step.
const ReviseStep = "revise"

var revising = lazyregexp.New(`^` + ReviseStep + `@\d+/` + ReviseStep + `#\d+$`)

// IsRevise reports whether path is the path of a ReviseStep.
func IsRevise(path string) bool { return revising.MatchString(path) }

// SetupStep is the name of the step that prepares a new worktree. For the n-th worktree of a
// session it is in the place worktree@n, which is not a valid name of a step.
const SetupStep = "setup"

// SetupPath returns the path of the step that prepares the n-th worktree of a session.
func SetupPath(n int) string { return fmt.Sprintf("worktree@%d/%s#1", n, SetupStep) }

// SetupNumber returns the number of the worktree in the path of a SetupStep, or 0.
func SetupNumber(path string) (n int) {
	if IsSetup(path) {
		_, _ = fmt.Sscanf(path, "worktree@%d/", &n) // it matches
	}
	return n
}

var settingUp = lazyregexp.New(`^worktree@\d+/` + SetupStep + `#1$`)

// IsSetup reports whether path is the path of a SetupStep.
func IsSetup(path string) bool { return settingUp.MatchString(path) }

// Names of the steps of a chat. The n-th turn is in the place turn[n].
const (
	TurnStep   = "turn"
	AnswerStep = "answer"
)

var answering = lazyregexp.New(`^` + TurnStep + `\[\d+\]/` + AnswerStep + `#\d+$`)

// IsAnswer reports whether path is the path of the agent in a turn of a chat.
func IsAnswer(path string) bool { return answering.MatchString(path) }

// AgentOf returns the name of the agent that an AgentStarted event is about. An agent of a reviewer that has no definition has
// the name of the reviewer.
func AgentOf(e Event) string {
	name := cmp.Or(As[AgentStart](e).Agent, "build")
	if reviewer := strings.TrimPrefix(e.Path[len(LeafOf(e.Path)):], "/"); reviewer != "" && name == "build" && !IsSpawned(e.Path) {
		return reviewer
	}
	return name
}

// LeafOf returns the path of the leaf that path refers to or is inside of. The path of a reviewer's agent is
// the path of the review followed by the name of the reviewer.
func LeafOf(path string) string {
	at := strings.LastIndexByte(path, '#') + 1
	if end := strings.IndexByte(path[at:], '/'); at > 0 && end >= 0 {
		return path[:at+end]
	}
	return path
}

// BranchName returns the short name of the ref of a target: main, or origin/main for the branch of a remote.
func BranchName(ref string) string {
	return strings.TrimPrefix(strings.TrimPrefix(ref, "refs/heads/"), "refs/remotes/")
}
