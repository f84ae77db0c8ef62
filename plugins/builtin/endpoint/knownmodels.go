package endpoint

import (
	"path"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/plugins/model"
)

// known describes well-known models. The first matching pattern applies.
type known struct {
	pattern           string // for path.Match
	window, maxOutput int
	adaptive          bool // it supports the parameter for adaptive thinking with a summary
}

func (a API) known() []known {
	if a.Name == "anthropic" {
		return []known{
			{"claude-3*", 200_000, 8_192, false},
			{"claude-opus-4-[78]*", 1_000_000, 128_000, true},
			{"claude-opus-4-6*", 1_000_000, 128_000, false},
			{"claude-sonnet-4-6*", 1_000_000, 64_000, false},
			{"claude-opus-4-5*", 200_000, 64_000, false},
			{"claude-opus-4*", 200_000, 32_000, false},
			{"claude-*-4*", 200_000, 64_000, false},
			{"claude-*-5*", 1_000_000, 128_000, true},
		}
	}
	return []known{
		{"gpt-5.[456]-mini*", 400_000, 128_000, false},
		{"gpt-5.[456]-nano*", 400_000, 128_000, false},
		{"gpt-5.[456]*", 1_050_000, 128_000, false},
		{"gpt-5*", 400_000, 128_000, false},
		{"gpt-4.1*", 1_047_576, 32_768, false},
		{"gpt-4o*", 128_000, 16_384, false},
		{"o3*", 200_000, 100_000, false},
		{"o4-mini*", 200_000, 100_000, false},
	}
}

func (a API) find(id string) known {
	for _, k := range a.known() {
		if ok, err := path.Match(k.pattern, id); ok && err == nil {
			return k
		}
	}
	return known{}
}

// Info returns the known properties of a model. A server on this machine may serve any model under a name,
// so nothing is known about its models.
func (c Connection) Info(id string) model.Info {
	info := model.Info{ID: id}
	if c.Account(c.Getenv) == Local {
		return info
	}
	k := c.find(id)
	info.Window, info.MaxOutput = k.window, k.maxOutput
	if p, ok := budget.DefaultPrices().Of(id); ok {
		info.Prices = &model.Prices{Input: p.Input, Output: p.Output, CacheRead: p.CacheRead, CacheWrite: p.CacheWrite}
	}
	return info
}

// MaxOutput returns a model's limit for one answer in tokens, or 0 if it is unknown.
func (a API) MaxOutput(id string) int { return a.find(id).maxOutput }

// Adaptive reports whether a model supports the parameter for adaptive thinking.
func (a API) Adaptive(id string) bool { return a.find(id).adaptive }
