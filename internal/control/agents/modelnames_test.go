package agents

import (
	"context"
	"testing"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/provider"
)

// Short names are those of Claude, and only the server knows what else there is.
func TestCheckModels(t *testing.T) {
	for _, c := range []struct {
		provider, model string
		wrong           bool
	}{
		{"claude", "", false},
		{"anthropic-loop", "sonnet", false},
		{"anthropic-loop", "claude-x", false},
		{"anthropic-loop", "", true},
		{"openai-loop", "sonnet", true},
		{"openai-loop", "", true},
		{"openai-loop", "mistral", false},
		{"mine-loop", "", false},
	} {
		plan := &grimoires.Plan{Provider: c.provider, Model: c.model, Grimoire: grimoires.NewChat()}
		err := CheckModels(plan, func(plugins.Need) bool { return true })
		if (err != nil) != c.wrong || err != nil && exit.Next(err) == "" {
			t.Errorf("%s %q: %v", c.provider, c.model, err)
		}
		if err := CheckModels(plan, func(plugins.Need) bool { return false }); err != nil {
			t.Errorf("%s %q of another plugin: %v", c.provider, c.model, err)
		}
	}
	if err := admission(&grimoires.Plan{Provider: "openai-loop", Model: "m-1"}).KnowsModel("opus"); err == nil {
		t.Error("openai-loop knows opus")
	}
}

// priced is a model whose plugin knows prices.
type priced struct {
	model.Model
	asked int
}

func (p *priced) Models(context.Context) ([]model.Info, error) {
	p.asked++
	return []model.Info{{ID: "m-1", Prices: &model.Prices{Input: 3, Output: 15, CacheRead: 1, CacheWrite: 4}}, {ID: "m-2"}}, nil
}

// The prices of a plugin count for models that the configuration has none for.
func TestPriceOf(t *testing.T) {
	c := &Agents{Providers: &Providers{}, Prices: budget.Prices{Models: []budget.Price{{Model: "mine", Input: 1}}}}
	used := provider.Usage{InputTokens: 1e6, OutputTokens: 1e6, CacheReadTokens: 1e6, CacheWriteTokens: 1e6}
	m := &priced{}
	for id, want := range map[string]float64{"m-1": 23, "m-2": 0, "mine": 0, "m-3": 0} {
		if got := c.priceOf(t.Context(), "p", m, id, used); got != want {
			t.Errorf("%s: %v", id, got)
		}
	}
	if m.asked != 1 {
		t.Errorf("the plugin was asked %d times", m.asked)
	}
}
