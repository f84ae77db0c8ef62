package fakeclaude

import (
	"maps"
	"strings"
	"time"
)

// tally sums up the usage of one message.
type tally struct {
	model      string
	started    time.Time
	turns      int // 1, plus 1 for every later message in the user's name
	used       usage
	stopReason any
	denials    []object
}

func (t *tally) add(got answer) {
	t.used.Input += got.usage.Input
	t.used.Output += got.usage.Output
	t.stopReason = got.stopReason
}

func (t *tally) cost() float64 { return price(t.model, t.used) }

// price returns the price in US dollars, at the real CLI's rates per million tokens.
func price(model string, used usage) float64 {
	in, out := 2.0, 10.0
	switch {
	case strings.Contains(model, "haiku"):
		in, out = 0.1, 0.5
	case !strings.Contains(model, "sonnet"):
		in, out = 4, 20
	}
	return (float64(used.Input)*in + float64(used.Output)*out) / 1e6
}

// result returns the result event. The given fields override the defaults.
func (t *tally) result(subtype string, fields object) object {
	denials := t.denials
	if denials == nil {
		denials = []object{}
	}
	elapsed := time.Since(t.started).Milliseconds()
	if t.started.IsZero() {
		elapsed = 0
	}
	result := object{
		"subtype": subtype, "duration_ms": elapsed, "duration_api_ms": elapsed, "num_turns": t.turns,
		"stop_reason": t.stopReason, "total_cost_usd": 0, "permission_denials": denials, "modelUsage": t.perModel(),
		"usage": object{
			"input_tokens": t.used.Input, "output_tokens": t.used.Output,
			"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
		},
	}
	maps.Copy(result, fields)
	return result
}

func (t *tally) perModel() object {
	if t.used == (usage{}) {
		return object{}
	}
	return object{t.model: object{
		"inputTokens": t.used.Input, "outputTokens": t.used.Output,
		"cacheReadInputTokens": 0, "cacheCreationInputTokens": 0, "costUSD": t.cost(),
	}}
}
