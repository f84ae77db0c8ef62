package agents

import (
	"cmp"
	"slices"
	"strings"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/text/didyoumean"
	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/plugins/builtin"
)

// CheckModelName returns an error if a provider does not know a model: a single word that is not one of its short
// names. Anything else may be the full ID of a model, which coven does not know. An agent CLI may know more short
// names than coven: of these, only those that are probably misspelt are errors.
func CheckModelName(provider, model string) error {
	known := builtin.ModelNames(provider)
	name := strings.TrimSuffix(model, "[1m]") // a variant with a larger context
	if len(known) == 0 || strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz") != "" {
		return nil
	}
	if name == "" || slices.Contains(known, name) {
		return nil
	}
	near, misspelt := didyoumean.Nearest(name, known)
	if _, isAPI := builtin.APIOf(provider); !isAPI && !misspelt {
		return nil
	}
	next := cmp.Or(near, known[0])
	return exit.Usagef("coven run --model "+next, "%s has no model %q%s: it takes %s, or the full id of a model", provider, model, didyoumean.Aside(name, known), strings.Join(known, ", "))
}

// CheckModels returns an error if the agents of a plan in coven's own loop have no model, or one
// that the API certainly does not know. isBuiltin reports whether coven's own plugin is used.
func CheckModels(plan *grimoires.Plan, isBuiltin func(plugins.Need) bool) error {
	for _, step := range plan.Grimoire.AgentSteps() {
		provider := cmp.Or(step.Provider, plan.Provider)
		if !isBuiltin(plugins.NeedOf(provider)) {
			continue
		}
		if err := checkModel(provider, cmp.Or(step.Model, plan.Model)); err != nil {
			return err
		}
	}
	return nil
}

// CheckModel returns an error if a built-in provider certainly cannot run agents with a model.
func CheckModel(provider, model string) error {
	return cmp.Or(CheckModelName(provider, model), checkModel(provider, model))
}

// checkModel returns an error if agents of a provider in coven's own loop have no model, or one
// that the API of its built-in plugin does not know: a short name that is none there.
func checkModel(provider, model string) error {
	api, ok := builtin.APIOf(provider)
	const next = "coven config set default_model MODEL"
	switch {
	case !ok:
	case model == "":
		return exit.Usagef(next, "provider %s has no default model: set default_model, or choose one with --model", provider)
	case slices.Contains(builtin.ModelNames("claude"), model) && !slices.Contains(api.ShortNames(), model):
		return exit.Usagef(next, "provider %s has no model %q, a short name of a Claude model: set default_model, or choose one with --model", provider, model)
	}
	return nil
}
