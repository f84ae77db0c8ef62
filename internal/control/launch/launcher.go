// Package launch runs agents in the workspace of a session: those of steps and chats, reviewers, subagents, and the
// evaluators of subagents. They differ in their roles only. launch turns a role into a driver.Job, with the gate for
// its tool calls and everything that ends with it.
package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/agent/spawn"
	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/control/accounts"
	"github.com/coven-run/coven/internal/control/agents"
	"github.com/coven-run/coven/internal/control/workspace"
	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/search"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/session/usage"
	"github.com/coven-run/coven/plugins/builtin"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/provider"
	"github.com/coven-run/coven/runner"
	"github.com/coven-run/coven/worktree"
)

// Launcher runs agents in a workspace. It implements the agents of package runner.
type Launcher struct {
	Providers *accounts.Providers
	Runner    *driver.Runner
	Workspace *workspace.Workspace
	Session   *session.Session
	Plan      *grimoires.Plan
	Provider  string // replaces that of the plan; see driven
	Model     string // of that provider's agents
	Idle      time.Duration
	Limits    config.Limits
	Getenv    func(string) string // of the user
	Version   string              // coven's
	Ungated   bool                // the user allows agents whose calls do not pass the gate
	LimitWait *LimitWait
	Logins    *accounts.Logins
	Others    accounts.Others // machines that share the limits
	Inbox     *Inbox
	Spawns    *Spawns
	Approvals *Approvals
	Search    Search
	Prices    budget.Prices
	// Today returns the budget of the repository for today, with the usage of all sessions.
	Today func() (budget.Day, error)
}

// Search finds files for agents.
type Search struct {
	Files    func(*worktree.Worktree) *search.Index
	Sessions func() *search.Index
}

// Run implements the agents of package runner.
func (l *Launcher) Run(ctx context.Context, run runner.AgentRun) (report driver.Report, err error) {
	if run.Agent == spawn.User {
		return l.direct(ctx, run)
	}
	who, err := l.roleOf(ctx, run)
	if err != nil {
		return driver.Report{}, err
	}
	work := assignment{
		id: run.Conversation, resume: run.Resume, prompt: run.Prompt, maxTurns: who.definition.MaxTurns,
		transcript: run.Transcript, spend: run.Spend, charge: run.Subagent,
	}
	if !run.ReadOnly { // messages are for the agent whose work is reviewed
		work.messages = l.Inbox.messages
		l.Inbox.restart()
	}
	a, err := l.launch(ctx, who, work)
	if err != nil {
		return driver.Report{}, err
	}
	if report, err = a.step(ctx, run); err == nil && report.Kind == driver.Login {
		err = l.loginError(who.provider, report.Error)
	}
	return report, errors.Join(err, a.close())
}

// step runs the agent of a step. The repository takes its commits, unless it may only read.
func (a *agentRun) step(ctx context.Context, run runner.AgentRun) (report driver.Report, err error) {
	if run.Chat && a.loop == nil { // the loop records the message itself
		if err := a.Session.Say(session.Part{Path: run.Path, Type: "text", Role: event.RoleUser, Text: run.Prompt}); err != nil {
			return driver.Report{}, err
		}
	}
	if a.readOnly {
		return a.run(ctx)
	}
	err = a.Workspace.Isolated(ctx, func() (err error) {
		report, err = a.run(ctx)
		return err
	})
	return report, err
}

