package control

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/coven-run/coven/internal/control/accounts"
	"github.com/coven-run/coven/internal/control/consent"
	"github.com/coven-run/coven/internal/control/workspace"
	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/file/tempdir"
	"github.com/coven-run/coven/internal/mcp"
	"github.com/coven-run/coven/internal/mcp/servers"
	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/sandbox"
	"github.com/coven-run/coven/internal/secret"
	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/plugins/builtin"
	"github.com/coven-run/coven/plugins/builtin/scripted"
	"github.com/coven-run/coven/runner"
)

// Runtime holds the resources for running tasks, such as the launcher and the plugins. Controller.Close
// closes it.
type Runtime struct {
	Sandbox   *sandbox.Sandbox
	scratch   scratch
	launcher  *process.Launcher
	host      *plugins.Host
	agents    *driver.Runner
	providers *accounts.Providers
	logins    *accounts.Logins
	secrets   *secret.Store
	started   sync.Map // names of providers whose CLI was found
	batches   runner.Batches
	network   *workspace.Network
	consent   consent.Sandbox
	Warning   string // about values that cannot be hidden; may be empty
	// StartServer returns the command of an MCP server that the user inspects. It belongs to no task, and
	// can change only its own files.
	StartServer func(context.Context, servers.Server) (*exec.Cmd, func(), error)
}

// providerVariables returns the variables that the built-in providers read: they set the server of an agent
// CLI, its number of retries and the location of its login. None is a credential.
func providerVariables() []string {
	return []string{"OPENAI_BASE_URL", "CLAUDE_CODE_MAX_RETRIES", "CLAUDE_CONFIG_DIR", "CODEX_HOME", scripted.Variable}
}

// New returns a Controller that can run tasks. It must be closed.
func New(p *project.Project) (*Controller, error) {
	if err := ByPerson(p); err != nil {
		return nil, err
	}
	e, err := start(p)
	if err != nil {
		return nil, err
	}
	return &Controller{Project: p, Runtime: e}, nil
}

// AgentError reports that an agent of this repository started a command that only a person may use.
type AgentError = mcp.AgentError

// ByPerson returns an *AgentError if a running agent of the repository started this process.
func ByPerson(p *project.Project) error { return mcp.ByPerson(p.Repo.Root) }

// HideSecrets makes a project hide its secrets and the values of the variables that it passes to processes.
// New does so, too: HideSecrets is for callers that only show a change.
func HideSecrets(p *project.Project) error {
	_, _, err := hideSecrets(p)
	return err
}

// hideSecrets implements HideSecrets. It returns the secrets, and a warning about values that cannot be
// hidden, or "" if there are none.
func hideSecrets(p *project.Project) (*secret.Store, string, error) {
	secrets, err := p.Secrets()
	if err != nil {
		return nil, "", err
	}
	warning := p.HideVariables(secrets)
	p.Repo.Redact, p.Hide = secrets.Text, secrets.Text
	return secrets, warning, nil
}

func start(p *project.Project) (*Runtime, error) {
	if err := p.CheckRequests(p.RequestedVariables()); err != nil {
		return nil, err
	}
	secrets, warning, err := hideSecrets(p)
	if err != nil {
		return nil, err
	}
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
	dirs, err := newScratch(p)
	if err != nil {
		return nil, err
	}
	box := sandbox.New(sandbox.Options{
		Settings: p.Config.Sandbox, Getenv: p.Env.Getenv, Enforcement: launcher.Enforcement, Private: launcher.PrivateNetwork,
		Temp: dirs.temp.Path(), Cache: p.Env.CacheDir(), Keep: p.Config.Worktree.KeptCaches(), Root: p.Repo.Root, GitDir: p.Repo.GitDir,
		Shared: workspace.SharedOf(p.Repo, self, p.Config.Worktree.Link), Beside: p.Repo.WorktreesBeside, Origin: p.Repo.OriginCheckout(), Borrowed: p.Repo.Borrowed(),
	})
	p.Repo.Hidden = box.Hides
	room, boundary, err := box.Plugins(dirs.plugins.Path())
	if err != nil {
		dirs.close()
		return nil, err
	}
	command := func(argv ...string) (*exec.Cmd, func(), error) { return launcher.CommandWithin(boundary, argv...) }
	env := func(pass ...string) []string {
		user := driver.Environment(p.Env.Environ(), append(pass, p.Config.Env.Pass...))
		return sandbox.Merge(user, room.Env(user))
	}
	host := plugins.NewHost(plugins.HostOptions{
		Start: command, Dir: dirs.plugins.Path(), Sockets: dirs.plugins.Path(), Resolve: known.Resolve,
		Env: func() []string { return env(providerVariables()...) },
		Credentials: func(need plugins.Need) []string {
			env := builtin.Credentials(need, p.Env.Environ(), p.ProviderSettings())
			if need.Kind == plugins.KindForge {
				secrets.HideEnv(env, secret.IsCredentialName)
			}
			return env
		},
	})
	return &Runtime{
		consent: consent.Sandbox{Root: p.Repo.Root, Of: box},
		Sandbox: box, network: workspace.NetworkOf(p), logins: &accounts.Logins{Getenv: p.Env.Getenv},
		StartServer: func(_ context.Context, s servers.Server) (*exec.Cmd, func(), error) {
			cmd, release, err := command(s.Argv...)
			return s.With(cmd, p.Repo.Checkout, env()), release, err
		},
		scratch: dirs, launcher: launcher, host: host, secrets: secrets, Warning: warning,
		providers: &accounts.Providers{Host: host, Accounts: accounts.NewAccounts(p.Repo.Root), Secrets: secrets, Environ: p.Env.Environ, Settings: p.ProviderSettings(), Fences: func() bool { return box.Level() == sandbox.Full }},
		agents: &driver.Runner{
			Launcher: launcher, Self: []string{self}, Environ: p.Env.Environ, Version: p.Env.Version, Sockets: dirs.sockets.Path(),
			Gates: filepath.Join(p.Repo.Root, mcp.GatesDir),
		},
	}, nil
}

func (r *Runtime) close() {
	r.host.Close()
	r.scratch.close()
}

// scratch holds the directories that exist as long as the process.
type scratch struct {
	sockets *tempdir.Dir // sockets and files of agents
	plugins *tempdir.Dir // writable by plugins
	temp    *tempdir.Dir // for temporary files of tasks
}

func newScratch(p *project.Project) (s scratch, err error) {
	for _, made := range []struct {
		dir **tempdir.Dir
		in  string
	}{{&s.sockets, p.Env.SocketDir()}, {&s.plugins, p.Env.SocketDir()}, {&s.temp, os.TempDir()}} {
		if *made.dir, err = tempdir.New(made.in); err != nil {
			s.close()
			return scratch{}, err
		}
	}
	return s, nil
}

// close removes the directories. The next coven removes any that remain.
func (s scratch) close() {
	for _, dir := range []*tempdir.Dir{s.sockets, s.plugins, s.temp} {
		if dir != nil {
			_ = dir.Close()
		}
	}
}
