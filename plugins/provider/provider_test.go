package provider

import (
	"errors"
	"testing"

	"github.com/coven-run/coven/plugins/fault"
)

func TestUsageAdd(t *testing.T) {
	u := Usage{InputTokens: 1, OutputTokens: 2, CacheReadTokens: 3, CacheWriteTokens: 4, CostUSD: 0.5}
	if got := u.Add(u); got != (Usage{2, 4, 6, 8, 1}) {
		t.Errorf("%+v", got)
	}
}

// Plugins that return the older error say the same.
func TestErrNoMessages(t *testing.T) {
	if !errors.Is(ErrNoMessages, fault.ErrUnsupported) {
		t.Error(ErrNoMessages)
	}
}
