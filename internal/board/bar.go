package board

import (
	"strings"
	"time"

	"github.com/coven-run/coven/internal/budget"
)

// Bar is the used part of a limit.
type Bar struct {
	Share float64 // 0 to 1
	Text  string  // such as "$0.42 of $5.00"
}

// Bars returns a bar for each part of a limit that is set.
func Bars(used, limit budget.Amount) (bars []Bar) {
	for _, part := range []struct {
		used, limit budget.Amount
		share       float64
	}{
		{budget.Amount{USD: used.USD}, budget.Amount{USD: limit.USD}, used.USD / limit.USD},
		{budget.Amount{Tokens: used.Tokens}, budget.Amount{Tokens: limit.Tokens}, float64(used.Tokens) / float64(limit.Tokens)},
		{budget.Amount{Turns: used.Turns}, budget.Amount{Turns: limit.Turns}, float64(used.Turns) / float64(limit.Turns)},
		{budget.Amount{Wall: used.Wall.Round(time.Second)}, budget.Amount{Wall: limit.Wall}, float64(used.Wall) / float64(limit.Wall)},
	} {
		if part.limit != (budget.Amount{}) {
			bars = append(bars, Bar{Share: min(max(part.share, 0), 1), Text: part.used.String() + " of " + part.limit.String()})
		}
	}
	return bars
}

// Blocks draws the bar with characters.
func (b Bar) Blocks(width int) string {
	full := int(b.Share * float64(width))
	return strings.Repeat("█", full) + strings.Repeat("░", width-full)
}
