package control

import (
	"context"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/worktree"
)

// Page is what a person decides on.
type Page struct {
	View   session.View  `json:"session"`
	Checks []Proof       `json:"checks"`
	Diff   worktree.Diff `json:"diff"`
}

// Proof is the last receipt of a command, and whether it is about what lands.
type Proof struct {
	event.Receipt
	Current bool `json:"current"` // it ran on the very tree that lands
	Check   bool `json:"check"`   // it must have, before it lands; otherwise a step just ran it
}

// Page returns what a person decides on.
func (c *Controller) Page(ctx context.Context, id string) (Page, error) {
	v, err := c.Project.Find(id)
	if err != nil {
		return Page{}, err
	}
	tree, diff, err := c.ChangeOf(ctx, v)
	if err != nil {
		return Page{}, err
	}
	now, err := tree.Tree(ctx)
	if err != nil {
		return Page{}, err
	}
	plan, err := project.PlanOf(v.Dir)
	if err != nil {
		return Page{}, err
	}
	return Page{View: v, Checks: proofs(v.Receipts, now, plan.Proves), Diff: diff}, nil
}

// proofs are the last receipts of each command, in the order in which they first ran.
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
