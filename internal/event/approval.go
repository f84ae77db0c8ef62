package event

import (
	"encoding/json"
	"time"
)

// Approval is the data of PermissionRequested: a tool call waits for a person's answer.
type Approval struct {
	N          int             `json:"n"` // in the session: 1, 2, 3, ...
	Call       string          `json:"call"`
	Agent      string          `json:"agent"`
	Tool       string          `json:"tool"`
	Permission string          `json:"permission"`
	Subject    string          `json:"subject"` // the path or the command
	Input      json.RawMessage `json:"input"`
	Reason     string          `json:"reason"` // why a person is asked
	Impact     string          `json:"impact"` // one line
	Reversible bool            `json:"reversible"`
	Preview    string          `json:"preview,omitempty"` // a unified diff
	Until      time.Time       `json:"until"`             // when nobody is waited for any longer
}

// ApprovalAnswer is the data of PermissionAnswered.
type ApprovalAnswer struct {
	N        int           `json:"n"`
	Answer   Answer        `json:"answer"`
	By       string        `json:"by,omitempty"` // a person's name
	Reason   string        `json:"reason,omitempty"`
	Session  bool          `json:"for_session,omitempty"` // the same is not asked again in the session
	Modified *Modification `json:"modified,omitempty"`
	Request  string        `json:"request,omitempty"` // ID of the request of the person who answered
}

// Modification is the input of a call, before and after a person modified it.
type Modification struct {
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}

// Answer is what became of a question.
type Answer string

// The answers.
const (
	Approved    Answer = "approved"
	Denied      Answer = "denied"
	Modified    Answer = "modified"      // approved with another input
	Expired     Answer = "timeout"       // nobody answered in time
	AutoApprove Answer = "auto-approved" // nobody answered in time, and the definition says so
	Unasked     Answer = "interrupted"   // the agent or coven ended first
)
