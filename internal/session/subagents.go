package session

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/coven-run/coven/internal/agent/reflection"
	"github.com/coven-run/coven/internal/agent/spawn"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/process/failpoint"
)

// queued is the status of a subagent that waits for its turn.
const queued = "queued"

// Subagent is an agent that an agent of the session started.
type Subagent struct {
	event.Spawn
	TraceID  string            `json:"trace_id"`
	Status   event.Status      `json:"status"` // queued, running, completed, partial, failed, cancelled, interrupted
	QueuedAt time.Time         `json:"queued_at"`
	Started  time.Time         `json:"spawned_at,omitzero"`
	Ended    time.Time         `json:"completed_at,omitzero"`
	Queued   int64             `json:"queued_ms"`
	Duration int64             `json:"duration_ms"`
	Summary  string            `json:"summary,omitempty"`
	Report   string            `json:"-"`
	Error    *event.SpawnError `json:"error,omitempty"`
	Tokens   Tokens            `json:"tokens"`
	CostUSD  float64           `json:"cost_usd"`
	Turns    int               `json:"turns,omitempty"` // turns of the model

	Attempt          int         `json:"attempt,omitempty"` // attempt that Report belongs to; 0 if the work was not evaluated
	ReflectionFailed bool        `json:"reflection_failed,omitempty"`
	Kept             string      `json:"kept,omitempty"` // why the worktree differs from the result of Attempt
	Reflection       []Reflected `json:"reflection,omitempty"`

	step string // path of its caller's leaf
}

// Reflected is an attempt of a subagent with its evaluation.
type Reflected struct {
	Attempt  int             `json:"attempt"`
	Passed   bool            `json:"passed"`
	Score    float64         `json:"score"`
	Critique string          `json:"critique"`
	Error    string          `json:"error,omitempty"` // why it was not evaluated
	Snapshot *event.Snapshot `json:"snapshot,omitempty"`
	Report   string          `json:"-"`
}

// Grant is an entry of the audit trail: the permissions of a subagent, or why it was not started.
type Grant struct {
	Time        time.Time `json:"time"`
	Agent       string    `json:"agent"`
	ID          string    `json:"id,omitempty"` // of the subagent
	Decision    string    `json:"decision"`     // granted or rejected
	Permissions []string  `json:"permissions,omitempty"`
	Inherited   bool      `json:"inherited"`
	Permission  string    `json:"permission,omitempty"` // permission that the caller lacks
	Reason      string    `json:"reason,omitempty"`
	TraceID     string    `json:"trace_id,omitempty"`
	ParentChain []string  `json:"parent_chain"`
}

// spawned processes an event about a subagent.
func (v *View) spawned(e event.Event) error {
	switch e.Type {
	case event.SpawnQueued:
		s := Subagent{TraceID: e.TraceID, Status: queued, QueuedAt: e.Time, step: event.LeafOf(e.Path)}
		if err := e.Decode(&s.Spawn); err != nil {
			return err
		}
		if filepath.Base(s.ID) != s.ID || s.ID == ".." { // the ID is part of a file name
			return fmt.Errorf("the subagent %q has no valid ID", s.ID)
		}
		v.Queue, s.Queue = s.Queue, event.Queue{}
		v.Subagents = append(v.Subagents, s)
		v.Grants = append(v.Grants, Grant{
			Time: e.Time, Agent: s.Agent, ID: s.ID, Decision: "granted", Permissions: s.Permissions, Inherited: s.Inherited,
			TraceID: e.TraceID, ParentChain: s.ParentChain,
		})
	case event.SpawnStarted:
		var start event.SpawnStart
		if err := e.Decode(&start); err != nil {
			return err
		}
		v.Queue = start.Queue
		if s := v.subagent(start.ID); s != nil {
			s.Status, s.Started, s.Queued = Running, e.Time, e.Time.Sub(s.QueuedAt).Milliseconds()
			v.Reasoning = append(v.Reasoning, fmt.Sprintf("Spawning %s agent: [[%s]]", s.Agent, s.ID))
		}
	case event.SpawnEnded:
		return v.spawnEnded(e)
	case event.SpawnAttempted, event.SpawnEvaluated:
		return v.reflected(e)
	case event.SpawnRejected:
		var r event.SpawnRefusal
		if err := e.Decode(&r); err != nil {
			return err
		}
		v.Grants = append(v.Grants, Grant{
			Time: e.Time, Agent: r.Agent, Decision: "rejected", Permission: r.Permission, Reason: r.Reason, TraceID: e.TraceID, ParentChain: r.ParentChain,
		})
	}
	return nil
}

func (v *View) spawnEnded(e event.Event) error {
	var end event.SpawnEnd
	if err := e.Decode(&end); err != nil {
		return err
	}
	s := v.subagent(end.ID)
	if s == nil {
		return nil
	}
	if s.Started.IsZero() { // it never left the queue
		s.Started, s.Queued = e.Time, e.Time.Sub(s.QueuedAt).Milliseconds()
		v.Reasoning = append(v.Reasoning, fmt.Sprintf("Spawning %s agent: [[%s]]", s.Agent, s.ID))
		v.Queue.Depth = max(v.Queue.Depth-1, 0)
	} else if v.Queue.Current == s.Agent {
		v.Queue.Current = ""
	}
	s.Status, s.Ended, s.Duration = end.Status, e.Time, e.Time.UnixMilli()-s.Started.UnixMilli()
	s.Summary, s.Report, s.Error, s.CostUSD = end.Summary, end.Report, end.Error, end.CostUSD
	s.Tokens = Tokens{Input: end.Input, Output: end.Output, Total: end.Input + end.Output}
	s.Turns, s.Attempt, s.ReflectionFailed, s.Kept = end.Turns, end.Attempt, end.ReflectionFailed, end.Kept
	return nil
}

