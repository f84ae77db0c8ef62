package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/worktree"
)

// house is a repository with everything that coven has in it. It starts
// nothing until it is asked to.
type house struct {
	env     *env
	repo    *worktree.Repo
	finder  *session.Finder
	config  config.Config
	library *grimoires.Library
	tracker task.Tracker // nil when the repository has none that coven reads
	noTasks error        // why not

	hide func(text string) string // takes secrets out of a text; nil: no process was handed any
}

// open finds the repository that the user stands in.
func open(ctx context.Context, e *env) (*house, error) {
	dir, err := e.workdir()
	if err != nil {
		return nil, fmt.Errorf("find the current directory: %w", err)
	}
	repo, err := worktree.Open(ctx, dir)
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
	return newHouse(e, dir, repo, cfg), nil
}

// openAnyway opens a repository also when its settings cannot be read: the defaults
// hold then, and the second error tells what is wrong with them.
func openAnyway(ctx context.Context, e *env) (h *house, settings, err error) {
	dir, err := e.workdir()
	if err != nil {
		return nil, nil, fmt.Errorf("find the current directory: %w", err)
	}
	repo, err := worktree.Open(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	if err := checkPlaces(repo.Root); err != nil {
		return nil, nil, err // what is made good elsewhere is not the repository's
	}
	cfg, settings := e.settings(repo)
	if settings != nil {
		cfg = config.Default()
	}
	return newHouse(e, dir, repo, cfg), settings, nil
}

// outside is a house without a repository: the grimoires and prompts of the user, and
// those that coven ships.
func outside(e *env) *house {
	return &house{env: e, library: grimoires.NewLibrary("", e.userDir())}
}

func newHouse(e *env, dir string, repo *worktree.Repo, cfg config.Config) *house {
	h := &house{env: e, repo: repo, finder: session.NewFinder(repo.Root), config: cfg, library: grimoires.NewLibrary(repo.Root, e.userDir())}
	h.findTracker(dir)
	return h
}

// hidden is a text without the secrets that processes were handed.
func (h *house) hidden(text string) string {
	if h.hide == nil {
		return text
	}
	return h.hide(text)
}

func (h *house) findTracker(dir string) {
	h.tracker, h.noTasks = task.Open(task.Options{
		Dir: dir, MainCheckout: h.repo.Root, LockDir: filepath.Join(h.repo.GitDir, "coven", "locks"),
		Choice: h.config.Tracker, Getenv: h.env.getenv, Environ: h.env.environ(),
	})
}

// tasks returns the tracker, or says why there is none.
func (h *house) tasks() (task.Tracker, error) {
	if h.noTasks != nil {
		return nil, &exit.Error{Exit: exit.Usage, Err: h.noTasks}
	}
	return h.tracker, nil
}
