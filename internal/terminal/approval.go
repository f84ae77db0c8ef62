package terminal

import (
	"fmt"
	"strings"

	"github.com/coven-run/coven/internal/event"
)

// Approval returns the text of an approval request for a person.
func Approval(q event.Approval) string {
	reversible := "no"
	if q.Reversible {
		reversible = "yes"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Agent requests approval:\nAction: %s\nImpact: %s\nReversible: %s\n", Printable(q.Tool+" "+q.Subject), Printable(q.Impact), reversible)
	if q.Preview != "" {
		b.WriteString("\n" + PrintableLines(strings.TrimRight(q.Preview, "\n")) + "\n")
	}
	return b.String()
}
