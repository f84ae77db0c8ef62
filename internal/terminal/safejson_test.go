package terminal

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coven-run/coven/internal/event"
)

// Safe JSON has the same meaning and contains no characters that a terminal interprets.
func TestSafeJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{
			"a", "é", "\x1b[31m", "\u009b31m", "\x7f", "\u202e", "\u2066", "\u200f", "\u061c", "\U0001F989", "\\", "\"", "\\u202e",
		})).Draw(t, "text"), "")
		raw, err := json.Marshal(map[string]string{text: text})
		if err != nil {
			t.Fatal(err)
		}
		safe := SafeJSON(raw)
		var got map[string]string
		if err := json.Unmarshal(safe, &got); err != nil || got[text] != text {
			t.Fatalf("%q became %q: %v", raw, safe, err)
		}
		if i := strings.IndexAny(string(safe), "\x1b\x7f\u009b\u202e\u2066\u200f\u061c"); i >= 0 {
			t.Fatalf("at %d of %q", i, safe)
		}
	})
	line := JSONLine(event.Event{Data: []byte("\"\x9b31m \u009b\"")})
	if strings.Contains(line, "\x9b") || !strings.Contains(line, `"\ufffd31m \u009b"`) || !json.Valid([]byte(line)) {
		t.Errorf("%q", line)
	}
}
