// Package accounts knows the accounts that agents use: the traits and models of providers, and the logins and rate
// limits of their accounts.
package accounts

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/coven-run/coven/internal/budget/limits"
	"github.com/coven-run/coven/internal/control/agents"
	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/driver/chat"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/mcp"
	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/secret"
	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/plugins/builtin"
	"github.com/coven-run/coven/plugins/builtin/acp"
	"github.com/coven-run/coven/plugins/builtin/endpoint"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/provider"
)

// Accounts holds the accounts that agents use, for all tasks of a process.
type Accounts struct {
	Limits *limits.Store
	Faults Faults

	mu    sync.Mutex
	known map[string]Traits // by provider
}

// Traits are the properties that all agents of a provider share.
type Traits struct {
	Account  string
	Gated    bool     // their tool calls pass the gate
	Harmless bool     // agents that review cannot change files
	pass     []string // variables of the user that they get
	env      []string // variables that the provider sets
}

// Providers starts provider plugins and knows the account and the traits of each.
type Providers struct {
	Host     *plugins.Host
	Accounts *Accounts
	Secrets  *secret.Store
	Environ  func() []string
	Settings []string // KEY=VALUE, of built-in providers: see builtin.Settings
	// Fences reports whether the kernel keeps agents that review from changing files. It may be nil.
	Fences func() bool

	infos infos
}

// Model returns a model.
func (p *Providers) Model(ctx context.Context, name string) (model.Model, error) {
	m, err := p.Host.Model(ctx, name)
	if errors.Is(err, plugins.ErrUnknown) {
		return nil, exit.Usagef("coven run --provider claude", "%w", err)
	}
	return m, err
}

// Plugin returns a provider. Of the loop, it can only read logs.
func (p *Providers) Plugin(ctx context.Context, name string) (provider.Provider, error) {
	if _, ok := plugins.LoopModel(name); ok {
		return chat.Log{}, nil
	}
	plugin, err := p.Host.Provider(ctx, name)
	if errors.Is(err, plugins.ErrUnknown) {
		return nil, exit.Usagef("coven run --provider claude", "%w", err)
	}
	return plugin, err
}

// NewAccounts returns the accounts of a repository.
func NewAccounts(root string) *Accounts {
	return &Accounts{Limits: limits.Open(root), known: map[string]Traits{}}
}

// of returns the traits of a provider's agents. It asks the provider for the command that it would start.
// Callers do not wait for the answers of other providers.
func (a *Accounts) of(ctx context.Context, name string, plugin provider.Provider) (Traits, error) {
	a.mu.Lock()
	known, ok := a.known[name]
	a.mu.Unlock()
	if ok {
		return known, nil
	}
	request := provider.Request{
		Conversation: uuid.NewString(), Prompt: "nothing", Tools: agents.Granted(permission.OfBuild("")), FilesDir: "/nowhere",
		Gate: provider.Server{Name: mcp.Name, Argv: []string{"coven", "gate"}}, GateTool: mcp.ApproveTool,
	}
	command, err := plugin.Command(ctx, request)
	if err != nil {
		return Traits{}, err
	}
	known = Traits{Account: command.Account, Gated: command.Gated, Harmless: command.Gated, pass: command.Pass, env: command.Env}
	if !command.Gated {
		request.Tools = []string{provider.ToolRead}
		reading, err := plugin.Command(ctx, request)
		known.Harmless = err == nil && reading.ReadOnly
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known[name] = known
	return known, nil
}

// accountOf returns the account of a model plugin: that of its API, or one with its own name.
func (p *Providers) accountOf(model string) string {
	if api, ok := endpoint.Of(model); ok {
		return api.Account(p.Getenv)
	}
	return model
}

// Getenv returns a variable of the user.
func (p *Providers) Getenv(name string) (value string) {
	for _, kv := range slices.Concat(p.Environ(), p.Settings) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			value = v
		}
	}
	return value
}

