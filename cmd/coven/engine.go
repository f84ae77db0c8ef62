package main

import (
	"fmt"
	"slices"

	"github.com/coven-run/coven/internal/agent"
	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/internal/secret"
	"github.com/coven-run/coven/internal/tempdir"
	"github.com/coven-run/coven/plugins"
)

// runtimeParts is what runs tasks: the launcher and the plugins. It is closed when
// the command ends.
type runtimeParts struct {
	scratch   *tempdir.Dir
	launcher  *process.Launcher
	host      *plugins.Host
	agents    *agent.Runner
	providers *providers
	secrets   *secret.Store
	warning   string // about secrets that cannot be hidden
}

// providerVariables are the variables that the providers that are built in look at:
// they say which server an agent CLI asks, or how often, never a credential.
func providerVariables() []string { return []string{"OPENAI_BASE_URL", "CLAUDE_CODE_MAX_RETRIES"} }

// startDesk starts what runs tasks.
func (h *house) startDesk() (*desk, error) {
	e, err := h.start()
	if err != nil {
		return nil, err
	}
	return &desk{house: h, runtime: e}, nil
}

func (h *house) start() (*runtimeParts, error) {
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
	return &runtimeParts{
		scratch: private, launcher: launcher, host: host, secrets: secrets, warning: warning,
		providers: &providers{host: host, accounts: newAccounts(h.repo.Root), secrets: secrets, environ: h.env.environ},
		agents: &agent.Runner{
			Launcher: launcher, Self: []string{self}, Environ: h.env.environ, Version: h.env.version, Sockets: private.Path(),
		},
	}, nil
}

func (r *runtimeParts) close() {
	r.host.Close()
	_ = r.scratch.Close() // the next coven removes what could not be removed
}
