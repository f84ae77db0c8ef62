package config

import (
	"path"
	"time"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/yamldoc"
)

// amountKeys is a budget as a file has it.
type amountKeys struct {
	USD    yamldoc.At[float64]       `yaml:"usd"`
	Tokens yamldoc.At[int64]         `yaml:"tokens"`
	Turns  yamldoc.At[int]           `yaml:"turns"`
	Wall   yamldoc.At[time.Duration] `yaml:"wall"`
}

// amount reads a budget; an empty one takes away the one from before.
func amount(doc *yamldoc.Document, given yamldoc.At[amountKeys], before budget.Amount) budget.Amount {
	if !given.Set() {
		return before
	}
	k := given.Value
	a := budget.Amount{USD: k.USD.Value, Tokens: k.Tokens.Value, Turns: k.Turns.Value, Wall: k.Wall.Value}
	if k.USD.Set() && a.USD <= 0 || k.Tokens.Set() && a.Tokens <= 0 || k.Turns.Set() && a.Turns <= 0 {
		doc.Fail(given, "a budget must be more than 0", "{} for none")
	}
	return a
}

// pricesKeys are prices as a file has them.
type pricesKeys struct {
	AsOf   text       `yaml:"as_of"`
	Models []priceKey `yaml:"models"`
}

type priceKey struct {
	Model      text                `yaml:"model"`
	Input      yamldoc.At[float64] `yaml:"input"`
	Output     yamldoc.At[float64] `yaml:"output"`
	CacheRead  yamldoc.At[float64] `yaml:"cache_read"`
	CacheWrite yamldoc.At[float64] `yaml:"cache_write"`
}

// prices puts the prices of a file in front of those from before.
func prices(doc *yamldoc.Document, given yamldoc.At[pricesKeys], before budget.Prices) budget.Prices {
	if !given.Set() {
		return before
	}
	table := budget.Prices{AsOf: given.Value.AsOf.Value}
	if _, err := time.Parse(time.DateOnly, table.AsOf); err != nil {
		doc.Fail(at(given.Value.AsOf, given), "prices need the day on which they held", "as_of: 2026-01-31")
	}
	for _, k := range given.Value.Models {
		p := budget.Price{
			Model: k.Model.Value, Input: k.Input.Value, Output: k.Output.Value,
			CacheRead: k.CacheRead.Or(k.Input.Value), CacheWrite: k.CacheWrite.Or(k.Input.Value),
		}
		_, bad := path.Match(p.Model, "")
		switch {
		case p.Model == "" || bad != nil:
			doc.Fail(at(k.Model, given), "a price needs the name of a model, or a pattern of names", "model: claude-sonnet-*")
		case !k.Input.Set() || !k.Output.Set() || p.Input < 0 || p.Output < 0 || p.CacheRead < 0 || p.CacheWrite < 0:
			doc.Fail(k.Model, "a price needs input and output: US dollars for a million tokens", "input: 3, output: 15")
		}
		table.Models = append(table.Models, p)
	}
	return table.Over(before)
}

// at is where a word stands, or what it is missing in.
func at(word text, in yamldoc.Place) yamldoc.Place {
	if word.Set() {
		return word
	}
	return in
}
