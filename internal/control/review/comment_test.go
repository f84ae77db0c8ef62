package review

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/control/comments"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
)

func page(status event.Status) control.Page {
	p := control.Page{}
	p.View.Task, p.View.Status = "t", status
	return p
}

// A comment has a limited size, and is about a change that is not over.
func TestCheckComment(t *testing.T) {
	long, longest := strings.Repeat("x", comments.MaxText+1), strings.Repeat("x", comments.MaxText)
	for name, test := range map[string]struct {
		status event.Status
		new    NewComment
		want   string
	}{
		"longest":            {session.Waiting, NewComment{Text: longest, Suggestion: &longest}, ""},
		"running":            {session.Running, NewComment{Text: "x"}, ""},
		"over":               {session.Completed, NewComment{Text: "x"}, "is over"},
		"empty":              {session.Waiting, NewComment{Text: " "}, "is empty"},
		"long":               {session.Waiting, NewComment{Text: long}, "more than"},
		"long suggestion":    {session.Waiting, NewComment{Suggestion: &long}, "more than"},
		"suggestion for old": {session.Waiting, NewComment{Suggestion: &longest, Anchor: Anchor{Side: Old}}, "removed lines"},
	} {
		err := check(page(test.status), test.new)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The agent is told about which lines a comment is, with their text if it has other numbers in its file.
func TestFinding(t *testing.T) {
	p := placer{contents: map[[2]string][]string{{"tree", "a.go"}: {"one", "two\x1b", "three"}}}
	at := func(side Side, from, to int) Anchor {
		return Anchor{Tree: "tree", Path: "a.go", Side: side, From: from, To: to}
	}
	text, none := "TWO", ""
	for name, test := range map[string]struct {
		comment Placed
		line    int
		want    string
	}{
		"line":     {Placed{Comment: Comment{Text: "x"}, Now: at(New, 2, 2)}, 2, "[c1] x|"},
		"range":    {Placed{Comment: Comment{Text: "x"}, Now: at(New, 1, 2)}, 1, "[c1] about lines 1 to 2: x|"},
		"removed":  {Placed{Comment: Comment{Text: "x"}, Now: at(Old, 1, 2)}, 0, "[c1] about lines 1 to 2 that the change removes (one ⏎ two\ufffd): x|"},
		"outdated": {Placed{Comment: Comment{Text: "x", Anchor: at(New, 3, 3)}, State: Outdated}, 0, "[c1] about line 3 of an earlier version (three): x|"},
		"replace":  {Placed{Comment: Comment{Suggestion: &text}, Now: at(New, 2, 2)}, 2, "[c1] |replace line 2 by:\nTWO"},
		"delete":   {Placed{Comment: Comment{Suggestion: &none}, Now: at(New, 2, 2)}, 2, "[c1] |delete line 2"},
	} {
		test.comment.ID = "c1"
		f := p.finding(test.comment)
		if got := f.Message + "|" + f.Suggestion; got != test.want || f.Line != test.line || f.File != "a.go" {
			t.Errorf("%s: %s:%d %q", name, f.File, f.Line, got)
		}
	}
}

// A file is viewed until its content or mode changes. A deleted one has its former name.
func TestMarkViewed(t *testing.T) {
	r := Review{Page: page(session.Waiting)}
	r.Page.View.Dir, r.Page.Diff.Patch = t.TempDir(), patch+"diff --git a/gone b/gone\ndeleted file mode 100644\nindex "+strings.Repeat("4", 40)+".."+strings.Repeat("0", 40)+"\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
	r.files = parse(r.Page.Diff.Patch)
	if err := MarkViewed(r, "other", true); err == nil {
		t.Error("a file that is not in the change was viewed")
	}
	for _, path := range []string{"b.go", "go.sum", "gone"} {
		if err := MarkViewed(r, path, true); err != nil {
			t.Error(err)
		}
	}
	if err := MarkViewed(r, "b.go", false); err != nil {
		t.Error(err)
	}
	s, err := comments.Load(r.Page.View.Dir)
	if got := fmt.Sprint(viewed(s, r.files)); err != nil || got != "[go.sum gone]" {
		t.Errorf("viewed %s, %v", got, err)
	}
	for _, other := range []string{strings.ReplaceAll(patch, "3333", "5555"), strings.ReplaceAll(patch, "new file mode 100644", "new file mode 100755")} {
		if got := viewed(s, parse(other)); len(got) != 0 {
			t.Errorf("viewed in another change: %s", got)
		}
	}
}
