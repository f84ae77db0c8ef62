package launch

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/tool"
)

// skillTools returns the tools with which an agent reads its skills.
func (l *Launcher) skillTools(own grimoires.AgentDefinition) (all []tool.Tool) {
	for _, name := range own.Skills {
		s, ok := l.Plan.Skills[name]
		if !ok {
			continue
		}
		all = append(all, tool.Tool{
			Kind: tool.Skill(name), Category: "document", ReadOnly: true, Description: "Read the skill " + name + ": " + s.Description,
			Schema: []byte(`{"type":"object","properties":{},"additionalProperties":false}`),
			Call: func(ctx context.Context, _ json.RawMessage) (string, error) {
				tool.Begun(ctx)
				return s.Body, nil
			},
		})
	}
	return all
}

// skillText tells an agent of its skills. It is part of the system prompt.
func (l *Launcher) skillText(own grimoires.AgentDefinition) string {
	var b strings.Builder
	for _, name := range own.Skills {
		if s, ok := l.Plan.Skills[name]; ok {
			fmt.Fprintf(&b, "\n- %s: %s", name, s.Description)
		} else {
			fmt.Fprintf(&b, "\n- %s: (this repository has no such skill)", name)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "# Skills\n\nBefore you do work that a skill is about, read the skill with the tool " + tool.SkillPrefix + "NAME.\n" + b.String()
}

// isSkills reports whether a server is only for agents with a skill that an agent does not have.
func (l *Launcher) isSkills(server string, own grimoires.AgentDefinition) bool {
	others := false
	for name, s := range l.Plan.Skills {
		if slices.Contains(s.MCP, server) {
			if slices.Contains(own.Skills, name) {
				return false
			}
			others = true
		}
	}
	return others
}

// needs reports whether a skill of an agent needs a server.
func (l *Launcher) needs(own grimoires.AgentDefinition, server string) bool {
	return slices.ContainsFunc(own.Skills, func(name string) bool { return slices.Contains(l.Plan.Skills[name].MCP, server) })
}
