package control

import (
	"fmt"
	"slices"

	"github.com/coven-run/coven/internal/agent"
	"github.com/coven-run/coven/internal/control/agents"
	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/secret"
	"github.com/coven-run/coven/internal/tempdir"
	"github.com/coven-run/coven/plugins"
)

// Runtime is what runs tasks: the launcher and the plugins. It is closed when
// the command ends.
type Runtime struct {
	scratch   *tempdir.Dir
	launcher  *process.Launcher
	host      *plugins.Host
	agents    *agent.Runner
	providers *agents.Providers
	secrets   *secret.Store
	Warning   string // about secrets that cannot be hidden
}

// providerVariables are the variables that the providers that are built in look at:
// they say which server an agent CLI asks, or how often, never a credential.
func providerVariables() []string { return []string{"OPENAI_BASE_URL", "CLAUDE_CODE_MAX_RETRIES"} }

// StartDesk starts what runs tasks.
func StartDesk(h *project.Project) (*Controller, error) {
	e, err := start(h)
	if err != nil {
		return nil, err
	}
	return &Controller{Project: h, Runtime: e}, nil
}

func start(h *project.Project) (*Runtime, error) {
	if err := h.MayHave(h.Passed()); err != nil {
		return nil, err
	}
	secrets, err := h.Secrets()
	if err != nil {
		return nil, err
	}
	warning := h.HideHanded(secrets)
	h.Repo.Redact, h.Hide = secrets.Text, secrets.Text
	self, err := h.Env.Self()
	if err != nil {
		return nil, fmt.Errorf("find coven's own program: %w", err)
	}
	launcher, err := process.NewLauncher(self, "exec")
	if err != nil {
		return nil, err
	}
	known, err := h.Registry()
	if err != nil {
		return nil, err
	}
	private, err := tempdir.New(h.Env.SocketDir())
	if err != nil {
		return nil, err
	}
	host := plugins.NewHost(plugins.HostOptions{
		Start: launcher.Command, Dir: private.Path(), Sockets: private.Path(), Resolve: known.Resolve,
		Env: func() []string {
			return agent.Environment(h.Env.Environ(), append(slices.Clone(h.Config.Env.Pass), providerVariables()...))
		},
	})
	return &Runtime{
		scratch: private, launcher: launcher, host: host, secrets: secrets, Warning: warning,
		providers: &agents.Providers{Host: host, Accounts: agents.NewAccounts(h.Repo.Root), Secrets: secrets, Environ: h.Env.Environ},
		agents: &agent.Runner{
			Launcher: launcher, Self: []string{self}, Environ: h.Env.Environ, Version: h.Env.Version, Sockets: private.Path(),
		},
	}, nil
}

func (r *Runtime) close() {
	r.host.Close()
	_ = r.scratch.Close() // the next coven removes what could not be removed
}
