package terminal

import (
	"fmt"
	"strings"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/event/findings"
)

// maxFindings is the number of findings that FindingLines lists.
const maxFindings = 20

// FindingLines lists open error findings, one per line.
func FindingLines(open []event.Finding) string {
	var lines []string
	for _, f := range open[:min(maxFindings, len(open))] {
		lines = append(lines, "  "+Printable(findings.Line(f))+" ("+Printable(f.Reviewer)+")")
	}
	if more := len(open) - maxFindings; more > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more", more))
	}
	return strings.Join(lines, "\n")
}
