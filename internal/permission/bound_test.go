package permission

import (
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/text/glob"
)

// A person is asked about a command that is too complex to read, and it ends nothing.
func TestComplexCommands(t *testing.T) {
	p := &Policy{Root: "/w", Agent: "a", Layers: []Layer{
		Granting("granted", FileRead, FileWrite, BashExecute), {"yours", []Rule{{BashExecute, "rm *", Deny}}},
	}}
	for _, part := range []string{"(", "{ ", "$(", "if ", "((", "[[ (", "f() ", "x;", "x && ", "x | ", "x\n"} {
		req := Request{Permission: BashExecute, Command: strings.Repeat(part, 200_000) + "x"}
		if d := p.Decide(req); d.Action != Ask || !strings.Contains(d.Reason, "cannot be read") {
			t.Errorf("%q: %s: %s", part, d.Action, d.Reason)
		}
		if _, reason := p.needs(req); reason == "" {
			t.Errorf("%q: rules would allow it", part)
		}
	}
}

// A pattern that takes too long to match is no pattern.
func TestComplexPatterns(t *testing.T) {
	for _, name := range []Name{FileRead, FileWrite, BashExecute, NetFetch} {
		if err := CheckPattern(name, strings.Repeat("x", glob.MaxLength+1)); err == nil {
			t.Errorf("%s: a pattern has any length", name)
		}
		for _, pattern := range []string{strings.Repeat("{a,aa}", 30), "/" + strings.Repeat("{a,aa}", 30), "/" + strings.Repeat("{a,{b,c}}", 9)} {
			if err := CheckPattern(name, pattern); (err == nil) != (name == BashExecute) {
				t.Errorf("%s: %s: %v", name, pattern, err)
			}
		}
	}
}
