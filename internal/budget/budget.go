// Package budget tracks how much work may use: money, tokens, model turns, and working time.
//
// Rules. A limit of zero means no limit. The usage of an attempt counts whether it
// completed or was killed. A running agent is stopped when it has used more than
// its limit, and no agent starts once the limit is reached.
package budget

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/text/oneline"
)

// Amount is a budget or a usage.
type Amount struct {
	USD    float64       `json:"usd,omitempty" yaml:"usd,omitempty" about:"US dollars"`
	Tokens int64         `json:"tokens,omitempty" yaml:"tokens,omitempty" about:"tokens that the model reads for the first time or writes"` // without those read from its cache
	Turns  int           `json:"turns,omitempty" yaml:"turns,omitempty" about:"answers of the model"`
	Wall   time.Duration `json:"wall_ns,omitempty" yaml:"wall,omitempty" about:"time at work"` // without waits
}

// Add returns the sum of a and b.
func (a Amount) Add(b Amount) Amount {
	return Amount{a.USD + b.USD, a.Tokens + b.Tokens, a.Turns + b.Turns, a.Wall + b.Wall}
}

// Sub returns a without b.
func (a Amount) Sub(b Amount) Amount {
	return Amount{a.USD - b.USD, a.Tokens - b.Tokens, a.Turns - b.Turns, a.Wall - b.Wall}
}

// Raised returns limit a with more added to each part that is limited.
func (a Amount) Raised(more Amount) Amount {
	if a.USD > 0 {
		a.USD += more.USD
	}
	if a.Tokens > 0 {
		a.Tokens += more.Tokens
	}
	if a.Turns > 0 {
		a.Turns += more.Turns
	}
	if a.Wall > 0 {
		a.Wall += more.Wall
	}
	return a
}

// Sum returns the sum of limits. A part that one of them does not limit is
// unlimited in the sum.
func Sum(limits []Amount) Amount {
	var sum Amount
	for _, l := range limits {
		sum = sum.Add(l)
	}
	for _, l := range limits {
		if l.USD == 0 {
			sum.USD = 0
		}
		if l.Tokens == 0 {
			sum.Tokens = 0
		}
		if l.Turns == 0 {
			sum.Turns = 0
		}
		if l.Wall == 0 {
			sum.Wall = 0
		}
	}
	return sum
}

// Part returns a share of a limit. Working time is not reduced.
func (a Amount) Part(share float64) Amount {
	return Amount{
		a.USD * share, int64(math.Ceil(float64(a.Tokens) * share)), int(math.Ceil(float64(a.Turns) * share)), a.Wall,
	}
}

// Within returns limit a, lowered to limit most in each part that most limits.
func (a Amount) Within(most Amount) Amount {
	return Amount{
		within(a.USD, most.USD), within(a.Tokens, most.Tokens), within(a.Turns, most.Turns), within(a.Wall, most.Wall),
	}
}

// within returns the lower one of two limits. 0 means no limit.
func within[T cmp.Ordered](a, b T) T {
	var none T
	if a == none || b == none {
		return max(a, b)
	}
	return min(a, b)
}

// Exceeds describes the first part of used that exceeds limit a, such as "$5.10 of
// $5.00". It returns "" if no part does.
func (a Amount) Exceeds(used Amount) string {
	switch {
	case a.USD > 0 && used.USD > a.USD:
	case a.Tokens > 0 && used.Tokens > a.Tokens:
	case a.Turns > 0 && used.Turns > a.Turns:
	case a.Wall > 0 && used.Wall > a.Wall:
	default:
		return ""
	}
	return a.Reached(used)
}

