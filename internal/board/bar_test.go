package board

import (
	"testing"
	"time"

	"github.com/coven-run/coven/internal/budget"
)

func TestBars(t *testing.T) {
	used := budget.Amount{USD: 1.25, Tokens: 300, Wall: 90*time.Second + time.Millisecond}
	if bars := Bars(used, budget.Amount{}); len(bars) != 0 {
		t.Errorf("without a limit: %+v", bars)
	}
	got := Bars(used, budget.Amount{USD: 5, Tokens: 100, Turns: 3, Wall: time.Hour})
	want := []Bar{{0.25, "$1.25 of $5.00"}, {1, "300 tokens of 100 tokens"}, {0, "nothing of 3 turns"}, {got[3].Share, "1m30s of 1h0m0s"}}
	for i, b := range want {
		if got[i] != b {
			t.Errorf("%+v, not %+v", got[i], b)
		}
	}
	if text := got[0].Blocks(8) + got[1].Blocks(2); text != "██░░░░░░██" {
		t.Error(text)
	}
}
