package project

import (
	"maps"
	"slices"

	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/plugins/builtin"
)

// BuiltinProviders returns the names of the built-in providers.
func BuiltinProviders() []string { return slices.Sorted(maps.Keys(builtin.Providers())) }

// ModelOf returns the default model of a provider's agents. coven's own default is a model
// of claude; other CLIs have defaults of their own.
func ModelOf(provider string, cfg config.Config) string {
	standard := config.Default()
	if provider != standard.Provider && cfg.DefaultModel == standard.DefaultModel {
		return ""
	}
	return cfg.DefaultModel
}
