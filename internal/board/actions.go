package board

import (
	"slices"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
)

// An Action is a command line of coven that a face offers.
type Action struct {
	Key, Name string
	Inside    bool              // needs a terminal; else it runs in a session of its own, which outlives the face
	When      func(c Card) bool // whether it makes sense for a card; nil if it needs none
	Args      func(c Card) []string
	Confirm   string // a question before it, which defaults to no
	Ask       string // a question for a text, which is the value of a last flag or argument
}

// Actions returns the actions in the order of a help.
func Actions() []Action {
	begun := Card.Begun
	review := func(c Card) bool { return c.View.Shown().Reason == event.WaitReview }
	blocked := func(c Card) bool { return c.View.Status == session.Blocked }
	open := func(c Card) bool { return c.Begun() && c.View.Live() }
	task := func(words ...string) func(c Card) []string {
		return func(c Card) []string {
			return slices.Concat(words[:1], []string{c.Task}, words[1:])
		}
	}
	fixed := func(words ...string) func(Card) []string {
		return func(Card) []string { return words }
	}
	return []Action{
		{Key: "v", Name: "review", Inside: true, When: begun, Args: task("review")},
		{Key: "a", Name: "approve", When: review, Args: task("approve"), Confirm: "approve and land"},
		{Key: "r", Name: "request changes", When: func(c Card) bool { return review(c) || blocked(c) }, Args: task("revise", "-m"), Ask: "changes for"},
		{Key: "x", Name: "reject", When: open, Args: task("reject", "--reason"), Ask: "reason to reject"},
		{Key: "c", Name: "cancel", When: open, Args: task("cancel"), Confirm: "cancel"},
		{Key: "e", Name: "resume", When: func(c Card) bool { return open(c) && c.View.Status != session.Running }, Args: task("resume")},
		{Key: "t", Name: "retry", When: func(c Card) bool { return begun(c) && c.Section == NeedsYou }, Args: task("retry"), Confirm: "retry"},
		{Key: "o", Name: "attach", Inside: true, When: func(c Card) bool { return c.View.Status == session.Running }, Args: task("attach")},
		{Key: "y", Name: "why", Inside: true, When: begun, Args: task("why")},
		{Key: "d", Name: "diff", Inside: true, When: begun, Args: task("diff")},
		{Key: "l", Name: "logs", Inside: true, When: begun, Args: task("logs")},
		{Key: "p", Name: "approvals", Inside: true, Args: fixed("approvals", "list")},
		{Key: "n", Name: "new task", Inside: true, Args: fixed("task", "add")},
		{Key: "R", Name: "run", Args: fixed("run")},
	}
}
