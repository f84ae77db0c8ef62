package budget

import (
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Amount{
		"usd=5":                          {USD: 5},
		"usd=0.5,tokens=2000000":         {USD: 0.5, Tokens: 2_000_000},
		"turns=200, wall=1h30m":          {Turns: 200, Wall: 90 * time.Minute},
		"usd=1,tokens=2,turns=3,wall=4s": {USD: 1, Tokens: 2, Turns: 3, Wall: 4 * time.Second},
		"usd=1,usd=2 ":                   {USD: 2},
		"tokens=9000000000000000000":     {Tokens: 9_000_000_000_000_000_000},
		"wall=1ns,usd=1e-3,turns=1":      {USD: 0.001, Turns: 1, Wall: 1},
	} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "usd", "usd=", "usd=0", "usd=-1", "usd=+5", "usd=inf", "usd=nan", "tokens=1.5", "turns=x", "wall=5", "eur=5", "usd=5,,turns=1",
	} {
		if got, err := Parse(text); err == nil {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
	if got, err := ParseMore("usd=+5,wall=+10m"); err != nil || got != (Amount{USD: 5, Wall: 10 * time.Minute}) {
		t.Errorf("more: %+v, %v", got, err)
	}
	for _, text := range []string{"usd=5", "usd=++5", "usd=+-5"} {
		if got, err := ParseMore(text); err == nil {
			t.Errorf("%s is read as more: %+v", text, got)
		}
	}
	if got := Sum([]Amount{{USD: 5, Turns: 3}, {USD: 1}}); got != (Amount{USD: 6}) {
		t.Errorf("together: %v", got)
	}
}

// A used-up budget stops new agents. An exceeded budget also stops running agents.
func TestReached(t *testing.T) {
	limit := Amount{USD: 5, Tokens: 100, Turns: 10, Wall: time.Hour}
	for _, tt := range []struct {
		used             Amount
		reached, exceeds string
		more             string
	}{
		{Amount{USD: 4.99, Tokens: 99, Turns: 9, Wall: time.Minute}, "", "", ""},
		{Amount{USD: 5}, "$5.00 of $5.00", "", "usd=+5"},
		{Amount{USD: 5.004}, "$5.00 of $5.00", "$5.00 of $5.00", "usd=+5.01"},
		{Amount{Tokens: 100}, "100 of 100 tokens", "", "tokens=+100"},
		{Amount{Wall: time.Hour}, "1h0m0s of 1h0m0s at work", "", "wall=+1h0m0s"},
		{Amount{Tokens: 101}, "101 of 100 tokens", "101 of 100 tokens", "tokens=+101"},
		{Amount{Turns: 10}, "10 of 10 turns", "", "turns=+10"},
		{Amount{Turns: 11}, "11 of 10 turns", "11 of 10 turns", "turns=+11"},
		{Amount{Wall: time.Hour + time.Millisecond}, "1h0m0s of 1h0m0s at work", "1h0m0s of 1h0m0s at work", "wall=+1h0m1s"},
	} {
		if got := limit.Reached(tt.used); got != tt.reached {
			t.Errorf("%v reached: %q", tt.used, got)
		}
		if got := limit.Exceeds(tt.used); got != tt.exceeds {
			t.Errorf("%v exceeds: %q", tt.used, got)
		}
		if tt.more != "" && limit.SuggestMore(tt.used) != tt.more {
			t.Errorf("%v: more is %s", tt.used, limit.SuggestMore(tt.used))
		}
	}
	if got := (Amount{}).Reached(Amount{1e9, 1e9, 1e9, 1e9}); got != "" {
		t.Errorf("no limit is reached: %s", got)
	}
	if got := (Amount{Turns: 3}).Raised(Amount{USD: 5, Turns: 2}); got != (Amount{Turns: 5}) {
		t.Errorf("raised: %v", got)
	}
}

func TestCost(t *testing.T) {
	used := Tokens{Input: 1_000_000, Output: 100_000, CacheRead: 2_000_000, CacheWrite: 200_000}
	for model, want := range map[string]float64{
		"claude-sonnet-4-5-20250929": 3 + 1.5 + 0.6 + 0.75,
		"claude-sonnet-5-5":          2 + 1 + 0.2 + 0.5,
		"claude-opus-5-5":            4 + 2 + 0.4 + 1,
		"claude-haiku-5-5":           0.1 + 0.05 + 0.02 + 0.025,
		"sonnet":                     2 + 1 + 0.2 + 0.5,
		"gpt-5.4":                    2.5 + 1.5 + 0.5 + 0.5,
		"gpt-5.4-mini-2026-03-17":    0.75 + 0.45 + 0.15 + 0.15,
		"claude-opus-4-5":            5 + 2.5 + 1 + 1.25,
		"claude-opus-4-1-20250805":   15 + 7.5 + 3 + 3.75,
	} {
		got, known := DefaultPrices().Cost(model, used)
		if !known || got < want-1e-9 || got > want+1e-9 {
			t.Errorf("%s: %v, %v", model, got, known)
		}
	}
	if _, known := DefaultPrices().Cost("some-model", used); known {
		t.Error("an unknown model has a price")
	}
	own := Prices{AsOf: "2026-11-01", Models: []Price{{Model: "sonnet", Input: 1}}}.Over(DefaultPrices())
	if got, _ := own.Cost("sonnet", used); got != 1 || own.AsOf != "2026-11-01" {
		t.Errorf("own price: %v of %s", got, own.AsOf)
	}
	if used.New() != 1_300_000 {
		t.Errorf("new tokens: %d", used.New())
	}
}
