package engine

import (
	"fmt"
	"strings"

	"github.com/coven-run/coven/internal/findings"
	"github.com/coven-run/coven/plugins/arbiter"
)

// maxFindings bounds the findings in a prompt, in bytes.
const maxFindings = 64 << 10

// findingsForPrompt returns findings.Text, truncated for a prompt: errors come first. v is
// the version of the plan: the text is part of recorded inputs.
func findingsForPrompt(opinions []arbiter.Opinion, v int) string {
	text := findings.Text(opinions)
	if len(text) <= maxFindings {
		return text
	}
	cut, advice := strings.LastIndexByte(text[:maxFindings], '\n'), "fix these first"
	if v == 0 {
		advice = "mend these first"
	}
	return fmt.Sprintf("%s\n(%d more lines are left out here: %s)", text[:max(cut, 0)], strings.Count(text[max(cut, 0):], "\n"), advice)
}
