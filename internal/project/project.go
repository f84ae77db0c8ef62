// Package project opens a repository: its settings, tracker, grimoires, plugins, and the
// user's trust decisions. Opening a repository starts no process.
package project

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/agent/evaluator"
	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/search/embedding"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/session/spending"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/worktree"
)

// Project is an opened repository. It starts no process until a method needs it.
type Project struct {
	Env     *Environment
	Repo    *worktree.Repo
	Finder  *session.Finder
	Ledger  *spending.Ledger
	Config  config.Config
	Library *grimoires.Library
	Tracker task.Tracker // nil if the repository has no readable tracker; see NoTasks
	NoTasks error        // why Tracker is nil

	scripts    *evaluator.Evaluator // caches evaluated files
	embeddings *embedding.Endpoint  // caches vectors; nil if not configured

	Hide func(text string) string // removes secrets from a text; nil if no process has secrets
}

// Open opens the repository that contains the user's directory.
func Open(ctx context.Context, e *Environment) (*Project, error) { return open(ctx, e, worktree.Open) }

func open(ctx context.Context, e *Environment, openRepo func(context.Context, string) (*worktree.Repo, error)) (*Project, error) {
	dir, err := e.Workdir()
	if err != nil {
		return nil, fmt.Errorf("find the current directory: %w", err)
	}
	repo, err := openRepo(ctx, dir)
	if err != nil {
		return nil, err
	}
	if err := checkPlaces(repo.Root); err != nil {
		return nil, err
	}
	cfg, err := e.settings(repo)
	if err != nil {
		return nil, err
	}
	return newProject(e, dir, repo, cfg), nil
}

// OpenLenient is like Open but uses the default settings if they cannot be read. It returns that
// error in settings.
func OpenLenient(ctx context.Context, e *Environment) (p *Project, settings, err error) {
	dir, err := e.Workdir()
	if err != nil {
		return nil, nil, fmt.Errorf("find the current directory: %w", err)
	}
	repo, err := worktree.Open(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	if err := checkPlaces(repo.Root); err != nil {
		return nil, nil, err // not an error in the settings
	}
	cfg, settings := e.settings(repo)
	if settings != nil {
		cfg = config.Default()
	}
	return newProject(e, dir, repo, cfg), settings, nil
}

// Outside returns a project without a repository. It has the built-in and the user's grimoires and
// prompts, and the built-in plugins, the user's, and those on PATH.
func Outside(e *Environment) *Project {
	return &Project{scripts: &evaluator.Evaluator{Self: e.Self}, Env: e, Library: grimoires.NewLibrary("", e.UserDir())}
}

// OpenOrOutside opens the repository that contains the user's directory, which need not have a commit, for a
// command that runs no task. Outside of a repository, it returns Outside.
func OpenOrOutside(ctx context.Context, e *Environment) (*Project, error) {
	p, err := open(ctx, e, worktree.OpenEmpty)
	if errors.Is(err, worktree.ErrNotRepository) {
		return Outside(e), nil
	}
	return p, err
}

func newProject(e *Environment, dir string, repo *worktree.Repo, cfg config.Config) *Project {
	p := &Project{scripts: &evaluator.Evaluator{Self: e.Self}, Env: e, Repo: repo, Finder: session.NewFinder(repo.Root), Ledger: spending.NewLedger(repo.Root, cfg.Prices, cfg.BudgetPerDay.Amount(), e.Now), Config: cfg, Library: grimoires.NewLibrary(repo.Root, e.UserDir()), embeddings: e.embeddings(cfg.Search.Embeddings)}
	repo.Pool = worktree.Pool{Bytes: int64(cfg.Worktree.PoolGB) << 30, Keep: cfg.Worktree.KeptFiles()}
	repo.WorktreeDir, repo.BranchTemplate = e.expand(cfg.Worktree.Dir), e.branchTemplate(cfg.Worktree.Branch)
	repo.ShareState()
	repo.Submodules, repo.Sparse = cfg.Worktree.Submodules, sparse(cfg.Worktree)
	p.findTracker(dir)
	return p
}

// sparse returns the files of new worktrees.
func sparse(cfg config.Worktree) worktree.Sparse {
	switch cfg.Sparse {
	case "main":
		return worktree.Sparse{Main: true}
	case "dirs":
		return worktree.Sparse{Dirs: append([]string{}, cfg.SparseDirs...)}
	}
	return worktree.Sparse{}
}

// Hidden removes the secrets of processes from a text.
func (p *Project) Hidden(text string) string {
	if p.Hide == nil {
		return text
	}
	return p.Hide(text)
}

func (p *Project) findTracker(dir string) {
	p.Tracker, p.NoTasks = task.Open(task.Options{
		Dir: dir, MainCheckout: p.Repo.Root, LockDir: filepath.Join(p.Repo.GitDir, "coven", "locks"),
		Choice: p.Config.Tracker, Getenv: p.Env.Getenv, Environ: p.Env.Environ(),
	})
}

// Tasks returns the tracker, or the reason why there is none.
func (p *Project) Tasks() (task.Tracker, error) {
	if p.NoTasks != nil {
		return nil, &exit.Error{Exit: exit.Usage, Err: p.NoTasks}
	}
	return p.Tracker, nil
}
