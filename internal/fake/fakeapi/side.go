package fakeapi

import "strings"

// sideAnswer recognizes small internal requests of the CLI and
// returns a harmless answer. They offer the model no tools and ask either for a
// title of the session (seen when CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC is
// unset) or for the account's quota.
func sideAnswer(request Request) (answer string, side bool) {
	if len(request.Tools) > 0 || len(request.Messages) != 1 {
		return "", false
	}
	switch {
	case strings.Contains(request.System, `Return JSON with a single "title" field`):
		return `{"title": "Scripted session"}`, true
	case request.Messages[0].Text() == "quota":
		return "ok", true
	default:
		return "", false
	}
}
