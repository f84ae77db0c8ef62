package tui

import (
	"slices"

	"github.com/coven-run/coven/internal/board"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
)

// A how is a way to run a command line.
type how int

const (
	aside  how = iota // in a session of its own, which goes on when the screen is closed; the end of its output is shown
	inside            // on the terminal, until it ends
)

// An action is a key with the command line that does the same.
type action struct {
	key, name string
	how       how
	when      func(c board.Card) bool // whether it makes sense for a card; nil if it needs none
	args      func(c board.Card) []string
	confirm   string // a question before it, which defaults to no
	ask       string // a question for a text, which is the value of a last flag or argument
}

// actions returns the actions in the order of the help.
func actions() []action {
	begun := board.Card.Begun
	review := func(c board.Card) bool { return c.View.Shown().Reason == event.WaitReview }
	blocked := func(c board.Card) bool { return c.View.Status == session.Blocked }
	open := func(c board.Card) bool { return c.Begun() && c.View.Live() }
	task := func(words ...string) func(c board.Card) []string {
		return func(c board.Card) []string {
			return slices.Concat(words[:1], []string{c.Task}, words[1:])
		}
	}
	fixed := func(words ...string) func(board.Card) []string {
		return func(board.Card) []string { return words }
	}
	return []action{
		{key: "v", name: "review", how: inside, when: begun, args: task("review")},
		{key: "a", name: "approve", when: review, args: task("approve"), confirm: "approve and land"},
		{key: "r", name: "request changes", when: func(c board.Card) bool { return review(c) || blocked(c) }, args: task("revise", "-m"), ask: "changes for"},
		{key: "x", name: "reject", when: open, args: task("reject", "--reason"), ask: "reason to reject"},
		{key: "c", name: "cancel", when: open, args: task("cancel"), confirm: "cancel"},
		{key: "e", name: "resume", when: func(c board.Card) bool { return open(c) && c.View.Status != session.Running }, args: task("resume")},
		{key: "t", name: "retry", when: func(c board.Card) bool { return begun(c) && c.Section == board.NeedsYou }, args: task("retry"), confirm: "retry"},
		{key: "o", name: "attach", how: inside, when: func(c board.Card) bool { return c.View.Status == session.Running }, args: task("attach")},
		{key: "y", name: "why", how: inside, when: begun, args: task("why")},
		{key: "d", name: "diff", how: inside, when: begun, args: task("diff")},
		{key: "l", name: "logs", how: inside, when: begun, args: task("logs")},
		{key: "p", name: "approvals", how: inside, args: fixed("approvals", "list")},
		{key: "n", name: "new task", how: inside, args: fixed("task", "add")},
		{key: "R", name: "run", args: fixed("run")},
	}
}
