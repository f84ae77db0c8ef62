package launch

import (
	"context"
	"testing"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/control/accounts"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/provider"
)

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
	c := &Launcher{Providers: &accounts.Providers{}, Prices: budget.Prices{Models: []budget.Price{{Model: "mine", Input: 1}}}}
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
