package project

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/worktree"
)

// Scratch opens the scratch repository in dir with the settings and the library. The agents, plugins, tools, secrets, MCP
// servers, trust decisions and the budget of the day are those of p. It has no tracker, and everything that happens in it changes only dir.
func (p *Project) Scratch(ctx context.Context, dir string, cfg config.Config, library *grimoires.Library) (*Project, error) {
	repo, err := worktree.Open(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("open the scratch repository: %w", err)
	}
	env := *p.Env
	env.Workdir = func() (string, error) { return dir, nil }
	env.Cache = filepath.Join(dir, ".git", "coven-cache")
	cfg.Worktree.Dir, cfg.Worktree.Branch = filepath.Join(".coven", "worktrees", "{task}"), config.DefaultBranch
	made := newProject(&env, dir, repo, cfg)
	repo.Origin, made.Library, made.Ledger = p.Repo, library, p.Ledger
	made.Tracker, made.NoTasks = nil, exit.Usagef("", "a scratch repository has no tasks")
	return made, nil
}

// definitions returns the repository whose directory .coven defines agents, plugins, tools, secrets and MCP servers.
func (p *Project) definitions() *worktree.Repo {
	return p.Repo.Supplier()
}
