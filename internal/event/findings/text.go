package findings

import (
	"fmt"
	"strings"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/reviewer"
)

// Opinions converts recorded opinions to those of package arbiter.
func Opinions(opinions []event.Opinion) []arbiter.Opinion {
	all := make([]arbiter.Opinion, len(opinions))
	for i, o := range opinions {
		all[i] = o.Opinion
	}
	return all
}

// Text formats the findings of reviewers for people and agents: errors first, with file
// and line. It names reviewers that fail the change without a finding.
func Text(opinions []arbiter.Opinion) string {
	var b strings.Builder
	for _, severity := range []reviewer.Severity{reviewer.Error, reviewer.Warning, reviewer.Info} {
		for _, o := range opinions {
			for _, f := range o.Findings {
				if f.Severity == severity {
					b.WriteString(findingText(o.Reviewer, f))
				}
			}
		}
	}
	for _, o := range opinions {
		if o.Verdict == reviewer.Fail && len(o.Findings) == 0 {
			fmt.Fprintf(&b, "%s says fail and names no finding\n", o.Reviewer)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func findingText(by string, f reviewer.Finding) string {
	text := fmt.Sprintf("%s (%s)\n", hanging(f.String()), by)
	if f.Suggestion != "" {
		text += "  suggestion: " + hanging(f.Suggestion) + "\n"
	}
	return text
}

// hanging indents the lines of a text after the first.
func hanging(text string) string {
	return strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ")
}

// Counts returns the number of findings by severity, such as "2 errors, 1 warning".
func Counts(opinions []arbiter.Opinion) string {
	count := map[reviewer.Severity]int{}
	for _, o := range opinions {
		for _, f := range o.Findings {
			count[f.Severity]++
		}
	}
	var parts []string
	for _, kind := range []struct {
		severity  reviewer.Severity
		one, more string
	}{{reviewer.Error, "error", "errors"}, {reviewer.Warning, "warning", "warnings"}, {reviewer.Info, "remark", "remarks"}} {
		switch n := count[kind.severity]; n {
		case 0:
		case 1:
			parts = append(parts, "1 "+kind.one)
		default:
			parts = append(parts, fmt.Sprintf("%d %s", n, kind.more))
		}
	}
	if len(parts) == 0 {
		return "nothing found"
	}
	return strings.Join(parts, ", ")
}
