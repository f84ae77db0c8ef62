// Package planning makes the plan of a session from a project's configuration, grimoires, prompts and agents, and compares it with
// the plan that a session already has. It only reads files.
package planning

import (
	"cmp"
	"fmt"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/agent"
	"github.com/coven-run/coven/internal/agent/agenttree"
	"github.com/coven-run/coven/internal/agent/spawn"
	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/control/agents"
	"github.com/coven-run/coven/internal/control/launch"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/task"
)

// SingleAgent is the grimoire of a single agent.
const SingleAgent = "none"

// Options are the choices of a person for a session. The project chooses the empty ones.
type Options struct {
	Grimoire string
	Provider string
	Model    string
	Agent    string
	Spawn    *grimoires.SpawnRequest // set if a person starts a subagent directly
	Chat     *grimoires.Chat         // set if the session is a chat
	Given    map[string]grimoires.Given
	Pull     bool // land with a pull request, whatever the grimoire says
}

// Draft returns the plan of a session of a task, without its target and the text about an earlier attempt.
func Draft(p *project.Project, t task.Task, o Options) (*grimoires.Plan, error) {
	cfg := p.Config
	g, err := grimoire(p, t, o)
	if err != nil {
		return nil, err
	}
	known := p.Agents()
	if err := setStrategy(g, cfg.Landing.Strategy, o); err != nil {
		return nil, err
	}
	if err := setStartAgent(g, known, cfg.DefaultAgent, o); err != nil {
		return nil, err
	}
	definitions, tree, err := definitions(p, g, known, o)
	if err != nil {
		return nil, err
	}
	tools, err := p.ToolsOf(definitions)
	if err != nil {
		return nil, err
	}
	checks, _ := p.Checks()
	plan, err := p.Library.Freeze(g, checks)
	if err != nil {
		return nil, err
	}
	plan.Agents, plan.Tree, plan.Rules, plan.Spawn = definitions, tree, cfg.Rules(), o.Spawn
	plan.Chat, plan.Tools, plan.Skills, plan.Given = o.Chat, tools, p.PlannedSkills(definitions), o.Given
	if plan.Grimoire.Budget.IsZero() {
		plan.Grimoire.Budget.Amount = cfg.Budget
	}
	if plan.MCP, _, err = p.PlannedServers(); err != nil {
		return nil, err
	}
	plan.Provider = cmp.Or(o.Provider, cfg.Provider)
	plan.Model = cmp.Or(o.Model, project.ModelOf(plan.Provider, cfg))
	plan.Worktree, plan.Task = worktreeSettings(cfg.Worktree), project.PlanTask(t)
	return plan, nil
}

// grimoire returns the grimoire of a session.
func grimoire(p *project.Project, t task.Task, o Options) (*grimoires.Grimoire, error) {
	if o.Chat != nil {
		return grimoires.NewChat(), nil
	}
	choice, err := p.GrimoireOf(t, o.Grimoire)
	if err != nil {
		return nil, err
	}
	g, err := p.Library.Load(choice.Grimoire)
	if err != nil && o.Grimoire == "" {
		err = fmt.Errorf("%w\nchosen by %s", err, choice.Why)
	}
	return g, err
}

// setStrategy sets the strategy with which the change lands, where the grimoire says none. A chat lands several changes, and never with
// pull requests.
func setStrategy(g *grimoires.Grimoire, strategy string, o Options) error {
	switch {
	case o.Pull:
		strategy = grimoires.PullRequest
	case o.Chat != nil && strategy == grimoires.PullRequest:
		strategy = "squash"
	}
	if err := g.Strategies(strategy, o.Pull); err != nil {
		return exit.Usagef("coven config set landing.strategy squash", "%w", err)
	}
	return nil
}

// setStartAgent sets the agent that a grimoire of a single agent starts: the subagent of a request, the agent of
// the options, or the configured default.
func setStartAgent(g *grimoires.Grimoire, known *agent.Registry, name string, o Options) error {
	switch {
	case o.Spawn != nil:
		for _, step := range g.AgentSteps() {
			step.Agent = spawn.User
		}
		return nil
	case o.Agent != "":
		name = o.Agent
	}
	switch {
	case o.Chat == nil && g.Name != SingleAgent || name == "" || name == grimoires.DefaultAgent:
		return nil
	}
	if _, err := known.Get(name); err != nil {
		if o.Agent == "" {
			err = fmt.Errorf("default_agent: %w", err)
		}
		return exit.Usagef("coven agents list", "%w", err)
	}
	for _, step := range g.AgentSteps() {
		step.Agent = cmp.Or(step.Agent, name)
	}
	return nil
}

// definitions returns the agent definitions of a session, and the tree that arranges them if agents may
// delegate. The tree is nil if each agent works alone, as always when a person names the agent.
func definitions(p *project.Project, g *grimoires.Grimoire, known *agent.Registry, o Options) (map[string]grimoires.AgentDefinition, *grimoires.Tree, error) {
	cfg := p.Config
	all, err := agents.Definitions(known, p.Library, g, o.Model)
	if err != nil || !cfg.Agent.MultiAgent || o.Agent != "" || o.Spawn != nil {
		return all, nil, err
	}
	commands, _ := p.Tools() // errors are reported for the agents that name an invalid tool
	tools, err := launch.Divisible(all, commands, cfg.Rules())
	if err != nil {
		return nil, nil, err
	}
	tree := agents.Arrange(all, agenttree.Build(p.Specialists(known), tools, nil), tools, cfg.Agent.MaxRounds)
	agents.Delegate(g, tree, cfg.DefaultAgent)
	return all, tree, nil
}

// worktreeSettings returns the worktree settings for a plan, without time limits for empty lists of commands.
func worktreeSettings(w config.Worktree) (life grimoires.Worktree) {
	if len(w.Setup) > 0 {
		life.Setup, life.SetupTimeout = w.Setup, w.SetupTimeout
	}
	if len(w.Teardown) > 0 {
		life.Teardown, life.TeardownTimeout = w.Teardown, w.TeardownTimeout
	}
	return life
}
