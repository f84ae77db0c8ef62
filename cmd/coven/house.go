package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/agent"
	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/process"
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
		return nil, &exitError{code: exitUsage, err: h.noTasks}
	}
	return h.tracker, nil
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
	return secret.Open(h.repo.Root, h.env.getenv)
}

// desk starts what runs tasks.
func (h *house) desk() (*desk, error) {
	e, err := h.start()
	if err != nil {
		return nil, err
	}
	return &desk{house: h, engine: e}, nil
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
	h.repo.Redact, h.hide = secrets.Text, secrets.Text
	self, err := h.env.self()
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
	private, err := tempdir.New(h.env.socketDir())
	if err != nil {
		return nil, err
	}
	host := plugins.NewHost(plugins.HostOptions{
		Start: launcher.Command, Dir: private.Path(), Sockets: private.Path(), Resolve: known.Resolve,
		Env: func() []string {
			return agent.Environment(h.env.environ(), append(slices.Clone(h.config.Env.Pass), providerVariables()...))
		},
	})
	return &engine{
		scratch: private, launcher: launcher, host: host, accounts: newAccounts(h.repo.Root), secrets: secrets, environ: h.env.environ, warning: warning,
		agents: &agent.Runner{
			Launcher: launcher, Self: []string{self}, Environ: h.env.environ, Version: version, Sockets: private.Path(),
		},
	}, nil
}

// providerVariables are the variables that the providers that are built in look at:
// they say which server an agent CLI asks, or how often, never a credential.
func providerVariables() []string { return []string{"OPENAI_BASE_URL", "CLAUDE_CODE_MAX_RETRIES"} }

func (e *engine) close() {
	e.host.Close()
	_ = e.scratch.Close() // the next coven removes what could not be removed
}
