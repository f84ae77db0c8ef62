package agents

import (
	"context"

	"github.com/coven-run/coven/internal/event"
)

// keeper returns the func that stores a changed worktree while an agent works whose calls do
// not pass the gate; nil if such agents are not allowed.
func (c *Agents) keeper(ctx context.Context, kind Traits, emit func(event.Type, any) error) (func(context.Context) error, error) {
	if kind.Gated || !c.Ungated {
		return nil, nil
	}
	last, err := c.Workspace.Tree(ctx)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		now, err := c.Workspace.Tree(ctx)
		if err != nil || now == last {
			return err
		}
		snapshot, err := c.Workspace.Snapshot(ctx, "while the agent works")
		if err != nil {
			return err
		}
		last = now
		return emit(event.SnapshotTaken, snapshot)
	}, nil
}
