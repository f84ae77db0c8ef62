package tmpl

import (
	"strings"
	"testing"
)

// The scanner of a large command takes time and memory in proportion to its size.
func TestShellScanIsBounded(t *testing.T) {
	for _, part := range []string{"( ", "$( ", "x", "''", `\x`, "x#", "$((", "$(( ("} {
		text := strings.Repeat(part, (1<<18)/len(part))
		s := shellState{}.text([]byte(text))
		if s.unclear == "" && len(s.open)+len(s.letters) > 2*maxOpen {
			t.Errorf("%q: %d open constructs and a word of %d bytes", part, len(s.open), len(s.letters))
		}
		if _, err := compile("a", text+" {{.x}}", command); err == nil && strings.HasSuffix(part, "( ") {
			t.Errorf("%q is no error", part)
		}
	}
	if _, err := compile("a", strings.Repeat("$(", 100)+" {{.x}}"+strings.Repeat(")", 100), command); err != nil {
		t.Error(err)
	}
}
