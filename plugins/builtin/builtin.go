// Package builtin lists the plugins that coven ships, and the agent CLIs that they use.
package builtin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/plugins/builtin/acp"
	"github.com/coven-run/coven/plugins/builtin/claude"
	"github.com/coven-run/coven/plugins/builtin/codex"
	"github.com/coven-run/coven/plugins/builtin/endpoint"
	"github.com/coven-run/coven/plugins/builtin/gitea"
	"github.com/coven-run/coven/plugins/builtin/github"
	"github.com/coven-run/coven/plugins/builtin/gitlab"
	"github.com/coven-run/coven/plugins/builtin/qwen"
	"github.com/coven-run/coven/plugins/provider"
)

// Names returns the names of the built-in plugins. Package shipped contains the plugins.
func Names() map[plugins.Kind][]string {
	return map[plugins.Kind][]string{
		plugins.KindProvider: slices.Sorted(maps.Keys(Providers(os.Getenv))),
		plugins.KindModel:    {endpoint.Anthropic().Name, endpoint.OpenAI().Name, "scripted"},
		plugins.KindReviewer: {"agent", "command"},
		plugins.KindArbiter:  {"agent", "rules"},
		plugins.KindForge:    {github.Name, gitea.Name, gitlab.Name},
	}
}

// Providers returns the built-in providers. getenv reads the environment of the user, including the result
// of Settings.
func Providers(getenv func(string) string) map[string]provider.Provider {
	return map[string]provider.Provider{
		acp.Name: acp.New(getenv),
		"claude": claude.Provider{Getenv: getenv},
		"codex":  codex.Provider{Getenv: getenv},
		"qwen":   qwen.Provider{Getenv: getenv},
	}
}

// Capabilities returns the declared capabilities of a built-in provider.
func Capabilities(name string) provider.Capabilities {
	return map[string]provider.Capabilities{
		acp.Name: {provider.Resume},
		"claude": {provider.Gated, provider.Resume, provider.Messages},
		"codex":  {provider.Resume, provider.ReadOnly},
		"qwen":   {provider.Resume, provider.ReadOnly},
	}[name]
}

// Toolless reports whether the CLI of a built-in provider does not support coven's tools: the codex plugin
// does not offer them, and Qwen Code has no tools from others in its bare mode.
func Toolless(name string) bool { return name == "codex" || name == "qwen" }

// Settings returns the user's settings of the built-in providers, as KEY=VALUE for their environment. An
// agent without a command is not configured.
func Settings(agent acp.Settings) []string {
	if len(agent.Command) == 0 {
		return nil
	}
	text, _ := json.Marshal(agent) // strings can always be encoded
	return []string{acp.Variable + "=" + string(text)}
}

// ModelNames returns the short model names that a built-in provider is known to accept, with the default first. It
// returns nil if there are none.
func ModelNames(name string) []string {
	switch name {
	case "claude":
		return []string{"sonnet", "opus", "haiku", "opusplan", "best", "fable", "default"}
	case plugins.LoopOf(endpoint.Anthropic().Name):
		return []string{"sonnet", "opus", "haiku"}
	}
	return nil
}

// APIOf returns the API that a provider uses in coven's own loop, if a built-in model plugin supports it.
func APIOf(provider string) (endpoint.API, bool) {
	plugin, ok := plugins.LoopModel(provider)
	if !ok {
		return endpoint.API{}, false
	}
	return endpoint.Of(plugin)
}

// Credentials returns the user's variables with the address and credentials of a built-in model plugin's
// API, the tokens of a forge's hosts, or the settings of a provider. No other plugin gets them.
func Credentials(need plugins.Need, user, settings []string) (env []string) {
	if need == (plugins.Need{Kind: plugins.KindProvider, Name: acp.Name}) {
		return settings
	}
	if need == (plugins.Need{Kind: plugins.KindForge, Name: github.Name}) {
		return github.Credentials(context.Background(), user)
	}
	var variables []string
	switch api, ok := endpoint.Of(need.Name); {
	case ok && need.Kind == plugins.KindModel:
		variables = api.Variables()
	case need == plugins.Need{Kind: plugins.KindForge, Name: gitea.Name}:
		variables = gitea.Variables()
	case need == plugins.Need{Kind: plugins.KindForge, Name: gitlab.Name}:
		variables = gitlab.Variables()
	}
	for _, kv := range user {
		if name, _, _ := strings.Cut(kv, "="); slices.Contains(variables, name) {
			env = append(env, kv)
		}
	}
	return env
}

// AgentCLI is an agent CLI. Its program has the name of its provider.
type AgentCLI struct {
	Program string
	npm     string   // npm package
	Tested  string   // the version that coven is tested with, as in .ci/pins
	Login   string   // the command that logs in; empty if only a key does
	Keys    []string // variables with credentials, which take precedence over a login
	homeVar string   // variable for the directory of the user's settings and conversations
	home    string   // that directory without the variable, relative to the user's home
}

// AgentCLIs returns the CLIs of the built-in providers.
func AgentCLIs() []AgentCLI {
	return []AgentCLI{
		{"claude", "@anthropic-ai/claude-code", "2.1.332", "claude auth login", []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"}, "CLAUDE_CONFIG_DIR", ".claude"},
		{"codex", "@openai/codex", "0.169.0", "codex login", []string{"CODEX_API_KEY"}, "CODEX_HOME", ".codex"},
		{"qwen", "@qwen-code/qwen-code", "0.24.4", "", []string{"OPENAI_API_KEY"}, "QWEN_HOME", ".qwen"},
	}
}

// CLIOf returns the CLI of a built-in provider.
func CLIOf(provider string) (AgentCLI, bool) {
	for _, c := range AgentCLIs() {
		if c.Program == provider {
			return c, true
		}
	}
	return AgentCLI{}, false
}

// Install returns the command that installs the CLI.
func (c AgentCLI) Install() string { return "npm install -g " + c.npm }

// Configured reports whether the user has set a key of the CLI, or has logged in or configured it before.
func (c AgentCLI) Configured(getenv func(string) string) bool {
	if slices.ContainsFunc(c.Keys, func(key string) bool { return getenv(key) != "" }) {
		return true
	}
	dir := cmp.Or(getenv(c.homeVar), filepath.Join(getenv("HOME"), c.home))
	_, err := os.Stat(dir)
	return err == nil
}

// Refused explains why the API rejected the login of the CLI, and returns the command that helps.
func (c AgentCLI) Refused(getenv func(string) string) (why, next string) {
	keys, login := c.Keys, c.Login
	if c.Program == "codex" && getenv("OPENAI_BASE_URL") != "" {
		keys, login = []string{"OPENAI_API_KEY"}, "" // the user's own server has no login
	}
	for _, key := range keys {
		if getenv(key) != "" {
			return key + " is wrong", "export " + key + "=..."
		}
	}
	if login == "" {
		return keys[0] + " is not set", "export " + keys[0] + "=..."
	}
	return c.Program + " is not logged in", login
}

// Installer returns the command that installs a program that was not found.
func Installer(err error) string {
	missing := (*fs.PathError)(nil)
	if errors.As(err, &missing) {
		for _, c := range AgentCLIs() {
			if c.Program == missing.Path {
				return c.Install()
			}
		}
	}
	return "install it"
}