// notEvaluated is the error of an attempt whose evaluation is not recorded.
const notEvaluated = "it was not evaluated"

// reflected adds an attempt of a subagent, or its evaluation.
func (v *View) reflected(e event.Event) error {
	if e.Type == event.SpawnAttempted {
		var a event.Attempt
		if err := e.Decode(&a); err != nil {
			return err
		}
		r := Reflected{Attempt: a.Attempt, Error: notEvaluated, Snapshot: a.Snapshot, Report: a.Report}
		if a.Error != nil {
			r.Error = fmt.Sprintf("%s: %s", a.Error.Type, a.Error.Message)
		}
		if s := v.subagent(a.ID); s != nil {
			s.Reflection = append(slices.Clip(s.Reflection), r)
		}
		return nil
	}
	var given event.Evaluation
	if err := e.Decode(&given); err != nil {
		return err
	}
	if s := v.subagent(given.ID); s != nil {
		s.Reflection = slices.Clone(s.Reflection) // earlier views share the slice
		for i, r := range s.Reflection {
			if r.Attempt == given.Attempt {
				r.Passed, r.Score, r.Critique, r.Error = given.Passed, given.Score, given.Critique, given.Error
				s.Reflection[i] = r
			}
		}
	}
	return nil
}

// subagent returns the subagent with an ID, or nil.
func (v *View) subagent(id string) *Subagent {
	for i := range v.Subagents {
		if v.Subagents[i].ID == id {
			return &v.Subagents[i]
		}
	}
	return nil
}

// Subagent returns the subagent with an ID.
func (v View) Subagent(id string) (Subagent, bool) {
	if s := v.subagent(id); s != nil {
		return *s, true
	}
	return Subagent{}, false
}

// Document returns the record of a subagent for its caller, with the attempt that counts.
func (s Subagent) Document(session string) (string, error) {
	front := spawn.Front{
		SubagentOf: session, AgentName: s.Agent, Status: string(s.Status), SpawnedAt: spawn.Stamp(s.Started), CompletedAt: spawn.Stamp(s.Ended),
		DurationMS: s.Duration, QueuedMS: s.Queued, Model: s.Model, ModelSource: s.ModelSource,
		Tokens: s.Tokens.Total, TokensInput: s.Tokens.Input, TokensOutput: s.Tokens.Output, CostUSD: s.CostUSD, Turns: s.Turns,
		Depth: s.Depth, Permissions: s.Permissions, Inherited: s.Inherited, TraceID: s.TraceID, ParentChain: s.ParentChain,
		Attempt: s.Attempt, ReflectionFailed: s.ReflectionFailed,
	}
	for _, r := range s.Reflection {
		front.Reflection = append(front.Reflection, spawn.FrontAttempt{Attempt: r.Attempt, Passed: r.Passed, Score: r.Score, Critique: r.Critique, Error: r.Error})
	}
	if s.Error != nil {
		front.Error = &spawn.FrontFail{Type: string(s.Error.Type), Message: s.Error.Message, Stack: s.Error.Stack}
	}
	text, err := spawn.Document(front, s.Task, s.Verdict(), s.Report)
	return readable(text), err
}

// Verdict returns a note if no attempt passed its evaluation, or else "".
func (s Subagent) Verdict() string {
	if !s.ReflectionFailed {
		return ""
	}
	score := 0.0
	for _, r := range s.Reflection {
		if r.Attempt == s.Attempt {
			score = r.Score
		}
	}
	text := reflection.Failed(s.Agent, s.Attempt, len(s.Reflection), score)
	if s.Kept != "" {
		text += " Note: " + s.Kept + "."
	}
	return text
}

// record returns the content of a subagent's file: its document and the reports of the other attempts.
func (s Subagent) record(session string) (string, error) {
	text, err := s.Document(session)
	if err != nil {
		return "", err
	}
	var others []spawn.Past
	for _, r := range s.Reflection {
		if r.Attempt != s.Attempt {
			others = append(others, spawn.Past{Attempt: r.Attempt, Report: r.Report})
		}
	}
	return text + readable(spawn.Attempts(others)), nil
}

// writeSubagents writes the records of the subagents whose state has changed since the last write.
func (s *Session) writeSubagents(v View) error {
	for _, sub := range v.Subagents {
		state := fmt.Sprint(sub.Status, len(sub.Reflection))
		if s.written[sub.ID] == state || sub.Started.IsZero() {
			continue
		}
		file := filepath.Join(s.Dir, sub.ID+".md")
		text, err := sub.record(s.ID)
		if err != nil {
			return err
		}
		if old, err := regularfile.ReadIn(s.Dir, sub.ID+".md", int64(len(text))); err != nil || string(old) != text {
			if err := regularfile.Replace(file, []byte(text), fileMode); err != nil {
				return fmt.Errorf("write %s.md: %w", sub.ID, err)
			}
		}
		s.written[sub.ID] = state
		failpoint.Point("session.subagent.written")
	}
	return nil
}
