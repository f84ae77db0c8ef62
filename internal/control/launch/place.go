package launch

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/coven-run/coven/internal/control/accounts"
	"github.com/coven-run/coven/internal/driver/chat"
	"github.com/coven-run/coven/internal/sandbox"
	"github.com/coven-run/coven/plugins/provider"
)

// place is where an agent runs.
type place struct {
	plugin  provider.Provider
	loop    *chat.Loop // coven's own loop, or nil if the agent runs in a CLI
	traits  accounts.Traits
	root    string // the worktree, with links resolved
	dir     string // the agent's working directory
	room    *sandbox.Room
	network []string
}

// place finds where an agent runs.
func (l *Launcher) place(ctx context.Context, who role) (p place, err error) {
	if p.plugin, err = l.Providers.Plugin(ctx, who.provider); err != nil {
		return p, err
	}
	if p.loop, err = l.newLoop(ctx, who.provider, who.Path); err != nil {
		return p, err
	}
	if p.traits, err = l.Providers.Traits(ctx, who.provider); err != nil {
		return p, err
	}
	if p.root, err = l.worktreeRoot(); err != nil {
		return p, err
	}
	if p.dir, err = l.Workspace.Dir(who.dir); err != nil {
		return p, err
	}
	if p.room, err = l.Workspace.Room(ctx); err != nil {
		return p, err
	}
	p.network, err = l.Workspace.NetworkEnv(ctx)
	return p, err
}

func (l *Launcher) worktreeRoot() (string, error) {
	root, err := filepath.EvalSymlinks(l.Workspace.Worktree.Path)
	if err != nil {
		return "", fmt.Errorf("find the worktree: %w", err)
	}
	return root, nil
}
