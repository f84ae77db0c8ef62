package runner

import (
	"testing"

	"github.com/coven-run/coven/internal/agent"
)

// An answer to a person after the result does not replace the result.
func TestFinalMessage(t *testing.T) {
	const result = "Done.\n\n```json\n{\"success\": true, \"summary\": \"s\"}\n```"
	for _, tt := range []struct {
		said []string
		want string
	}{
		{nil, "last"},
		{[]string{"one", "last"}, "last"},
		{[]string{result, "you are welcome"}, result},
		{[]string{"one", result}, result},
	} {
		if got := finalMessage(agent.Report{Text: "last", Said: tt.said}); got != tt.want {
			t.Errorf("%q: %q", tt.said, got)
		}
	}
}
