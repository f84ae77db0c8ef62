package session

import (
	"time"

	"github.com/coven-run/coven/internal/event"
)

// Approval is a question about a tool call, and its answer.
type Approval struct {
	event.Approval
	Path    string                `json:"path"`               // of the step
	TraceID string                `json:"trace_id,omitempty"` // of the subagent that asks, if one does
	Asked   time.Time             `json:"asked"`
	Answer  *event.ApprovalAnswer `json:"answer,omitempty"`
	At      time.Time             `json:"answered,omitzero"`
}

// Open reports whether the question has no answer yet.
func (a Approval) Open() bool { return a.Answer == nil }

// approval adds an approval request or an answer.
func (v *View) approval(e event.Event) error {
	switch e.Type {
	case event.PermissionAnswered:
		return v.approvalAnswered(e)
	case event.PermissionRequested:
		a := Approval{Path: e.Path, TraceID: e.TraceID, Asked: e.Time}
		if err := e.Decode(&a.Approval); err != nil {
			return err
		}
		v.Approvals = append(v.Approvals, a)
	}
	return nil
}

func (v *View) approvalAnswered(e event.Event) error {
	var answer event.ApprovalAnswer
	if err := e.Decode(&answer); err != nil {
		return err
	}
	for i := range v.Approvals {
		if a := &v.Approvals[i]; a.N == answer.N && a.Open() {
			a.Answer, a.At = &answer, e.Time
		}
	}
	return nil
}

// closeApprovals closes the open questions of a session that has ended. Questions stay open if the process was killed.
func (v *View) closeApprovals(at time.Time) {
	for i := range v.Approvals {
		if a := &v.Approvals[i]; a.Open() {
			a.Answer, a.At = &event.ApprovalAnswer{N: a.N, Answer: event.Unasked, Reason: "the session ended"}, at
		}
	}
}

// OpenApprovals returns the questions without an answer.
func (v View) OpenApprovals() (open []Approval) {
	for _, a := range v.Approvals {
		if a.Open() {
			open = append(open, a)
		}
	}
	return open
}

// approvalEntry is an entry of the audit trail.
type approvalEntry struct {
	N        int                 `json:"n"`
	Agent    string              `json:"agent"`
	Action   string              `json:"action"`
	Asked    time.Time           `json:"asked"`
	When     time.Time           `json:"when,omitzero"`
	Who      string              `json:"who,omitempty"`
	Decision string              `json:"decision"` // an event.Answer, or pending
	Reason   string              `json:"reason,omitempty"`
	Session  bool                `json:"for_session,omitempty"`
	Modified *event.Modification `json:"modified,omitempty"`
	TraceID  string              `json:"trace_id,omitempty"`
}

func (a Approval) entry() approvalEntry {
	e := approvalEntry{N: a.N, Agent: a.Agent, Action: a.Action(), Asked: a.Asked, Decision: "pending", TraceID: a.TraceID}
	if a.Answer != nil {
		e.When, e.Who, e.Decision, e.Reason, e.Session, e.Modified = a.At, a.Answer.By, string(a.Answer.Answer), a.Answer.Reason, a.Answer.Session, a.Answer.Modified
	}
	return e
}

// Action describes the call in one line: "write src/app.ts".
func (a Approval) Action() string { return a.Tool + " " + a.Subject }
