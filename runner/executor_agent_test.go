package runner

import (
	"testing"

	"github.com/coven-run/coven/internal/agent"
)

// An answer to a person after the work is done takes nothing back of the claim.
func TestWord(t *testing.T) {
	const claim = "Done.\n\n```json\n{\"success\": true, \"summary\": \"s\"}\n```"
	for _, tt := range []struct {
		said []string
		want string
	}{
		{nil, "last"},
		{[]string{"one", "last"}, "last"},
		{[]string{claim, "you are welcome"}, claim},
		{[]string{"one", claim}, claim},
	} {
		if got := finalMessage(agent.Report{Text: "last", Said: tt.said}); got != tt.want {
			t.Errorf("%q: %q", tt.said, got)
		}
	}
}
