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

// Runtime holds what running tasks needs: the launcher and the plugins. Controller.Close
// closes it.
type Runtime struct {
	scratch   *tempdir.Dir
	launcher  *process.Launcher
	host      *plugins.Host
	agents    *agent.Runner
	providers *agents.Providers
	secrets   *secret.Store
	Warning   string // about secrets that cannot be hidden
}

// providerVariables returns the variables that the built-in providers read: they choose the
// server of an agent CLI and its number of retries. None is a credential.
func providerVariables() []string { return []string{"OPENAI_BASE_URL", "CLAUDE_CODE_MAX_RETRIES"} }

// New returns a Controller that can run tasks. It must be closed.
func New(p *project.Project) (*Controller, error) {
	e, err := start(p)
	if err != nil {
		return nil, err
	}
	return &Controller{Project: p, Runtime: e}, nil
}

func start(p *project.Project) (*Runtime, error) {
	if err := p.CheckVariables(p.RequestedVariables()); err != nil {
		return nil, err
	}
	secrets, err := p.Secrets()
	if err != nil {
		return nil, err
	}
	warning := p.HideVariables(secrets)
	p.Repo.Redact, p.Hide = secrets.Text, secrets.Text
	self, err := p.Env.Self()
	if err != nil {
		return nil, fmt.Errorf("find coven's own executable: %w", err)
	}
	launcher, err := process.NewLauncher(self, "exec")
	if err != nil {
		return nil, err
	}
	known, err := p.Registry()
	if err != nil {
		return nil, err
	}
	private, err := tempdir.New(p.Env.SocketDir())
	if err != nil {
		return nil, err
	}
	host := plugins.NewHost(plugins.HostOptions{
		Start: launcher.Command, Dir: private.Path(), Sockets: private.Path(), Resolve: known.Resolve,
		Env: func() []string {
			return agent.Environment(p.Env.Environ(), append(slices.Clone(p.Config.Env.Pass), providerVariables()...))
		},
	})
	return &Runtime{
		scratch: private, launcher: launcher, host: host, secrets: secrets, Warning: warning,
		providers: &agents.Providers{Host: host, Accounts: agents.NewAccounts(p.Repo.Root), Secrets: secrets, Environ: p.Env.Environ},
		agents: &agent.Runner{
			Launcher: launcher, Self: []string{self}, Environ: p.Env.Environ, Version: p.Env.Version, Sockets: private.Path(),
		},
	}, nil
}

func (r *Runtime) close() {
	r.host.Close()
	_ = r.scratch.Close() // the next coven removes leftovers
}
