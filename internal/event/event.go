// Package event has the journal of a session: one line of JSON for each event, in
// order.
//
// Rules. A journal has one writer. Append returns only when the line is on
// disk, so nothing that depends on an event starts before it is recorded.
// Lines are never changed. Everything that a person or a program sees of a session is
// computed from its events. This package also owns the types that events carry, such as
// results, statuses and waiting reasons: other packages use them under these names.
package event

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/lazyregexp"
)

// Version is the format of the lines that this package writes.
const Version = 1

// Type is the type of an event: "step.completed".
type Type string

// Stops reports whether the session stops working with an event of this type.
func (t Type) Stops() bool {
	switch t {
	case SessionWaiting, SessionCompleted, SessionFailed, SessionBlocked, SessionCancelled, SessionStopped:
		return true
	}
	return false
}

// The types of events. The comment names the type of the data.
const (
	SessionStarted   Type = "session.started"     // Session
	SessionCreated   Type = "session.created"     // Created: the second event, when all files of the session are there
	SessionResumed   Type = "session.resumed"     // Resumed
	SessionWaiting   Type = "session.waiting"     // Waiting
	SessionCompleted Type = "session.completed"   // Ended
	SessionFailed    Type = "session.failed"      // Ended
	SessionBlocked   Type = "session.blocked"     // Ended
	SessionCancelled Type = "session.cancelled"   // Ended
	SessionStopped   Type = "session.interrupted" // Ended

	StepStarted   Type = "step.started"   // StepStart
	StepCompleted Type = "step.completed" // Result: of a leaf
	StepSkipped   Type = "step.skipped"   // none: its condition was false
	StepParked    Type = "step.parked"    // none: the step was stopped, and the worktree restored to its start

	AgentStarted     Type = "agent.started"     // AgentStart: before the process exists
	AgentText        Type = "agent.text"        // Text
	AgentTool        Type = "agent.tool"        // Tool
	AgentRetry       Type = "agent.retry"       // Text
	AgentMessage     Type = "agent.message"     // Message: before the agent receives it
	AgentUsage       Type = "agent.usage"       // Usage
	AgentStuck       Type = "agent.stuck"       // Loop: why coven stops the agent
	SessionCompacted Type = "session.compacted" // Compacted: older messages of a conversation are summarized
	GateDecided      Type = "gate.decided"      // Decision
	TodoChanged      Type = "todo.changed"      // Todos: of an agent

	MessageCreated Type = "message.created" // ChatMessage: of a chat

	PermissionRequested Type = "permission.requested" // Approval
	PermissionAnswered  Type = "permission.answered"  // ApprovalAnswer

	SpawnQueued   Type = "spawn.queued"   // Spawn
	SpawnStarted  Type = "spawn.started"  // SpawnStart
	SpawnEnded    Type = "spawn.ended"    // SpawnEnd
	SpawnRejected Type = "spawn.rejected" // SpawnRefusal

	SpawnAttempted Type = "spawn.attempted" // Attempt: of a subagent whose work is evaluated
	SpawnEvaluated Type = "spawn.evaluated" // Evaluation: of an attempt

	SnapshotTaken Type = "snapshot.taken" // Snapshot: on a timer, while an agent works

	LimitMet  Type = "limit.met"  // Limit: the task waits, and its clocks stop
	LimitOver Type = "limit.over" // none: it continues

	CheckStarted Type = "check.started" // Check
	CheckEnded   Type = "check.ended"   // Receipt

	ReviewGiven Type = "review.given" // Opinion: of one reviewer

	BatchStarted Type = "batch.started" // Batch
	BatchEnded   Type = "batch.ended"   // BatchEnd

	LandIntended   Type = "land.intended"   // Landing
	LandDone       Type = "land.done"       // Landing
	MergeStarted   Type = "merge.begun"     // Merging: a conflict is in the worktree, for an agent to resolve
	MergeDone      Type = "merge.done"      // Integrated: git alone brought the target in
	ReviewAsked    Type = "review.asked"    // MergeDecision
	ReviewAnswered Type = "review.answered" // MergeDecision

	TaskClaimed  Type = "task.claimed"  // Claim
	TaskClosed   Type = "task.closed"   // Text
	TaskReleased Type = "task.released" // none
	TaskBlocked  Type = "task.blocked"  // Text

	RepositoryChanged Type = "repository.changed" // RepositoryChange: what no program of a task may change

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

// Decode reads the data of the event into a value of the type that belongs to
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

// ReviseStep is the name of the step in which an agent makes the changes that a person
// asked for. The steps of the n-th revision have the place revise@n, which cannot be the
// name of a step.
const ReviseStep = "revise"

var revising = lazyregexp.New(`^` + ReviseStep + `@\d+/` + ReviseStep + `#\d+$`)

// IsRevise reports whether path is that of a ReviseStep.
func IsRevise(path string) bool { return revising.MatchString(path) }

// SetupStep is the name of the step that prepares a new worktree. For the n-th worktree of a
// session it has the place worktree@n, which cannot be the name of a step.
const SetupStep = "setup"

// SetupPath returns the path of the step that prepares the n-th worktree of a session.
func SetupPath(n int) string { return fmt.Sprintf("worktree@%d/%s#1", n, SetupStep) }

var settingUp = lazyregexp.New(`^worktree@\d+/` + SetupStep + `#1$`)

// IsSetup reports whether path is that of a SetupStep.
func IsSetup(path string) bool { return settingUp.MatchString(path) }

// The names of the steps of a chat: the n-th turn has the place turn[n].
const (
	TurnStep   = "turn"
	AnswerStep = "answer"
)

var answering = lazyregexp.New(`^` + TurnStep + `\[\d+\]/` + AnswerStep + `#\d+$`)

// IsAnswer reports whether path is that of the agent in a turn of a chat.
func IsAnswer(path string) bool { return answering.MatchString(path) }

// LeafOf returns the path of the leaf that path names or is inside. The agents of a
// reviewer have the path of the review with the name of the reviewer appended.
func LeafOf(path string) string {
	at := strings.LastIndexByte(path, '#') + 1
	if end := strings.IndexByte(path[at:], '/'); at > 0 && end >= 0 {
		return path[:at+end]
	}
	return path
}
