package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/coven-run/coven/internal/budget/limits"
	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/driver/chat"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/mcp"
	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/process/clock"
	"github.com/coven-run/coven/internal/secret"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/plugins/builtin"
	"github.com/coven-run/coven/plugins/builtin/acp"
	"github.com/coven-run/coven/plugins/builtin/endpoint"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/provider"
	"github.com/coven-run/coven/runner"
)

// Accounts holds the accounts that agents use, for all tasks of a process.
type Accounts struct {
	limits *limits.Store

	mu    sync.Mutex
	known map[string]Traits // by provider
}

// Traits are the properties that all agents of a provider share.
type Traits struct {
	account  string
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
	// Fences reports whether the kernel keeps agents that review from changing files. nil: it does not.
	Fences func() bool

	infos infos
}

// model returns a model.
func (p *Providers) model(ctx context.Context, name string) (model.Model, error) {
	m, err := p.Host.Model(ctx, name)
	if errors.Is(err, plugins.ErrUnknown) {
		return nil, exit.Usagef("coven run --provider claude", "%w", err)
	}
	return m, err
}

// plugin returns a provider. Of the loop, it can only read logs.
func (p *Providers) plugin(ctx context.Context, name string) (provider.Provider, error) {
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
	return &Accounts{limits: limits.Open(root), known: map[string]Traits{}}
}

// of returns the traits of a provider's agents. It asks the provider what it would start.
// Callers do not wait for the answers of other providers.
func (a *Accounts) of(ctx context.Context, name string, plugin provider.Provider) (Traits, error) {
	a.mu.Lock()
	known, ok := a.known[name]
	a.mu.Unlock()
	if ok {
		return known, nil
	}
	request := provider.Request{
		Conversation: uuid.NewString(), Prompt: "nothing", Tools: toolsOf(permission.OfBuild("")), FilesDir: "/nowhere",
		Gate: provider.Server{Name: mcp.Name, Argv: []string{"coven", "gate"}}, GateTool: mcp.ApproveTool,
	}
	command, err := plugin.Command(ctx, request)
	if err != nil {
		return Traits{}, err
	}
	known = Traits{account: command.Account, Gated: command.Gated, Harmless: command.Gated, pass: command.Pass, env: command.Env}
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

// LimitWait is how long a session has waited for limits since its account's API last
// answered. Agents that wait at the same time count once.
type LimitWait struct {
	mu     sync.Mutex
	waited time.Duration
	until  time.Time // waited includes the time up to here
}

// add counts a wait, as far as it is not counted yet, unless that makes more than
// most: false.
func (w *LimitWait) add(from, to time.Time, most time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if from.Before(w.until) {
		from = w.until
	}
	sum := w.waited + max(to.Sub(from), 0)
	if sum > most {
		return false
	}
	w.waited = sum
	if to.After(w.until) {
		w.until = to
	}
	return true
}

func (w *LimitWait) renew() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waited, w.until = 0, time.Time{}
}

// Await implements the agents of package runner. It waits in this process: it keeps the
// session's lock and the claim, and the clocks of the session stand still.
func (c *Agents) Await(ctx context.Context, path, provider string) error {
	name, err := c.account(ctx, provider)
	if err != nil {
		return err
	}
	limit, limited, err := c.Providers.Accounts.limits.Limited(name)
	if err != nil || !limited {
		return err
	}
	resume := runner.Pause(ctx)
	defer resume()
	for limited {
		if err := c.waitOut(ctx, path, name, limit); err != nil {
			return err
		}
		if limit, limited, err = c.Providers.Accounts.limits.Limited(name); err != nil {
			return err
		}
	}
	return c.Session.Append(event.Event{Type: event.LimitOver, Path: path}, nil)
}

// waitOut waits until a limit has ended and a little longer, or returns why it does not wait.
func (c *Agents) waitOut(ctx context.Context, path, name string, limit limits.Limit) error {
	now := clock.Now().Round(0)
	met := event.Limit{Account: name, Reason: limit.Reason, At: limit.Wake(now).Round(0)}
	if limit.Told {
		met.Until = limit.Until
	}
	if !c.LimitWait.add(now, met.At, c.Limits.MaxWait) {
		return tooLong(met, now, c.Limits.MaxWait)
	}
	if err := c.Session.Append(event.Event{Type: event.LimitMet, Path: path}, met); err != nil {
		return err
	}
	return sleepUntil(ctx, met.At)
}

// tooLong returns the wait of a session that does not wait for a limit in this process.
func tooLong(met event.Limit, now time.Time, most time.Duration) error {
	detail := fmt.Sprintf("the account %s is limited (%s)", met.Account, met.Reason)
	if met.Until.IsZero() {
		detail += fmt.Sprintf(", the API did not report until when; try again after %s", terminal.Clock(met.At, now))
	} else {
		detail += " until " + terminal.Clock(met.Until, now)
	}
	detail += fmt.Sprintf(" (limits.max_wait is %s)", most)
	return &runner.Wait{Reason: event.WaitLimit, Detail: detail, Next: "resume", Until: met.At}
}

// maxSleep is the longest time between two looks at the clock while waiting: the timers of
// a machine that was suspended run late.
const maxSleep = 10 * time.Second

// sleepUntil waits until the clock shows a time.
func sleepUntil(ctx context.Context, at time.Time) error {
	for {
		left := at.Sub(clock.Now().Round(0))
		if left <= 0 {
			return nil
		}
		timer := time.NewTimer(min(clock.World(left), maxSleep))
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		}
	}
}

// account returns the account of a provider's agents; empty: the plan's provider.
func (c *Agents) account(ctx context.Context, provider string) (string, error) {
	drives, err := c.Providers.Traits(ctx, cmp.Or(provider, c.Plan.Provider))
	return drives.account, err
}

// accountOf returns the account of a model plugin: that of its API, or one with its own name.
func (p *Providers) accountOf(model string) string {
	if api, ok := endpoint.Of(model); ok {
		return api.Account(p.getenv)
	}
	return model
}

// getenv returns a variable of the user.
func (p *Providers) getenv(name string) (value string) {
	for _, kv := range slices.Concat(p.Environ(), p.Settings) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			value = v
		}
	}
	return value
}

// Info returns what a model plugin knows about a model; nothing if its API does not answer. It asks
// the plugin once for all models.
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
		return Traits{account: p.accountOf(on), Gated: true, Harmless: true}, nil
	}
	plugin, ok := builtin.Providers(p.getenv)[name]
	if !ok {
		var err error
		if plugin, err = p.plugin(ctx, name); err != nil {
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

// limitTracker records what one run of an agent shows about the limits of its account.
type limitTracker struct {
	agents  *Agents
	account string
	broken  error // the account's limits could not be recorded: no agent may try again
}

// limited records a refusal of the API and reports whether the agent must be stopped.
func (t *limitTracker) limited(l provider.Limit) bool {
	stop, err := t.agents.Providers.Accounts.limits.Met(t.account, l)
	t.broken = errors.Join(t.broken, err)
	return stop
}

// observe notes that the agent printed something, which may be an answer of the API.
func (t *limitTracker) observe(part provider.Event) {
	if _, answer := part.(provider.Spent); answer {
		t.agents.LimitWait.renew()
		t.broken = errors.Join(t.broken, t.agents.Providers.Accounts.limits.Answered(t.account))
	}
}
