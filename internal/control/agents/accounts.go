package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/coven-run/coven/internal/agent"
	"github.com/coven-run/coven/internal/clock"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/limits"
	"github.com/coven-run/coven/internal/mcp"
	"github.com/coven-run/coven/internal/secret"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/plugins/builtin"
	"github.com/coven-run/coven/plugins/provider"
	"github.com/coven-run/coven/runner"
)

// Accounts are the accounts that agents use, for all tasks of a process.
type Accounts struct {
	limits *limits.Store

	mu    sync.Mutex
	known map[string]Traits // by provider
}

// Traits is what a provider's agents are like, whatever they are asked.
type Traits struct {
	account  string
	Gated    bool     // their tool calls pass the gate
	Harmless bool     // agents that review can change nothing
	pass     []string // variables of the user's that they get
	env      []string // variables that the provider makes
}

// Providers drives agents: it knows each provider's account, and what its agents may do.
type Providers struct {
	Host     *plugins.Host
	Accounts *Accounts
	Secrets  *secret.Store
	Environ  func() []string
}

// driver returns a provider.
func (p *Providers) driver(ctx context.Context, name string) (provider.Provider, error) {
	driver, err := p.Host.Provider(ctx, name)
	if errors.Is(err, plugins.ErrUnknown) {
		return nil, exit.Usagef("coven run --provider claude", "%w", err)
	}
	return driver, err
}

// NewAccounts returns the accounts of a repository.
func NewAccounts(root string) *Accounts {
	return &Accounts{limits: limits.Open(root), known: map[string]Traits{}}
}

// of is what a provider's agents are like: what it would start says so. Nobody waits
// for the answer of another's provider.
func (a *Accounts) of(ctx context.Context, name string, driver provider.Provider) (Traits, error) {
	a.mu.Lock()
	known, ok := a.known[name]
	a.mu.Unlock()
	if ok {
		return known, nil
	}
	request := provider.Request{
		Conversation: uuid.NewString(), Prompt: "nothing", Tools: granted(), FilesDir: "/nowhere",
		Gate: provider.Server{Name: mcp.Name, Argv: []string{"coven", "gate"}}, GateTool: mcp.ApproveTool,
	}
	command, err := driver.Command(ctx, request)
	if err != nil {
		return Traits{}, err
	}
	known = Traits{account: command.Account, Gated: command.Gated, Harmless: command.Gated, pass: command.Pass, env: command.Env}
	if !command.Gated {
		request.Tools = []string{provider.ToolRead}
		reading, err := driver.Command(ctx, request)
		known.Harmless = err == nil && reading.ReadOnly
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known[name] = known
	return known, nil
}

// LimitWait is how long a session waited for limits since its account's API last
// gave an answer. Agents of it that wait at the same time wait once.
type LimitWait struct {
	mu     sync.Mutex
	waited time.Duration
	until  time.Time // up to here it is in waited
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

// Await implements runner's agents. It waits in this process: the session's lock
// and the claim are kept, its clocks stand still.
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

// waitOut waits until a limit ends, and a little longer, or says that nobody waits
// for it.
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

// tooLong is what a run waits for that does not wait for a limit itself.
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

// maxSleep is how often one who waits looks at the time: a machine that slept
// meanwhile has other timers than clocks.
const maxSleep = 10 * time.Second

// sleepUntil waits until an instant of the clock.
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

// account is the account of a provider's agents; empty: the plan's provider.
func (c *Agents) account(ctx context.Context, provider string) (string, error) {
	drives, err := c.Providers.Traits(ctx, cmp.Or(provider, c.Provider))
	return drives.account, err
}

// Traits is what a provider's agents are like. For one that is built in, no plugin
// is started.
func (p *Providers) Traits(ctx context.Context, name string) (Traits, error) {
	driver, ok := builtin.Drivers()[name]
	if !ok {
		var err error
		if driver, err = p.driver(ctx, name); err != nil {
			return Traits{}, err
		}
	}
	known, err := p.Accounts.of(ctx, name, driver)
	if err == nil {
		p.Secrets.HideEnv(p.Environ(), func(name string) bool { return agent.Names(known.pass, name) })
		p.Secrets.HideEnv(known.env, secret.IsCredentialName)
	}
	return known, err
}

// limitTracker is what one run of an agent says of its account.
type limitTracker struct {
	agents  *Agents
	account string
	broken  error // the account's limits could not be kept: nobody may try again
}

// limited takes a refusal of the API, and reports whether the agent is to be stopped.
func (t *limitTracker) limited(l provider.Limit) bool {
	stop, err := t.agents.Providers.Accounts.limits.Met(t.account, l)
	t.broken = errors.Join(t.broken, err)
	return stop
}

// observe takes what the agent said: an answer of the API, perhaps.
func (t *limitTracker) observe(part provider.Event) {
	if _, answer := part.(provider.Spent); answer {
		t.agents.LimitWait.renew()
		t.broken = errors.Join(t.broken, t.agents.Providers.Accounts.limits.Answered(t.account))
	}
}
