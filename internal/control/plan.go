package control

import (
	"context"
	"fmt"
	"strings"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/control/agents"
	"github.com/coven-run/coven/internal/control/planning"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/worktree"
)

// plan returns the frozen plan of a new session. The session never reads the grimoires,
// prompts or configuration again, unless a person asks for it: see RetryRequest.
func (c *Controller) plan(ctx context.Context, item project.Item, prior session.View, target worktree.Target, o Options) (*grimoires.Plan, error) {
	plan, err := planning.Draft(c.Project, item.Task, planning.Options{
		Grimoire: o.Grimoire, Provider: o.Provider, Model: o.Model, Agent: o.Agent, Spawn: o.spawn, Chat: o.chat, Pull: o.Pull, Given: o.Given,
	})
	if err != nil {
		return nil, err
	}
	_, leftOut, _ := c.Project.PlannedServers() // the draft has reported the error
	for _, reason := range leftOut {
		c.notifyOnce(Notice{Text: "agents work without MCP servers: " + reason.Error(), Next: exit.Next(reason)})
	}
	for _, reason := range plan.Unfit {
		c.notifyOnce(Notice{Text: "warning: " + reason, Next: "coven grimoires validate " + shellword.Word(plan.Grimoire.Name)})
	}
	if err := c.checkTrust(plan); err != nil {
		return nil, err
	}
	if err := agents.CheckModelName(plan.Provider, o.Model); err != nil {
		return nil, err
	}
	if err := c.Project.CheckPlugins(project.NeedsOf(plan.Grimoire, plan.Provider)); err != nil {
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
	plan.Target = target.Ref
	if c.Project.Config.PriorAttempt {
		plan.Attempt = AttemptText(prior)
	}
	return plan, nil
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
