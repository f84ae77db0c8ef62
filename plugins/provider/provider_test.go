package provider

import "testing"

func TestUsageAdd(t *testing.T) {
	u := Usage{InputTokens: 1, OutputTokens: 2, CacheReadTokens: 3, CacheWriteTokens: 4, CostUSD: 0.5}
	if got := u.Add(u); got != (Usage{2, 4, 6, 8, 1}) {
		t.Errorf("%+v", got)
	}
}
