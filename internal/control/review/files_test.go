package review

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/plugins/reviewer"
)

const patch = `diff --git a/a.go b/b.go
similarity index 50%
rename from a.go
rename to b.go
index 1111111111111111111111111111111111111111..2222222222222222222222222222222222222222 100644
--- a/a.go
+++ b/b.go
@@ -3,4 +3,4 @@ func main() {
 three
-four
+FOUR
+FIVE
 six
-token
\ No newline at end of file
diff --git a/go.sum b/go.sum
new file mode 100644
index 0000000000000000000000000000000000000000..3333333333333333333333333333333333333333
--- /dev/null
+++ b/go.sum
@@ -0,0 +1 @@
+x
`

// Comments and findings are at their lines, and at the file if its lines are not shown.
func TestFiles(t *testing.T) {
	hide := func(text string) string { return strings.ReplaceAll(text, "token", "***") }
	r := Review{Page: control.Page{Diff: control.Diff{From: "f", To: "t", Patch: patch, Files: []control.FileChange{
		{Path: "b.go", OldPath: "a.go", Status: "R", Added: 2, Deleted: 2}, {Path: "go.sum", Status: "A", Added: 1},
	}}}, Viewed: []string{"go.sum"}}
	at := func(id, path string, side Side, line int) Placed {
		a := Anchor{Path: path, Side: side, From: line, To: line}
		return Placed{Comment: Comment{ID: id, Anchor: a}, Now: a}
	}
	gone := at("c5", "b.go", New, 5)
	gone.Now = Anchor{}
	r.Comments = []Placed{at("c1", "b.go", New, 5), at("c2", "a.go", Old, 4), at("c3", "b.go", New, 90), at("c4", "other", New, 1), gone}
	r.Page.View.Open = []event.Finding{{Reviewer: "lint", Finding: reviewer.Finding{File: "b.go", Line: 4, Message: "m"}}}
	c := &control.Controller{Project: &project.Project{Hide: hide}}
	files, err := Files(t.Context(), c, r, SinceLook) // the first look
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range files {
		fmt.Fprintf(&b, "%s %s generated %v viewed %v comments %d\n", f.Status, f.Path, f.Generated, f.Viewed, len(f.Comments))
		for _, h := range f.Hunks {
			for _, l := range h.Lines {
				fmt.Fprintf(&b, "%d %d%v%s", l.Old, l.New, l.Op, l.Text)
				for _, c := range l.Comments {
					b.WriteString(" " + c.ID)
				}
				for _, f := range l.Findings {
					b.WriteString(" " + f.By)
				}
				b.WriteString("\n")
			}
		}
	}
	want := `R b.go generated false viewed false comments 2
3 3 three
4 0-four c2
0 4+FOUR lint
0 5+FIVE c1
5 6 six
6 0-***
A go.sum generated true viewed true comments 0
0 1+x
`
	if b.String() != want {
		t.Errorf("got:\n%s", b.String())
	}
	r.Page.Diff.Patch = strings.ReplaceAll(patch, "FOUR\n+FIVE", "A\n+B")
	c.Project.Hide = func(text string) string { return strings.ReplaceAll(text, "A\nB\n", "***") }
	if files, err = Files(t.Context(), c, r, Whole); err != nil || !files[0].Secret || files[0].Hunks != nil {
		t.Errorf("a secret over several lines is shown: %+v, %v", files[0], err)
	}
}
