package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/agent"
	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/internal/regularfile"
	"github.com/coven-run/coven/internal/secret"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/internal/tempdir"
	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/worktree"
)

// house is a repository with everything that coven has in it. It starts
// nothing until it is asked to.
type house struct {
	app     *app
	repo    *worktree.Repo
	finder  *session.Finder
	config  config.Config
	library *grimoires.Library
	tracker task.Tracker // nil when the repository has none that coven reads
	noTasks error        // why not
}

// open finds the repository that the user stands in.
func (a *app) open(ctx context.Context) (*house, error) {
	dir, err := a.workdir()
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
	cfg, err := a.settings(repo)
	if err != nil {
		return nil, err
	}
	h := &house{app: a, repo: repo, finder: session.NewFinder(repo.Root), config: cfg, library: grimoires.NewLibrary(repo.Root, a.userDir())}
	h.findTracker(dir)
	return h, nil
}

// settings reads coven's settings for a repository.
func (a *app) settings(repo *worktree.Repo) (config.Config, error) {
	where, err := territory(repo)
	if err != nil {
		return config.Config{}, err
	}
	return config.Load(repo.Root, where, a.getenv)
}

func (h *house) findTracker(dir string) {
	h.tracker, h.noTasks = task.Open(task.Options{
		Dir: dir, MainCheckout: h.repo.Root, LockDir: filepath.Join(h.repo.GitDir, "coven", "locks"),
		Choice: h.config.Tracker, Getenv: h.app.getenv, Environ: h.app.environ(),
	})
}

// tasks returns the tracker, or says why there is none.
func (h *house) tasks() (task.Tracker, error) {
	if h.noTasks != nil {
		return nil, &exitError{code: exitUsage, err: h.noTasks}
	}
	return h.tracker, nil
}

// userDir is where the user's own settings for coven are.
func (a *app) userDir() string {
	if dir := a.getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "coven")
	}
	return filepath.Join(a.getenv("HOME"), ".config", "coven")
}

// engine is what runs tasks: the launcher and the plugins. It is closed when
// the command ends.
type engine struct {
	scratch  *tempdir.Dir
	launcher *process.Launcher
	host     *plugins.Host
	agents   *agent.Runner
	accounts *accounts
	secrets  *secret.Store
	environ  func() []string
	warning  string // about secrets that cannot be hidden
}

// secrets reads the project's secrets. A file that git would take into a commit
// is not read.
func (h *house) secrets() (*secret.Store, error) {
	if secret.Exists(h.repo.Root) {
		if err := worktree.EnsureCovenDir(h.repo.Root); err != nil {
			return nil, err
		}
		ignored, err := h.repo.Ignores(context.Background(), secret.File)
		if err != nil {
			return nil, err
		}
		if !ignored {
			return nil, usage("echo secrets.yaml >> .coven/.gitignore", "%s is not ignored by git: the next commit could publish it", secret.File)
		}
	}
	return secret.Open(h.repo.Root, h.app.getenv)
}

func (h *house) start() (*engine, error) {
	if err := h.mayHave(h.passed()); err != nil {
		return nil, err
	}
	secrets, err := h.secrets()
	if err != nil {
		return nil, err
	}
	warning := h.hideHanded(secrets)
	h.repo.Redact, h.app.hide = secrets.Text, secrets.Text
	self, err := h.app.self()
	if err != nil {
		return nil, fmt.Errorf("find coven's own program: %w", err)
	}
	launcher, err := process.NewLauncher(self, "exec")
	if err != nil {
		return nil, err
	}
	known, err := h.registry()
	if err != nil {
		return nil, err
	}
	private, err := tempdir.New(h.app.socketDir())
	if err != nil {
		return nil, err
	}
	host := plugins.NewHost(plugins.HostOptions{
		Start: launcher.Command, Dir: private.Path(), Sockets: private.Path(), Resolve: known.Resolve,
		Env: func() []string {
			return agent.Environment(h.app.environ(), append(slices.Clone(h.config.Env.Pass), providerVariables()...))
		},
	})
	return &engine{
		scratch: private, launcher: launcher, host: host, accounts: newAccounts(h.repo.Root), secrets: secrets, environ: h.app.environ, warning: warning,
		agents: &agent.Runner{
			Launcher: launcher, Self: []string{self}, Environ: h.app.environ, Version: version, Sockets: private.Path(),
		},
	}, nil
}

