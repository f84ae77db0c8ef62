package board

import (
	"slices"
	"strconv"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
)

// An Action is a command line of coven that a face offers.
type Action struct {
	Key, Name string
	Inside    bool              // needs a terminal; else it runs in a session of its own, which outlives the face
	Reads     bool              // only prints: a face may show its output
	When      func(c Card) bool // whether it makes sense for a card; nil if it needs none
	Args      func(c Card) []string
	Confirm   string              // a question before it, which defaults to no
	Ask       string              // a question for a text, which is the value of a last flag or argument
	About     func(c Card) string // ends the question; nil for the short ID
	Suggest   func(c Card) string // the text that Ask begins with; nil for none
}

// Subject ends a question about the card.
func (a Action) Subject(c Card) string {
	if a.About != nil {
		return a.About(c)
	}
	return c.Short
}

// Asks returns the oldest open question of an agent about a tool call. ok is false if there is none.
func (c Card) Asks() (q session.Approval, ok bool) {
	if open := c.View.OpenApprovals(); c.View.Status == session.Running && len(open) > 0 {
		return open[0], true
	}
	return session.Approval{}, false
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
	asking := func(c Card) bool { return c.Section == NeedsYou && c.View.Dir != "" }
	asked := func(c Card) bool { _, ok := c.Asks(); return ok }
	answer := func(words ...string) func(c Card) []string {
		return func(c Card) []string {
			number := "N"
			if q, ok := c.Asks(); ok {
				number = strconv.Itoa(q.N)
			}
			return slices.Concat([]string{"approvals", words[0], c.Task, number}, words[1:])
		}
	}
	call := func(c Card) string {
		q, _ := c.Asks()
		return c.Short + ": " + line(q.Action())
	}
	fixed := func(words ...string) func(Card) []string {
		return func(Card) []string { return words }
	}
	return []Action{
		{Key: "v", Name: "review", Inside: true, When: begun, Args: task("review")},
		{Key: "a", Name: "allow", When: asked, Args: answer("approve"), Confirm: "allow", About: call},
		{Key: "x", Name: "deny", When: asked, Args: answer("deny", "--reason"), Ask: "reason to deny", About: call},
		{Key: "a", Name: "approve", When: review, Args: task("approve"), Confirm: "approve and land"},
		{Key: "r", Name: "request changes", When: func(c Card) bool { return review(c) || blocked(c) }, Args: task("revise", "-m"), Ask: "changes for"},
		{Key: "x", Name: "reject", When: open, Args: task("reject", "--reason"), Ask: "reason to reject"},
		{Key: "c", Name: "cancel", When: open, Args: task("cancel"), Confirm: "cancel"},
		{Key: "e", Name: "resume", When: func(c Card) bool { return open(c) && c.View.Status != session.Running && !review(c) }, Args: task("resume")},
		{Key: "t", Name: "retry", When: func(c Card) bool { return begun(c) && c.Section == NeedsYou && c.View.Status != session.Running }, Args: task("retry"), Confirm: "retry"},
		{Key: "b", Name: "budget", When: func(c Card) bool { return c.View.Shown().Reason == event.WaitBudget }, Args: task("resume", "--budget"), Ask: "larger budget for", Suggest: func(c Card) string { return c.View.More }},
		{Key: "m", Name: "message", When: func(c Card) bool { return c.View.Status == session.Running }, Args: task("attach", "-m"), Ask: "message to the agent of"},
		{Key: "z", Name: "snooze", When: asking, Args: task("snooze")},
		{Key: "Z", Name: "dismiss", When: asking, Args: task("snooze", "--until-changed")},
		{Key: "z", Name: "wake", When: func(c Card) bool { return c.Snoozed }, Args: task("snooze", "--off")},
		{Key: "o", Name: "attach", Inside: true, When: func(c Card) bool { return c.View.Status == session.Running }, Args: task("attach")},
		{Key: "d", Name: "diff", Inside: true, Reads: true, When: begun, Args: task("diff")},
		{Key: "l", Name: "live", Inside: true, Reads: true, When: begun, Args: task("logs", "-f")},
		{Key: "s", Name: "story", Inside: true, Reads: true, When: begun, Args: task("logs")},
		{Key: "y", Name: "why", Inside: true, Reads: true, When: begun, Args: task("why")},
		{Key: "p", Name: "approvals", Inside: true, Reads: true, Args: fixed("approvals", "list")},
		{Key: "$", Name: "cost", Inside: true, Reads: true, Args: fixed("cost")},
		{Key: "n", Name: "new task", Inside: true, Args: fixed("task", "add")},
		{Key: "R", Name: "run", Args: fixed("run")},
	}
}
