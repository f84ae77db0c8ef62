package runner

import (
	"fmt"
	"strings"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/reviewer"
)

// The ErrorTypes of a review that found what must not land, and of plugins that
// could not judge.
const (
	FindingsType = event.ErrorFindings
	PluginType   = event.ErrorPlugin
)

// FindingsText is what reviewers found, for people and agents: the gravest first,
// with file and line. Reviewers who are not content and found nothing are named.
func FindingsText(opinions []arbiter.Opinion) string {
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

// mostFindings is how much of what was found goes into a prompt, in bytes.
const mostFindings = 64 << 10

// findingsForPrompt is FindingsText, cut to what an agent can use: the gravest stay.
func findingsForPrompt(opinions []arbiter.Opinion) string {
	text := FindingsText(opinions)
	if len(text) <= mostFindings {
		return text
	}
	cut := strings.LastIndexByte(text[:mostFindings], '\n')
	return fmt.Sprintf("%s\n(%d more lines are left out here: mend these first)", text[:max(cut, 0)], strings.Count(text[max(cut, 0):], "\n"))
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

// Tally says how many findings of which severity there are: "2 errors, 1 warning".
func Tally(opinions []arbiter.Opinion) string {
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
