package config

import (
	"path"
	"time"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/config/yamldoc"
)

// prices merges the prices of a file with the previous ones. Those of a repository apply only to models without a
// previous price: otherwise a low price would defeat the user's budget.
func (r reader) prices(before budget.Prices) budget.Prices {
	at := r.at("prices")
	if !at.Set() {
		return before
	}
	var table budget.Prices
	r.doc.DecodeNode(at, &table)
	if _, err := time.Parse(time.DateOnly, table.AsOf); err != nil {
		r.doc.Fail(r.keyOr(at, "as_of"), "prices need the date they applied on", "as_of: 2026-01-31")
	}
	items := r.doc.Items(r.doc.Key(at, "models"))
	for i := range table.Models {
		if len(items) == len(table.Models) {
			r.price(at, items[i], &table.Models[i])
		}
	}
	if r.file.theirs {
		return before.Over(table)
	}
	return table.Over(before)
}

// price checks a price and sets its defaults. section contains the price.
func (r reader) price(section, at yamldoc.Node, p *budget.Price) {
	has := func(key string) bool { return r.doc.Key(at, key).Set() }
	if !has("cache_read") {
		p.CacheRead = p.Input
	}
	if !has("cache_write") {
		p.CacheWrite = p.Input
	}
	_, bad := path.Match(p.Model, "")
	switch {
	case !has("model"):
		r.doc.Fail(section, "a price needs a model name or pattern", "model: claude-sonnet-*")
	case p.Model == "" || bad != nil:
		r.doc.Fail(r.doc.Key(at, "model"), "a price needs a model name or pattern", "model: claude-sonnet-*")
	case !has("input") || !has("output") || p.Input < 0 || p.Output < 0 || p.CacheRead < 0 || p.CacheWrite < 0:
		r.doc.Fail(r.doc.Key(at, "model"), "a price needs input and output, in US dollars per million tokens", "input: 3, output: 15")
	}
}

// keyOr returns the value of a key in a section, or the section itself if it lacks the key.
func (r reader) keyOr(section yamldoc.Node, key string) yamldoc.Node {
	if value := r.doc.Key(section, key); value.Set() {
		return value
	}
	return section
}
