package main

import (
	"maps"
	"slices"

	"github.com/coven-run/coven/internal/config"
)

// builtinProviders are the names of the providers that are built in.
func builtinProviders() []string { return slices.Sorted(maps.Keys(drivers())) }

// modelOf is the model of a provider's agents where nobody chose one: coven's own
// default is a model of claude's, and each other CLI has a default of its own.
func modelOf(provider string, cfg config.Config) string {
	standard := config.Default()
	if provider != standard.Provider && cfg.DefaultModel == standard.DefaultModel {
		return ""
	}
	return cfg.DefaultModel
}
