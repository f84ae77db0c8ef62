package runner

import (
	"testing"

	"github.com/coven-run/coven/internal/driver"
)

// The last message with a result is the final one: a later answer to a person does not replace it.
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
		{[]string{result, "more\n\n" + result, "you are welcome"}, "more\n\n" + result},
	} {
		if got := finalMessage(driver.Report{Text: "last", Said: tt.said}); got != tt.want {
			t.Errorf("%q: %q", tt.said, got)
		}
	}
}
