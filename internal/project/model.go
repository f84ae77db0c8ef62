package project

import (
	"maps"
	"slices"

	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/plugins/builtin"
)

// BuiltinProviders are the names of the providers that are built in.
func BuiltinProviders() []string { return slices.Sorted(maps.Keys(builtin.Drivers())) }

// ModelOf returns the default model of a provider's agents: coven's own
// default is a model of claude's, and each other CLI has a default of its own.
func ModelOf(provider string, cfg config.Config) string {
	standard := config.Default()
	if provider != standard.Provider && cfg.DefaultModel == standard.DefaultModel {
		return ""
	}
	return cfg.DefaultModel
}
