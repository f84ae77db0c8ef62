package budget

import (
	"cmp"
	"path"
	"slices"
)

// Tokens counts the tokens that a model read and wrote, by price.
type Tokens struct {
	Input, Output, CacheRead, CacheWrite int64
}

// New returns the number of tokens that count in a budget. Tokens read from the
// model's cache were counted when they were written to it.
func (t Tokens) New() int64 { return t.Input + t.Output + t.CacheWrite }

// Add returns the sum of t and o.
func (t Tokens) Add(o Tokens) Tokens {
	return Tokens{t.Input + o.Input, t.Output + o.Output, t.CacheRead + o.CacheRead, t.CacheWrite + o.CacheWrite}
}

// Sub returns t without o.
func (t Tokens) Sub(o Tokens) Tokens {
	return Tokens{t.Input - o.Input, t.Output - o.Output, t.CacheRead - o.CacheRead, t.CacheWrite - o.CacheWrite}
}

// Price is the price of a million tokens of a model, in US dollars.
type Price struct {
	Model      string  `yaml:"model" need:"true" about:"a name, or a pattern: claude-sonnet-*"` // of path.Match
	Input      float64 `yaml:"input" need:"true" about:"US dollars per million tokens"`
	Output     float64 `yaml:"output" need:"true" about:"US dollars per million tokens"`
	CacheRead  float64 `yaml:"cache_read" about:"as input"`
	CacheWrite float64 `yaml:"cache_write" about:"as input"`
}

// Prices is a table of prices.
type Prices struct {
	AsOf   string  `yaml:"as_of" need:"true" about:"the date they applied on: 2026-01-31"`
	Models []Price `yaml:"models" about:"prices; the first matching pattern applies"`
}

// DefaultPrices returns the list prices as of the date in AsOf.
func DefaultPrices() Prices {
	return Prices{AsOf: "2026-11-22", Models: append(claudePrices(), gptPrices()...)}
}

func claudePrices() []Price {
	return []Price{
		{"claude-opus-5-5*", 4, 20, 0.20, 5},
		{"claude-sonnet-5-5*", 2, 10, 0.10, 2.50},
		{"claude-haiku-5-5*", 0.10, 0.50, 0.01, 0.125},
		{"claude-opus-4-1*", 15, 75, 1.50, 18.75},
		{"claude-opus-4-2*", 15, 75, 1.50, 18.75}, // claude-opus-4-20250514
		{"claude-opus-*", 5, 25, 0.50, 6.25},
		{"claude-sonnet-*", 3, 15, 0.30, 3.75},
		{"claude-3-5-haiku-*", 0.80, 4, 0.08, 1},
		{"claude-haiku-*", 1, 5, 0.10, 1.25},
		{"opus", 4, 20, 0.20, 5},
		{"sonnet", 2, 10, 0.10, 2.50},
		{"haiku", 0.10, 0.50, 0.01, 0.125},
	}
}

// gptPrices returns the prices for short prompts: some models cost twice as much for very long ones.
func gptPrices() []Price {
	return []Price{
		{"gpt-5.5", 5, 30, 0.50, 5},
		{"gpt-5.5-2*", 5, 30, 0.50, 5},
		{"gpt-5.4-mini*", 0.75, 4.50, 0.075, 0.75},
		{"gpt-5.4-nano*", 0.20, 1.25, 0.02, 0.20},
		{"gpt-5.4", 2.50, 15, 0.25, 2.50},
		{"gpt-5.4-2*", 2.50, 15, 0.25, 2.50},
		{"gpt-5.2", 1.75, 14, 0.175, 1.75},
		{"gpt-5.2-2*", 1.75, 14, 0.175, 1.75},
		{"gpt-5-mini*", 0.25, 2, 0.025, 0.25},
		{"gpt-5-nano*", 0.05, 0.40, 0.005, 0.05},
		{"gpt-5.1", 1.25, 10, 0.125, 1.25},
		{"gpt-5.1-2*", 1.25, 10, 0.125, 1.25},
		{"gpt-5", 1.25, 10, 0.125, 1.25},
		{"gpt-5-2*", 1.25, 10, 0.125, 1.25},
		{"gpt-4.1-mini*", 0.40, 1.60, 0.10, 0.40},
		{"gpt-4.1-nano*", 0.10, 0.40, 0.025, 0.10},
		{"gpt-4.1*", 2, 8, 0.50, 2},
		{"gpt-4o-mini*", 0.15, 0.60, 0.075, 0.15},
		{"gpt-4o", 2.50, 10, 1.25, 2.50},
		{"o3", 2, 8, 0.50, 2},
		{"o4-mini*", 1.10, 4.40, 0.275, 1.10},
	}
}

// Over returns a table with the models of p before those of other. The first matching
// pattern applies.
func (p Prices) Over(other Prices) Prices {
	p.AsOf = cmp.Or(p.AsOf, other.AsOf)
	p.Models = append(slices.Clone(p.Models), other.Models...)
	return p
}

// Of returns the price of a model. known is false if the table does not have the model.
func (p Prices) Of(model string) (price Price, known bool) {
	for _, m := range p.Models {
		if ok, err := path.Match(m.Model, model); err == nil && ok {
			return m, true
		}
	}
	return Price{}, false
}

// Cost returns the cost of tokens of a model. known is false if the table does not
// have the model.
func (p Prices) Cost(model string, t Tokens) (usd float64, known bool) {
	price, known := p.Of(model)
	return price.Cost(t), known
}

// Cost returns the cost of tokens, in US dollars.
func (p Price) Cost(t Tokens) (usd float64) {
	const million = 1e6
	return (float64(t.Input)*p.Input + float64(t.Output)*p.Output +
		float64(t.CacheRead)*p.CacheRead + float64(t.CacheWrite)*p.CacheWrite) / million
}
