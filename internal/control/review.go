package control

import (
	"cmp"
	"context"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/text/shellword"
)

// Page contains everything a person needs to decide on a change.
type Page struct {
	View    session.View `json:"session"`
	Request Request      `json:"request"`
	Checks  []Proof      `json:"checks"`
	Diff    Diff         `json:"diff"`
}

// Request is the request of a session: its task when the session started. The texts are Markdown.
type Request struct {
	Title       string `json:"title"`
	Description string `json:"description,omitempty"` // the whole prompt if it has several lines
	Acceptance  string `json:"acceptance_criteria,omitempty"`
	Design      string `json:"design,omitempty"`
	Notes       string `json:"notes,omitempty"`
}

// requestOf returns the request of a task, without secrets.
func requestOf(t grimoires.Task, hide func(string) string) Request {
	return Request{Title: hide(t.Title), Description: hide(t.Description), Acceptance: hide(t.Acceptance), Design: hide(t.Design), Notes: hide(t.Notes)}
}

// Next returns the next command for a person who has read the page.
func (p Page) Next() string {
	switch {
	case HasOpenErrors(p.View):
		return (&OpenFindingsError{Task: p.View.Task}).NextCommand()
	case WaitsForReview(p.View):
		return cmp.Or(p.View.Next, "coven approve "+shellword.Word(p.View.Task))
	}
	if next := NextOf(p.View); next != "coven review "+shellword.Word(p.View.Task) {
		return next
	}
	return "coven revise " + shellword.Word(p.View.Task) + " -m TEXT"
}

// Proof is the last receipt of a command, and whether it is about the change that lands.
type Proof struct {
	event.Receipt
	Current bool `json:"current"` // it ran on exactly the tree that lands
	Check   bool `json:"check"`   // it must pass on that tree before the landing; otherwise it is only the command of a step
}

// Reviews returns the sessions that wait for a review, newest first, and the unreadable ones.
func Reviews(p *project.Project) (waiting, damaged []session.View, err error) {
	waiting = []session.View{} // not nil, for JSON
	views, err := CurrentSessions(p)
	for _, v := range views {
		switch {
		case v.Status == session.Damaged:
			damaged = append(damaged, v)
		case WaitsForReview(v):
			waiting = append(waiting, v)
		}
	}
	return waiting, damaged, err
}

// IsCurrent reports whether a session is still as v shows it, with the same question.
func IsCurrent(v session.View) (bool, error) {
	now, err := session.Load(v.Dir)
	return err == nil && now.Same(v), err
}

// Page returns the page of a task's newest session.
func (c *Controller) Page(ctx context.Context, id string) (Page, error) {
	v, err := c.Project.Find(ctx, id)
	if err != nil {
		return Page{}, err
	}
	diff, err := c.change(ctx, v)
	if err != nil {
		return Page{}, err
	}
	plan, err := project.PlanOf(v.Dir)
	if err != nil {
		return Page{}, err
	}
	request := requestOf(plan.Task, c.Project.Hidden)
	return Page{View: v, Request: request, Checks: proofs(v.Receipts, diff.To, plan.Proves), Diff: diff}, nil
}

// proofs returns the last receipt of each command, in the order in which they first ran.
func proofs(receipts []event.Receipt, tree string, check func(string) bool) []Proof {
	list, at := []Proof{}, map[string]int{}
	for _, r := range receipts {
		p := Proof{Receipt: r, Current: r.Tree == tree, Check: check(r.Command)}
		if i, ok := at[r.Command]; ok {
			list[i] = p
			continue
		}
		at[r.Command] = len(list)
		list = append(list, p)
	}
	return list
}
