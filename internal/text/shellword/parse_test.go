package shellword_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/text/shellword"
)

// A command that is nested deeply, in any way, is an error: an overflow of the stack would end the program.
func TestParseIsBounded(t *testing.T) {
	const n = shellword.Max
	for _, tt := range []struct{ open, inner, shut string }{
		{"(", ":", ")"},
		{"( ", ":", ")"},
		{"{ ", ":; ", "}; "},
		{"$(", ":", ")"},
		{`"$(`, ":", `)"`},
		{"${a:-", "b", "}"},
		{"<(", ":", ")"},
		{"$((", "1", "))"},
		{"((", "1", "))"},
		{"$((-", "1", "))"},
		{"echo $((", "1", "))"},
		{"a[", "1", "]=1"},
		{"! ", ":", ""},
		{"if ", ":", "; then :; fi"},
		{"while ", ":", "; do :; done"},
		{"case $(", ":", ") in esac"},
		{"[[ ", "a", " ]]"},
		{"f() ", ":", ""},
		{"[[ (", "a", ") ]]"},
		{"time ", ":", ""},
		{": | ", ":", ""},
		{": && ", ":", ""},
		{":; ", ":", ""},
		{"coproc ", ":", ""},
		{"<<a ", ":", ""},
		{"`\\", ":", "`"},
		{"a=(", "1", ")"},
		{"for i in $(", ":", "); do :; done"},
		{"let 1", "", "+1"},
		{"echo $((1", "", "+1"},
		{"[[ ! ", "a", ""},
	} {
		for _, shut := range []string{"", tt.shut} {
			command := strings.Repeat(tt.open, n/(len(tt.open)+len(shut)+1)) + tt.inner
			command += strings.Repeat(shut, strings.Count(command, tt.open))
			command = command[:min(len(command), n)]
			before := runtime.MemStats{}
			runtime.ReadMemStats(&before)
			_, err := shellword.Parse(command)
			_, _ = shellword.Words(command)
			after := runtime.MemStats{}
			runtime.ReadMemStats(&after)
			if used := (int64(after.StackSys) - int64(before.StackSys)) >> 20; used > 100 {
				t.Errorf("%q: %d MB of stack (%v)", command[:20], used, err)
			}
			if tt.open == "(" && err == nil {
				t.Errorf("%q is no error", command[:20])
			}
		}
	}
	if _, err := shellword.Parse(":" + strings.Repeat(" ", n)); err == nil {
		t.Error("a command of any length is read")
	}
	if _, err := shellword.Parse(strings.Repeat("$(", 100) + ":" + strings.Repeat(")", 100)); err != nil {
		t.Error(err)
	}
}
