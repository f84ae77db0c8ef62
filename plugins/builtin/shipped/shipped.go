// Package shipped contains the plugins that coven serves itself. It is imported only by the command that
// serves them.
package shipped

import (
	"os"

	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/plugins/builtin"
	"github.com/coven-run/coven/plugins/builtin/agent"
	"github.com/coven-run/coven/plugins/builtin/anthropic"
	"github.com/coven-run/coven/plugins/builtin/command"
	"github.com/coven-run/coven/plugins/builtin/gitea"
	"github.com/coven-run/coven/plugins/builtin/github"
	"github.com/coven-run/coven/plugins/builtin/gitlab"
	"github.com/coven-run/coven/plugins/builtin/openai"
	"github.com/coven-run/coven/plugins/builtin/rules"
	"github.com/coven-run/coven/plugins/builtin/scripted"
)

// Find returns a built-in plugin.
func Find(kind plugins.Kind, name string) (served plugins.Served, ok bool) {
	if p, ok := builtin.Providers(os.Getenv)[name]; ok && kind == plugins.KindProvider {
		return plugins.Provider(p), true
	}
	served, ok = map[plugins.Kind]map[string]plugins.Served{
		plugins.KindModel: {
			"anthropic": plugins.Model(anthropic.Model{Getenv: os.Getenv}), "openai": plugins.Model(openai.Model{Getenv: os.Getenv}),
			"scripted": plugins.Model(scripted.Model{Getenv: os.Getenv}),
		},
		plugins.KindReviewer: {"agent": plugins.Reviewer(agent.Reviewer{}), "command": plugins.Reviewer(command.Reviewer{})},
		plugins.KindArbiter:  {"agent": plugins.Arbiter(agent.Arbiter{}), "rules": plugins.Arbiter(rules.Arbiter{})},
		plugins.KindForge: {
			github.Name: plugins.Forge(github.Forge{}), gitea.Name: plugins.Forge(gitea.Forge{}), gitlab.Name: plugins.Forge(gitlab.Forge{}),
		},
	}[kind][name]
	return served, ok
}
