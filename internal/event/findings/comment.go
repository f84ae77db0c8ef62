package findings

import (
	"strconv"
	"strings"

	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/plugins/reviewer"
)

// aboutLine matches a comment about a line: FILE:LINE: TEXT, where the second colon may be
// missing.
var aboutLine = lazyregexp.New(`^([^\s:]+):([1-9]\d{0,8}):?(\s+|$)`)

// OfComments returns the findings of a person's comments that are not blank. A comment that begins with FILE:LINE: is about that
// line.
func OfComments(comments []string) []reviewer.Finding {
	var changes []reviewer.Finding
	for _, text := range comments {
		f := reviewer.Finding{Severity: reviewer.Error, Message: strings.TrimSpace(text)}
		if m := aboutLine.FindStringSubmatch(f.Message); m != nil {
			f.File, f.Message = m[1], strings.TrimSpace(f.Message[len(m[0]):])
			f.Line, _ = strconv.Atoi(m[2]) // at most nine digits
		}
		if f.Message != "" {
			changes = append(changes, f)
		}
	}
	return changes
}
