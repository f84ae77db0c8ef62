package launch

import (
	"errors"
	"slices"

	"github.com/coven-run/coven/internal/agent/channel"
	"github.com/coven-run/coven/internal/control/agents"
	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/tool"
	"github.com/coven-run/coven/internal/tool/baseline"
	"github.com/coven-run/coven/internal/tool/message"
)

// ownTools returns the tools of coven that an agent has.
func (l *Launcher) ownTools(s *spawner, ask asking) []tool.Tool {
	return slices.Concat([]tool.Tool{s.tool(), ask.tool()}, s.messageTools(), baseline.Tools(baseline.Options{
		Files: l.Search.Files(l.Workspace.Worktree), Sessions: l.Search.Sessions(), Check: checker(s.caller.Policy),
	}))
}

// messageTools returns the tools with which an agent talks to others, if it may.
func (s *spawner) messageTools() []tool.Tool {
	if s.caller.Policy != nil && !agents.MayMessage(s.caller.Policy) {
		return nil
	}
	return message.Tools(message.Agent{Channels: s.channels(), Name: s.caller.Agent, Path: s.caller.Path, Hide: s.Workspace.Secrets.Text})
}

// channels returns the channels of the session, or nil without a session.
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

// checker returns a function that returns an error if the policy refuses an action on a file.
func checker(policy *permission.Policy) func(permission.Name, string) error {
	return func(name permission.Name, path string) error {
		d := policy.Decide(permission.Request{Permission: name, Path: path})
		if !d.Allowed() {
			return errors.New(d.Reason)
		}
		return nil
	}
}
