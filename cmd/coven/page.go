package main

import (
	"context"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/worktree"
)

// page is what a person decides on.
type page struct {
	View   session.View  `json:"session"`
	Checks []proof       `json:"checks"`
	Diff   worktree.Diff `json:"diff"`
}

// proof is the last receipt of a command, and whether it is about what lands.
type proof struct {
	event.Receipt
	Current bool `json:"current"` // it ran on the very tree that lands
	Check   bool `json:"check"`   // it must have, before it lands; otherwise a step just ran it
}

func (d *desk) page(ctx context.Context, id string) (page, error) {
	v, err := d.house.find(id)
	if err != nil {
		return page{}, err
	}
	tree, diff, err := d.changeOf(ctx, v)
	if err != nil {
		return page{}, err
	}
	now, err := tree.Tree(ctx)
	if err != nil {
		return page{}, err
	}
	plan, err := planOf(v.Dir)
	if err != nil {
		return page{}, err
	}
	return page{View: v, Checks: proofs(v.Receipts, now, plan.Proves), Diff: diff}, nil
}

// proofs are the last receipts of each command, in the order in which they first ran.
func proofs(receipts []event.Receipt, tree string, check func(string) bool) []proof {
	list, at := []proof{}, map[string]int{}
	for _, r := range receipts {
		p := proof{Receipt: r, Current: r.Tree == tree, Check: check(r.Command)}
		if i, ok := at[r.Command]; ok {
			list[i] = p
			continue
		}
		at[r.Command] = len(list)
		list = append(list, p)
	}
	return list
}
