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
	Subject    string          `json:"subject"`         // path, command, or other subject, possibly shortened
	Exact      string          `json:"exact,omitempty"` // hash of the permission and the whole subject, to which an answer for the session applies
	Input      json.RawMessage `json:"input"`
	Reason     string          `json:"reason"` // why a person is asked
	Impact     string          `json:"impact"` // one line
	Reversible bool            `json:"reversible"`
	Preview    string          `json:"preview,omitempty"` // a unified diff
	Until      time.Time       `json:"until"`             // time at which the question expires
}

// ApprovalAnswer is the data of PermissionAnswered.
type ApprovalAnswer struct {
	N        int           `json:"n"`
	Answer   Answer        `json:"answer"`
	By       string        `json:"by,omitempty"` // a person's name
	Reason   string        `json:"reason,omitempty"`
	Session  bool          `json:"for_session,omitempty"` // the same call is not asked about again in the session
	Modified *Modification `json:"modified,omitempty"`
	Request  string        `json:"request,omitempty"` // ID of the answering person's request
}

// Modification is the input of a call, before and after a person modified it.
type Modification struct {
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}

// Answer is the outcome of an approval request.
type Answer string

// Outcomes of approval requests.
const (
	Approved    Answer = "approved"
	Denied      Answer = "denied"
	Modified    Answer = "modified"      // approved with modified input
	Expired     Answer = "timeout"       // no answer in time
	AutoApprove Answer = "auto-approved" // no answer in time, and the definition approves then
	Unasked     Answer = "interrupted"   // the agent or coven ended first
)
