package agent

import (
	"strings"
	"testing"
)

// Words match independent of their endings, and stop words are omitted.
func TestStems(t *testing.T) {
	for text, want := range map[string]string{
		"Reviews, reviewing and reviewed by a Reviewer": "review",
		"bugs bug": "bug", "queries query": "query", "Writes the writing of writers": "writ",
		"documentation documents": "document", "migrate migrations": "migr", "code.review": "cod review",
		"class classes": "class", "": "", "a to the": "", "C 2fa ü-x": "2fa ü",
	} {
		if got := strings.Join(stems(text), " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
