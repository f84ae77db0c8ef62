package tui

import (
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

// The frames of a walk through the screen are kept in the documentation. UPDATE=1 writes them.
func TestFrames(t *testing.T) {
	diff := strings.Split("diff --git a/main.go b/main.go\n--- a/main.go\n+++ b/main.go\n@@ -10,3 +10,6 @@ func main() {\n \tflag.Parse()\n+\tif *version {\n+\t\tfmt.Println(\"app 1.2\")\n+\t}\n \trun()", "\n")
	story := []string{"make: started", "→ Running build agent...", "  │ I add the flag and its test.", "  → Edit main.go", "  $ make test", "    ok (1.2s)", "make: done"}
	var b strings.Builder
	for _, step := range []struct {
		title         string
		width, height int
		keys          string
		text          []string
	}{
		{"The list at 80x24", 80, 24, "", nil},
		{"The list at 120x40, with a question", 120, 40, "a", nil},
		{"The list at 40x20", 40, 20, "", nil},
		{"v: the review, with a comment that is being written", 80, 24, "v j j j j c W h y enter j c H e r e", nil},
		{"d: the change", 80, 24, "d", diff},
		{"s: the story", 80, 24, "s", story},
		{"n: a new task", 80, 24, "n V e r s i o n enter", nil},
		{"?: the keys", 80, 40, "?", nil},
	} {
		s := newScreen(t, step.width, step.height)
		s.source.text, s.source.textErr = step.text, io.EOF
		s.press(strings.Fields(step.keys)...)
		fmt.Fprintf(&b, "%s\n\n", step.title)
		for line := range strings.SplitSeq(s.text(), "\n") {
			b.WriteString(strings.TrimRight("    "+line, " ") + "\n")
		}
		b.WriteString("\n")
	}
	compare(t, "../../docs/screen.txt", b.String())
	s := newScreen(t, 100, 18)
	s.source.cards[1].Title = "Update the dependencies" // a browser may have no font with the other one
	s.send(s.model.read())
	compare(t, "../../docs/screen.svg", picture(strings.Split(s.text(), "\n"), 100))
}

func compare(t *testing.T, file, want string) {
	t.Helper()
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf("%s is not what the screen shows: UPDATE=1 go test ./internal/tui -run TestFrames (%v)", file, err)
	}
}

// picture draws a terminal window with rows of text, as docs/demo.svg.
func picture(rows []string, columns int) string {
	const cell, row, margin = 8.4, 19, 16
	width, height := float64(columns)*cell+2*margin, len(rows)*row+2*margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" viewBox="0 0 %.0f %d" role="img" aria-label="the screen of coven ui">`+"\n", width, height, width, height)
	b.WriteString("<style>text { font: 14px ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace; fill: #d0d7de; white-space: pre; }</style>\n")
	fmt.Fprintf(&b, `<rect width="%.0f" height="%d" rx="8" fill="#0d1117"/>`+"\n", width, height)
	for i, text := range rows {
		fmt.Fprintf(&b, `<text x="%d" y="%d" xml:space="preserve">`, margin, margin+(i+1)*row-5)
		_ = xml.EscapeText(&b, []byte(text)) // a strings.Builder does not fail
		b.WriteString("</text>\n")
	}
	return b.String() + "</svg>\n"
}
