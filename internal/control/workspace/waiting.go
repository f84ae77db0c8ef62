package workspace

import (
	"fmt"
	"strings"

	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/internal/text/oneline"
)

// Last lines of programs that wait for a person.
var (
	pagerLine   = lazyregexp.New(`^(\(END\)|:|--More--.*|lines \d+-\d+.*)$`)
	watcherLine = lazyregexp.New(`(?i)watch usage|press (h|q|r|\?|a|enter) |waiting for (file )?changes|watching for|watch(ing)? mode|ready in \d+|listening (on|at)|local: +http`)
	escapes     = lazyregexp.New(`\x1b\[[0-9;?]*[A-Za-z]`)
	promptLine  = lazyregexp.New(`(?i)[\[(]y(es)?/no?[\])]|\(y\)|passphrase|password|username|\?$|: ?$|> ?$`)
)

// maxLine is the maximum number of characters of a last line that is shown.
const maxLine = 80

// waitsFor explains why a program that was stopped had printed nothing for long, judging by its last line. It returns
// "" if the line tells nothing.
func waitsFor(output string) string {
	last := ""
	for line := range strings.Lines(output) {
		if line = strings.TrimSpace(oneline.Of(escapes.ReplaceAllString(line, ""))); line != "" {
			last = line
		}
	}
	line := fmt.Sprintf("%q", oneline.Clip(last, maxLine))
	switch {
	case last == "":
		return ""
	case pagerLine.MatchString(last):
		return "it waited in a pager, " + line + " (set PAGER=cat, or the option of the command for no pager)"
	case watcherLine.MatchString(last):
		return "it waited for changes or requests, " + line + " (run it once, for example with --run, --watchAll=false or CI=true)"
	case promptLine.MatchString(last):
		return "it waited for an answer, " + line + " (use the option of the command that asks nothing, such as --yes)"
	}
	return ""
}