// roleOf returns the role of an agent of a step, or of a reviewer.
func (l *Launcher) roleOf(ctx context.Context, run runner.AgentRun) (role, error) {
	root, err := l.worktreeRoot()
	if err != nil {
		return role{}, err
	}
	env, err := l.Workspace.Environment(run.Env, nil)
	if err != nil {
		return role{}, err
	}
	name := cmp.Or(run.Agent, grimoires.DefaultAgent)
	provider, model := l.driven(run.Provider, run.Model)
	who := role{
		Caller:   spawn.Caller{Agent: name, Chain: []string{spawn.User, name}, Path: run.Path, Model: model, Trace: l.Session.TraceID()},
		provider: provider, dir: run.Workdir, env: append([]string{"COVEN_STEP_KEY=" + run.Key}, env...),
		readOnly: run.ReadOnly, tools: !run.ReadOnly,
	}
	who.stateDir = filepath.Join(l.Workspace.Worktree.StateDir(), who.provider)
	if run.ReadOnly {
		own := l.Plan.Agents[run.Agent]
		traits, err := l.Providers.Traits(ctx, who.provider)
		if err == nil && !traits.Harmless {
			err = accounts.WritesWhenReviewing(who.provider)
		}
		who.definition, who.system = own, systemOf{own: own.Prompt, readOnly: true, reviews: true}
		who.Policy = permission.OfReader(root, cmp.Or(run.Agent, "reviewer"), own.Permissions, own.Asks, l.Plan.Rules)
		return who, err
	}
	own := l.Plan.Agents[name]
	who.definition, who.Policy = own, permission.OfPrimary(root, name, own.Permissions, own.Asks, l.Plan.Rules)
	who.system = systemOf{own: own.Prompt, skills: l.skillText(own), contract: "# How your work is taken\n\n" + runner.AgentResultContract}
	if run.Chat {
		who.system.contract = chatContract
	}
	return who, nil
}

// Reader implements the agents of package runner.
func (l *Launcher) Reader(name string) (provider, model string, err error) {
	if _, err := agents.Find(l.Plan, name); err != nil {
		return "", "", fmt.Errorf("%w: %w", err, pluginerr.ErrInvalid)
	}
	own := l.Plan.Agents[name]
	return own.Provider, own.Model, nil
}

// forwarder returns the func that starts the forwarder of an API.
func (l *Launcher) forwarder(emit func(event.Type, any) error) func(context.Context, string) (driver.Forwarder, error) {
	return func(ctx context.Context, api string) (driver.Forwarder, error) {
		return l.Logins.Forward(ctx, api, func(err error) { _ = emit(event.Warning, event.Text{Text: err.Error()}) }) // a record that fails stops the agent elsewhere
	}
}

// cost returns the price of an agent's usage, in US dollars.
func (l *Launcher) cost(used event.Usage) float64 {
	return usage.New(l.Prices).Amount(used).USD
}

// loginError returns the error for an agent whose login the API refused.
func (l *Launcher) loginError(provider, reason string) error {
	if api, ok := builtin.APIOf(provider); ok {
		why, login := api.Refused(l.Providers.Getenv)
		return &accounts.LoginError{Provider: provider, Reason: why + ": " + reason, Login: login}
	}
	cli, ok := builtin.CLIOf(provider)
	if !ok {
		return &accounts.LoginError{Provider: provider, Reason: "the API refused the login of provider " + provider + ": " + reason}
	}
	why, login := cli.Refused(l.Getenv)
	return &accounts.LoginError{Provider: provider, Reason: why + ": " + reason, Login: login}
}

// Recall implements the agents of package runner.
func (l *Launcher) Recall(ctx context.Context, provider string, transcript io.Reader) (driver.Report, bool, error) {
	plugin, err := l.plugin(ctx, provider)
	if err != nil {
		return driver.Report{}, false, err
	}
	report, complete, err := driver.Recall(ctx, plugin, transcript)
	return l.hide(report), complete, err
}

func (l *Launcher) plugin(ctx context.Context, name string) (provider.Provider, error) {
	name, _ = l.driven(name, "")
	return l.Providers.Plugin(ctx, name)
}

// driven returns the provider and the model of an agent. Of a session that was resumed with others, they replace those of the
// agents that the provider of the plan would run. An empty provider is that of the plan.
func (l *Launcher) driven(provider, model string) (string, string) {
	switch {
	case provider != "" && provider != l.Plan.Provider:
		return provider, model
	case l.Provider != l.Plan.Provider || l.Model != l.Plan.Model:
		return l.Provider, l.Model
	}
	return l.Plan.Provider, model
}

// hide removes secrets from the final message of an agent.
func (l *Launcher) hide(r driver.Report) driver.Report {
	r.Text, r.Error = l.Workspace.Secrets.Text(r.Text), l.Workspace.Secrets.Text(r.Error)
	for i := range r.Said {
		r.Said[i] = l.Workspace.Secrets.Text(r.Said[i])
	}
	return r
}