// providerVariables are the variables that the providers that are built in look at:
// they say which server an agent CLI asks, or how often, never a credential.
func providerVariables() []string { return []string{"OPENAI_BASE_URL", "CLAUDE_CODE_MAX_RETRIES"} }

// socketDir is where sockets are made: each in a private directory below it.
func (a *app) socketDir() string {
	for _, dir := range []string{a.getenv("XDG_RUNTIME_DIR"), os.TempDir()} {
		if filepath.IsAbs(dir) && len(dir) <= longestDir {
			return dir
		}
	}
	return "/tmp"
}

func (e *engine) close() {
	e.host.Close()
	_ = e.scratch.Close() // the next coven removes what could not be removed
}

// classify gives an error of the parts its exit code.
func classify(err error) int {
	backend, conflict, corrupt := (*task.BackendError)(nil), (*task.ConflictMarkersError)(nil), (*task.CorruptError)(nil)
	checkout := (*worktree.CheckoutError)(nil)
	switch {
	case errors.As(err, new(*session.DamagedError)):
		return exitPerson
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case aboutTrust(err):
		return exitUsage
	case errors.As(err, new(*worktree.BusyError)):
		return exitPerson
	case errors.As(err, &backend), errors.As(err, &conflict), errors.As(err, &corrupt):
		return exitUsage
	case errors.Is(err, worktree.ErrNotRepository), errors.Is(err, worktree.ErrNoCommits), errors.Is(err, worktree.ErrBare),
		errors.Is(err, worktree.ErrDetached), errors.Is(err, worktree.ErrTaskBranch), errors.Is(err, worktree.ErrUnknownBranch):
		return exitUsage
	case errors.As(err, new(config.Errors)), errors.Is(err, plugins.ErrUnknown), grimoires.IsInvalid(err):
		return exitUsage
	case errors.Is(err, task.ErrInvalid), errors.As(err, new(*task.CycleError)), errors.As(err, new(*task.RedirectError)):
		return exitUsage
	case errors.As(err, &checkout), errors.Is(err, worktree.ErrClaimed), errors.Is(err, task.ErrClaimed),
		errors.Is(err, task.ErrNotClaimable), errors.As(err, new(*task.BlockedError)):
		return exitPerson
	}
	return exitFailed
}

// hint says what to do about an error, when the error does not say it itself.
func hint(err error) string {
	blocked, status := (*task.BlockedError)(nil), (*task.StatusError)(nil)
	damaged, link := (*session.DamagedError)(nil), (*regularfile.LinkError)(nil)
	switch {
	case errors.As(err, &damaged):
		return nextDamaged(damaged)
	case errors.As(err, &link):
		return linkHint(link)
	case errors.As(err, &blocked):
		return "coven why " + shellWord(blocked.ID)
	case errors.As(err, &status):
		return "coven task show " + shellWord(status.ID)
	case errors.Is(err, task.ErrNotFound):
		return "coven task list"
	case errors.Is(err, worktree.ErrNoCommits):
		return "git commit"
	case errors.Is(err, worktree.ErrUnknownBranch):
		return "git branch"
	case errors.Is(err, worktree.ErrNotRepository):
		return "go to a git repository, or make one: git init"
	case errors.Is(err, worktree.ErrClaimed):
		return "coven status"
	case aboutTrust(err):
		return trustHint(err)
	case errors.Is(err, process.ErrNotFound):
		return installer(err) + ", then coven resume"
	}
	return ""
}
