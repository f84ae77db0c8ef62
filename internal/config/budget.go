package config

import (
	"path"
	"time"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/yamldoc"
)

// amount reads a budget; an empty one removes the previous one.
func amount(doc *yamldoc.Document, given yamldoc.At[budget.Amount], before budget.Amount) budget.Amount {
	if !given.Set() {
		return before
	}
	given.Value.Check(doc, given)
	return given.Value
}

// pricesKeys is the prices section of a file.
type pricesKeys struct {
	AsOf   text       `yaml:"as_of" need:"true" about:"the date they applied on: 2026-01-31"`
	Models []priceKey `yaml:"models" about:"prices; the first matching pattern applies"`
}

type priceKey struct {
	Model      text                `yaml:"model" need:"true" about:"a name, or a pattern: claude-sonnet-*"`
	Input      yamldoc.At[float64] `yaml:"input" need:"true" about:"US dollars per million tokens"`
	Output     yamldoc.At[float64] `yaml:"output" need:"true" about:"US dollars per million tokens"`
	CacheRead  yamldoc.At[float64] `yaml:"cache_read" about:"as input"`
	CacheWrite yamldoc.At[float64] `yaml:"cache_write" about:"as input"`
}

// prices returns the prices of a file, followed by the previous ones.
func prices(doc *yamldoc.Document, given yamldoc.At[pricesKeys], before budget.Prices) budget.Prices {
	if !given.Set() {
		return before
	}
	table := budget.Prices{AsOf: given.Value.AsOf.Value}
	if _, err := time.Parse(time.DateOnly, table.AsOf); err != nil {
		doc.Fail(at(given.Value.AsOf, given), "prices need the date they applied on", "as_of: 2026-01-31")
	}
	for _, k := range given.Value.Models {
		p := budget.Price{
			Model: k.Model.Value, Input: k.Input.Value, Output: k.Output.Value,
			CacheRead: k.CacheRead.Or(k.Input.Value), CacheWrite: k.CacheWrite.Or(k.Input.Value),
		}
		_, bad := path.Match(p.Model, "")
		switch {
		case p.Model == "" || bad != nil:
			doc.Fail(at(k.Model, given), "a price needs a model name or pattern", "model: claude-sonnet-*")
		case !k.Input.Set() || !k.Output.Set() || p.Input < 0 || p.Output < 0 || p.CacheRead < 0 || p.CacheWrite < 0:
			doc.Fail(k.Model, "a price needs input and output, in US dollars per million tokens", "input: 3, output: 15")
		}
		table.Models = append(table.Models, p)
	}
	return table.Over(before)
}

// at returns the place of a word, or of the section that lacks it.
func at(word text, in yamldoc.Place) yamldoc.Place {
	if word.Set() {
		return word
	}
	return in
}