// Info returns the properties of a model. Only the ID is set if the API of the model plugin does not answer. Info
// asks the plugin once for all models.
func (p *Providers) Info(ctx context.Context, plugin string, m model.Model, id string) model.Info {
	if api, ok := builtin.APIOf(plugins.LoopOf(plugin)); ok {
		id = api.ModelID(id)
	}
	p.infos.mu.Lock()
	defer p.infos.mu.Unlock()
	all, asked := p.infos.of[plugin]
	if lister, ok := m.(model.Lister); ok && !asked {
		limited, cancel := context.WithTimeout(ctx, maxListing)
		defer cancel()
		all, _ = lister.Models(limited)
		if ctx.Err() == nil {
			p.infos.keep(plugin, all)
		}
	}
	i := slices.IndexFunc(all, func(i model.Info) bool { return i.ID == id })
	if i < 0 {
		return model.Info{ID: id}
	}
	return all[i]
}

// maxListing limits how long an API may take to list its models.
const maxListing = 10 * time.Second

// infos are the models of model plugins.
type infos struct {
	mu sync.Mutex
	of map[string][]model.Info // by plugin
}

// keep stores the models of a plugin.
func (i *infos) keep(plugin string, all []model.Info) {
	if i.of == nil {
		i.of = map[string][]model.Info{}
	}
	i.of[plugin] = all
}

// Traits returns the traits of a provider's agents. It starts no plugin for a built-in
// provider.
func (p *Providers) Traits(ctx context.Context, name string) (Traits, error) {
	if on, ok := plugins.LoopModel(name); ok {
		return Traits{Account: p.accountOf(on), Gated: true, Harmless: true}, nil
	}
	plugin, ok := builtin.Providers(p.Getenv)[name]
	if !ok {
		var err error
		if plugin, err = p.Plugin(ctx, name); err != nil {
			return Traits{}, err
		}
	}
	known, err := p.Accounts.of(ctx, name, plugin)
	if err == nil {
		known.Harmless = known.Harmless || ok && name == acp.Name && p.Fences != nil && p.Fences() // any program: only the kernel can hold it
		p.Secrets.HideEnv(p.Environ(), func(name string) bool { return driver.Names(known.pass, name) })
		p.Secrets.HideEnv(known.env, secret.IsCredentialName)
	}
	return known, err
}

// Other returns a built-in provider with another account, whose CLI is installed and configured, and whose account can be
// used. ungated allows providers whose calls do not pass the gate. It returns "" if there is none.
func (p *Providers) Other(ctx context.Context, account string, ungated bool) string {
	for _, cli := range builtin.AgentCLIs() {
		if _, err := exec.LookPath(cli.Program); err != nil || !cli.Configured(p.Getenv) {
			continue
		}
		traits, err := p.Traits(ctx, cli.Program)
		if err != nil || traits.Account == account || !traits.Gated && !ungated || p.Accounts.Faults.Of(traits.Account) != nil {
			continue
		}
		if _, limited, err := p.Accounts.Limits.Limited(traits.Account); err == nil && !limited {
			return cli.Program
		}
	}
	return ""
}

// List returns the models of a model plugin.
func (p *Providers) List(ctx context.Context, plugin string) ([]model.Info, error) {
	m, err := p.Host.Model(ctx, plugin)
	if err != nil {
		return nil, err
	}
	err = pluginerr.ErrUnsupported
	var models []model.Info
	if lister, ok := m.(model.Lister); ok {
		models, err = lister.Models(ctx)
	}
	switch {
	case errors.Is(err, pluginerr.ErrUnsupported):
		return nil, exit.Failedf("coven plugins list", "model plugin %s does not list its models", plugin)
	case errors.Is(err, pluginerr.ErrLogin):
		if api, ok := builtin.APIOf(plugins.LoopOf(plugin)); ok {
			_, next := api.Refused(p.Getenv)
			return nil, exit.Usagef(next, "model plugin %s: %w", plugin, err)
		}
	}
	if err != nil {
		return nil, exit.Failedf("coven doctor", "model plugin %s: %w", plugin, err)
	}
	return models, nil
}

// WritesWhenReviewing returns the error for a provider whose agents cannot review.
func WritesWhenReviewing(provider string) error {
	return fmt.Errorf("provider %s cannot keep an agent from writing, so its agents cannot review", provider)
}
