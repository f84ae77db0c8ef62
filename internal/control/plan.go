package control

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/agent"
	"github.com/coven-run/coven/internal/agent/agenttree"
	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/control/agents"
	"github.com/coven-run/coven/internal/control/launch"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/worktree"
)

// plan returns the frozen plan of a new session. The session never reads the grimoires,
// prompts or configuration again.
func (c *Controller) plan(ctx context.Context, item project.Item, prior session.View, target worktree.Target, o Options) (*grimoires.Plan, error) {
	cfg := c.Project.Config
	g, err := c.grimoire(item, o)
	if err != nil {
		return nil, err
	}
	known := c.Project.Agents()
	if err := setStartAgent(g, known, cfg.DefaultAgent, o); err != nil {
		return nil, err
	}
	definitions, tree, err := c.definitions(g, known, o)
	if err != nil {
		return nil, err
	}
	tools, err := c.Project.ToolsOf(definitions)
	if err != nil {
		return nil, err
	}
	checks, _ := c.Project.Checks()
	plan, err := c.Project.Library.Freeze(g, checks)
	if err != nil {
		return nil, err
	}
	plan.Agents, plan.Tree, plan.Rules, plan.Spawn = definitions, tree, cfg.Rules(), o.spawn
	plan.Chat, plan.Tools, plan.Skills = o.chat, tools, c.Project.PlannedSkills(definitions)
	if plan.Grimoire.Budget.IsZero() {
		plan.Grimoire.Budget.Amount = cfg.Budget
	}
	if plan.MCP, err = c.Project.PlannedServers(); err != nil {
		return nil, err
	}
	if err := c.checkTrust(plan); err != nil {
		return nil, err
	}
	plan.Provider = cmp.Or(o.Provider, cfg.Provider)
	if err := agents.CheckModelName(plan.Provider, o.Model); err != nil {
		return nil, err
	}
	plan.Model = cmp.Or(o.Model, project.ModelOf(plan.Provider, cfg))
	if err := c.Project.CheckPlugins(project.NeedsOf(g, plan.Provider)); err != nil {
		return nil, err
	}
	if err := agents.CheckModels(plan, c.Project.IsBuiltin); err != nil {
		return nil, err
	}
	if err := c.checkProviders(ctx, plan); err != nil {
		return nil, err
	}
	if err := agents.Admit(plan); err != nil {
		return nil, exit.Failedf("coven agents show "+shellword.Word(o.spawn.Agent), "%w", err)
	}
	if err := c.preflight(ctx, plan); err != nil {
		return nil, err
	}
	plan.Target, plan.Worktree = target.Ref, worktreeSettings(cfg.Worktree)
	plan.Task = project.PlanTask(item.Task)
	if cfg.PriorAttempt {
		plan.Attempt = AttemptText(prior)
	}
	return plan, nil
}

// grimoire returns the grimoire of a new session.
func (c *Controller) grimoire(item project.Item, o Options) (*grimoires.Grimoire, error) {
	if o.chat != nil {
		return grimoires.NewChat(), nil
	}
	choice, err := c.Project.GrimoireOf(item.Task, o.Grimoire)
	if err != nil {
		return nil, err
	}
	g, err := c.Project.Library.Load(choice.Grimoire)
	if err != nil && o.Grimoire == "" {
		err = fmt.Errorf("%w\nchosen by %s", err, choice.Why)
	}
	return g, err
}

// setStartAgent sets the agent that a grimoire of a single agent starts: the subagent of a request, the agent of
// the options, or the configured default.
func setStartAgent(g *grimoires.Grimoire, known *agent.Registry, name string, o Options) error {
	switch {
	case o.spawn != nil:
		useSpawnRequest(g)
		return nil
	case o.Agent != "":
		name = o.Agent
	}
	switch {
	case o.chat == nil && g.Name != singleAgent || name == "" || name == grimoires.DefaultAgent:
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

// definitions returns the agent definitions of a new session, and the tree that arranges them if agents may
// delegate. The tree is nil if each agent works alone, as always when a person names the agent.
func (c *Controller) definitions(g *grimoires.Grimoire, known *agent.Registry, o Options) (map[string]grimoires.AgentDefinition, *grimoires.Tree, error) {
	cfg := c.Project.Config
	all, err := agents.Definitions(known, c.Project.Library, g, o.Model)
	if err != nil || !cfg.Agent.MultiAgent || o.Agent != "" || o.spawn != nil {
		return all, nil, err
	}
	commands, _ := c.Project.Tools() // errors are reported for the agents that name an invalid tool
	tools, err := launch.Divisible(all, commands, cfg.Rules())
	if err != nil {
		return nil, nil, err
	}
	tree := agents.Arrange(all, agenttree.Build(c.Project.Specialists(known), tools, nil), tools, cfg.Agent.MaxRounds)
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

// AttemptText describes the previous attempt for the agent of the next one.
func AttemptText(v session.View) string {
	if v.Started.IsZero() {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Status: %s\n", v.Status)
	reason := v.Detail
	if why := oneline.Of(v.FailedWhy); why != "" && why != oneline.Of(v.Detail) { // a person dismissed it afterwards
		reason = why + "; " + v.Detail
	}
	for _, part := range []struct{ name, text string }{
		{"Failing step", v.FailedAt},
		{"Reason", reason},
		{"Summary", v.Summary},
		{"Landed as", v.Commit},
	} {
		if part.text != "" {
			fmt.Fprintf(&b, "%s: %s\n", part.name, oneline.Of(part.text))
		}
	}
	if patch := session.RejectedPatch(v.Dir); v.Rejected && patch != "" {
		b.WriteString("\nThe rejected change:\n\n")
		for line := range strings.Lines(patch) {
			b.WriteString("    " + line)
		}
	}
	return b.String()
}
