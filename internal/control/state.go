package control

import (
	"strings"

	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/internal/text/shellword"
)

// StateOf returns the state of a session as text, such as "waiting (review)".
func StateOf(v session.View) string {
	v = v.Shown()
	switch {
	case v.Rejected:
		return "rejected"
	case v.Reason != "":
		return string(v.Status) + " (" + string(v.Reason) + ")"
	}
	return string(v.Status)
}

// NextOf returns the command that continues a session, or "" if it is running or has
// completed.
func NextOf(v session.View) string {
	switch {
	case v.Away != nil && !v.Elsewhere():
		return v.Next
	case v.Damage != "" && v.Status != session.Running:
		return "coven cancel " + shellword.Word(v.Task)
	case v.Info.Chat && (v.Status == session.Interrupted || WaitsForMessage(v)):
		return ChatCommand(v.ID)
	case HasOpenErrors(v):
		return "coven review " + shellword.Word(v.Task)
	case v.Next != "":
		return v.Next
	case WaitsForReview(v):
		return "coven review " + shellword.Word(v.Task)
	case v.Status == session.Interrupted, v.Status == session.Waiting, v.Status == session.Blocked:
		return "coven resume " + shellword.Word(v.Task)
	case v.Status == session.Failed, v.Status == session.Cancelled:
		return again(v)
	}
	return ""
}

// again returns the command for another attempt after a session is over.
func again(v session.View) string {
	if v.Info.Chat {
		return "coven chat"
	}
	return "coven run " + shellword.Word(v.Task)
}

// HasOpenErrors reports whether a session waits for a person because of open error
// findings.
func HasOpenErrors(v session.View) bool {
	return WaitsForReview(v) && len(v.Open) > 0
}

// DetailOf returns why a session is in its state, in one line.
func DetailOf(v session.View) string {
	detail := oneline.Of(v.Detail)
	if v.Status == session.Cancelled || v.Rejected {
		detail = strings.TrimPrefix(strings.TrimPrefix(detail, "cancelled "), "rejected: ") // it follows the state
	}
	return detail
}
