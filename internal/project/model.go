package project

import (
	"maps"
	"slices"

	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/plugins/builtin"
)

// BuiltinProviders returns the names of the built-in providers.
func BuiltinProviders() []string { return slices.Sorted(maps.Keys(builtin.Providers())) }

// ModelOf returns the default model of a provider's agents. coven's own default is a short name
// of a Claude model; for providers that do not take it there is none.
func ModelOf(provider string, cfg config.Config) string {
	standard := config.Default().DefaultModel
	if cfg.DefaultModel == standard && !slices.Contains(builtin.ModelNames(provider), standard) {
		return ""
	}
	return cfg.DefaultModel
}