// Reached describes the first part of used that has reached limit a, such as "$5.00 of
// $5.00". It returns "" if no part has.
func (a Amount) Reached(used Amount) string {
	switch {
	case a.USD > 0 && used.USD >= a.USD:
		return fmt.Sprintf("%s of %s", dollars(used.USD), dollars(a.USD))
	case a.Tokens > 0 && used.Tokens >= a.Tokens:
		return fmt.Sprintf("%d of %d tokens", used.Tokens, a.Tokens)
	case a.Turns > 0 && used.Turns >= a.Turns:
		return fmt.Sprintf("%d of %d turns", used.Turns, a.Turns)
	case a.Wall > 0 && used.Wall >= a.Wall:
		return fmt.Sprintf("%s of %s at work", used.Wall.Round(time.Second), a.Wall)
	}
	return ""
}

// SuggestMore returns the value of --budget that raises the reached limit by the used
// amount.
func (a Amount) SuggestMore(used Amount) string {
	switch {
	case a.USD > 0 && used.USD >= a.USD:
		return "usd=+" + number(math.Ceil(used.USD*100-1e-6)/100) // sums have rounding errors
	case a.Tokens > 0 && used.Tokens >= a.Tokens:
		return fmt.Sprintf("tokens=+%d", used.Tokens)
	case a.Turns > 0 && used.Turns >= a.Turns:
		return fmt.Sprintf("turns=+%d", used.Turns)
	}
	return "wall=+" + (used.Wall + time.Second - 1).Truncate(time.Second).String()
}

// String returns, for example, "$5.00, 2000000 tokens, 200 turns, 2h0m0s", or "nothing".
func (a Amount) String() string {
	var parts []string
	if a.USD != 0 {
		parts = append(parts, dollars(a.USD))
	}
	if a.Tokens != 0 {
		parts = append(parts, fmt.Sprintf("%d tokens", a.Tokens))
	}
	if a.Turns != 0 {
		parts = append(parts, oneline.Count(a.Turns, "turn"))
	}
	if a.Wall != 0 {
		parts = append(parts, a.Wall.String())
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// dollars formats an amount. Small amounts are not rounded to zero.
func dollars(usd float64) string {
	if usd != 0 && math.Abs(usd) < 0.01 {
		return "$" + strconv.FormatFloat(usd, 'g', 2, 64)
	}
	return fmt.Sprintf("$%.2f", usd)
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// Parse parses a limit such as "usd=5,turns=200". The keys are usd, tokens, turns and
// wall (a duration such as 1h30m).
func Parse(text string) (Amount, error) { return parse(text, "") }

// ParseMore parses an increase of a limit such as "usd=+5,turns=+20".
func ParseMore(text string) (Amount, error) { return parse(text, "+") }

func parse(text, sign string) (Amount, error) {
	var a Amount
	for part := range strings.SplitSeq(text, ",") {
		key, value, found := strings.Cut(strings.TrimSpace(part), "=")
		bare := strings.TrimPrefix(value, "+")
		if !found || value == "" || (bare != value) != (sign != "") || strings.HasPrefix(bare, "+") {
			return Amount{}, fmt.Errorf("%q is not KEY=%sAMOUNT, such as usd=%s5", part, sign, sign)
		}
		if err := a.set(key, bare); err != nil {
			return Amount{}, err
		}
	}
	return a, nil
}

func (a *Amount) set(key, value string) error {
	var err error
	var positive bool
	switch key {
	case "usd":
		a.USD, err = strconv.ParseFloat(value, 64)
		positive = a.USD > 0 && !math.IsInf(a.USD, 0)
	case "tokens":
		a.Tokens, err = strconv.ParseInt(value, 10, 64)
		positive = a.Tokens > 0
	case "turns":
		a.Turns, err = strconv.Atoi(value)
		positive = a.Turns > 0
	case "wall":
		a.Wall, err = time.ParseDuration(value)
		positive = a.Wall > 0
	default:
		return fmt.Errorf("unknown budget %q (usd, tokens, turns or wall)", key)
	}
	if err != nil || !positive {
		return fmt.Errorf("%q is not an amount of %s", value, key)
	}
	return nil
}
