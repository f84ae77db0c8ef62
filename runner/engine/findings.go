package engine

import (
	"fmt"
	"strings"

	"github.com/coven-run/coven/internal/event/findings"
	"github.com/coven-run/coven/plugins/arbiter"
)

// maxFindings limits the findings in a prompt, in bytes.
const maxFindings = 64 << 10

// findingsForPrompt returns findings.Text, truncated for a prompt. Errors come first. The text is part of
// recorded inputs, so it must not change.
func findingsForPrompt(opinions []arbiter.Opinion) string {
	text := findings.Text(opinions)
	if len(text) <= maxFindings {
		return text
	}
	cut := strings.LastIndexByte(text[:maxFindings], '\n')
	return fmt.Sprintf("%s\n(%d more lines are left out here: fix these first)", text[:max(cut, 0)], strings.Count(text[max(cut, 0):], "\n"))
}
