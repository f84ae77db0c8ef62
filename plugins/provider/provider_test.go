package provider

import (
	"errors"
	"testing"

	"github.com/coven-run/coven/plugins/pluginerr"
)

func TestUsageAdd(t *testing.T) {
	u := Usage{InputTokens: 1, OutputTokens: 2, CacheReadTokens: 3, CacheWriteTokens: 4, CostUSD: 0.5}
	if got := u.Add(u); got != (Usage{2, 4, 6, 8, 1}) {
		t.Errorf("%+v", got)
	}
}

// Heard, the former name, is the same type: coven treats it as Acknowledged.
func TestHeard(t *testing.T) {
	var event Event = Heard{ID: "u1"}
	if a, ok := event.(Acknowledged); !ok || a.ID != "u1" {
		t.Errorf("%T %+v", event, event)
	}
}

// Plugins that return the older error say the same.
func TestErrNoMessages(t *testing.T) {
	if !errors.Is(ErrNoMessages, pluginerr.ErrUnsupported) {
		t.Error(ErrNoMessages)
	}
}
