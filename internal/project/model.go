package project

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/plugins/builtin"
	"github.com/coven-run/coven/plugins/builtin/acp"
)

// BuiltinProviders returns the names of the built-in providers.
func BuiltinProviders() []string { return builtin.Names()[plugins.KindProvider] }

// ModelOf returns the default model of a provider's agents. coven's own default is the short name
// of a Claude model, so the result is empty for providers that do not support it.
func ModelOf(provider string, cfg config.Config) string {
	standard := config.Default().DefaultModel
	if cfg.DefaultModel == standard && !slices.Contains(builtin.ModelNames(provider), standard) {
		return ""
	}
	return cfg.DefaultModel
}

// ProviderSettings returns the user's settings for the built-in providers, as
// KEY=VALUE for their environment.
func (p *Project) ProviderSettings() []string {
	agent := p.Config.ACP
	s := acp.Settings{Command: agent.Command, Env: agent.Env, Pass: agent.Pass}
	for _, file := range agent.Logins {
		if below, ok := strings.CutPrefix(file, "~"); ok {
			file = filepath.Join(p.Env.Getenv("HOME"), below)
		}
		s.Logins = append(s.Logins, file)
	}
	return builtin.Settings(s)
}

// CheckProvider returns an error if the user-configured program of a provider cannot be
// started.
func (p *Project) CheckProvider(name string) error {
	command := p.Config.ACP.Command
	switch {
	case name != acp.Name:
		return nil
	case len(command) == 0:
		return exit.Usagef("coven config set --user acp.command -- gemini --acp", "provider acp has no agent: acp.command is not set")
	}
	if _, err := exec.LookPath(command[0]); err != nil {
		return exit.Usagef("coven config get acp.command", "provider acp: %s is not on PATH", command[0])
	}
	return nil
}
