package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/coven-run/coven/internal/baseline"
	"github.com/coven-run/coven/internal/channel"
	"github.com/coven-run/coven/internal/gate"
	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/tool"
	"github.com/coven-run/coven/internal/tool/message"
)

// ownTools returns the tools of coven that an agent has: the baseline, and spawn_agent.
func (c *Agents) ownTools(s *spawner, ask asking) ([]tool.Tool, error) {
	all := append([]tool.Tool{s.tool(), ask.tool()}, s.messageTools()...)
	for _, t := range baseline.Tools(baseline.Options{
		Files: c.Search.Files(c.Workspace.Worktree), Sessions: c.Search.Sessions(), Check: checker(s.caller.Policy),
	}) {
		schema, err := json.Marshal(t.InputSchema)
		if err != nil {
			return nil, fmt.Errorf("encode the schema of %s: %w", t.Name, err)
		}
		needed, _ := gate.Permission(t.Name)
		all = append(all, tool.Tool{
			Name: t.Name, Category: "search", Permission: string(needed), Description: t.Description, Schema: schema, ReadOnly: true, Call: at(t.Call),
		})
	}
	return all, nil
}

// messageTools returns the tools with which an agent talks to others, if it may.
func (s *spawner) messageTools() []tool.Tool {
	if s.caller.Policy != nil && !mayMessage(s.caller.Policy) {
		return nil
	}
	return message.Tools(message.Agent{Channels: s.channels(), Name: s.caller.Agent, Path: s.caller.Path, Hide: s.Workspace.Secrets.Text})
}

func mayMessage(policy *permission.Policy) bool {
	return slices.Contains(policy.Grants(), permission.AgentMessage)
}

// channels returns the channels of the session; nil: there is no session.
func (s *spawner) channels() *channel.Channels {
	if s.Session == nil {
		return nil
	}
	s.Spawns.mu.Lock()
	defer s.Spawns.mu.Unlock()
	if s.Spawns.channels == nil {
		s.Spawns.channels = channel.New(s.Session.Dir, s.Session.Now)
	}
	return s.Spawns.channels
}

// at returns a call that lets the next one begin at once.
func at(call func(context.Context, json.RawMessage) (string, error)) func(context.Context, json.RawMessage) (string, error) {
	return func(ctx context.Context, arguments json.RawMessage) (string, error) {
		tool.Begun(ctx)
		return call(ctx, arguments)
	}
}

// checker returns why a policy refuses an action on a file; nil: it allows it.
func checker(policy *permission.Policy) func(name, path string) error {
	return func(name, path string) error {
		d := policy.Decide(permission.Request{Permission: permission.Name(name), Path: path})
		if !d.Allowed() {
			return errors.New(d.Reason)
		}
		return nil
	}
}
