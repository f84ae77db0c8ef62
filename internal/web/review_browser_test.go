package web

import (
	"strings"
	"testing"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
	"github.com/chromedp/chromedp"

	"github.com/coven-run/coven/internal/control/review"
	"github.com/coven-run/coven/plugins/reviewer"
)

// usualFiles are files of a review on a usual day.
func usualFiles() []review.File {
	at := func(line int) review.Anchor {
		return review.Anchor{Path: "cmd/app/main.go", Side: review.New, From: line, To: line}
	}
	draft := review.Placed{Comment: review.Comment{ID: "c3", By: "me", Anchor: at(13), Text: "Please return the error instead."}, State: review.Draft, Now: at(13)}
	sent := review.Placed{Comment: review.Comment{ID: "c1", By: "me", Anchor: at(12), Text: "Name the limit."}, State: review.Addressed, Commit: strings.Repeat("4f", 20), Now: review.Anchor{}, Answer: "It is maxLines now, and its comment says why."}
	line := func(op gitdiff.LineOp, old, next int, text string) review.Line {
		return review.Line{Op: op, Old: old, New: next, Text: text}
	}
	lines := []review.Line{
		line(gitdiff.OpContext, 10, 10, "func run(args []string) error {"),
		line(gitdiff.OpDelete, 11, 0, "\tlimit := 10"),
		line(gitdiff.OpAdd, 0, 11, "\tlimit := maxLines"),
		line(gitdiff.OpAdd, 0, 12, "\tif version {"),
		line(gitdiff.OpAdd, 0, 13, "\t\tfmt.Println(\"app\", Version) // a very long line, which does not fit into any telephone and has to be wrapped somewhere"),
		line(gitdiff.OpContext, 12, 14, "\treturn nil"),
	}
	lines[4].Comments = []review.Placed{draft}
	lines[3].Findings = []review.Finding{{Finding: reviewer.Finding{Severity: reviewer.Error, Message: "the flag is parsed after the configuration is read"}, By: "agent", Open: true}}
	files := []review.File{
		{Path: "cmd/app/main.go", Status: "M", Added: 3, Deleted: 1, FromStart: true, Comments: []review.Placed{sent}, Hunks: []review.Hunk{{Header: "@@ -10,3 +10,5 @@ import \"fmt\"", Lines: lines}}},
		{Path: "docs/usage.md", Status: "A", Added: 1, Viewed: true, FromStart: true, Hunks: []review.Hunk{{Header: "@@ -0,0 +1 @@", Lines: []review.Line{line(gitdiff.OpAdd, 0, 1, "app --version")}}}},
		{Path: "go.sum", Status: "M", Added: 1, Generated: true, FromStart: true, Hunks: []review.Hunk{{Header: "@@ -0,0 +1 @@", Lines: []review.Line{line(gitdiff.OpAdd, 0, 1, "generated line")}}}},
		{Path: "assets/logo.png", Status: "A", Binary: true},
	}
	return files
}

// The review fits into a window and a telephone, light and dark.
func TestBrowserReviewSizes(t *testing.T) {
	b := newTab(t)
	s := newSite(t)
	s.source.cards, s.source.files = plain(s.source.time, s.dir), usualFiles()
	for _, size := range []struct {
		name          string
		width, height int64
	}{{"desktop", 1280, 800}, {"phone", 390, 844}} {
		for _, scheme := range []string{"light", "dark"} {
			b.looks(scheme, size.width, size.height)
			b.do(chromedp.Navigate(s.LoginURL(s.host, "")))
			for name, query := range map[string]string{"review": "?part=whole", "split": "?part=whole&view=split", "comment": "?part=whole&at=cmd/app/main.go:12-13"} {
				b.do(chromedp.Navigate("http://" + s.host + "/task/app-a1b2/review" + query))
				b.is(`document.documentElement.scrollWidth <= innerWidth`)
				b.shot(strings.Join([]string{name, size.name, scheme}, "-"))
			}
		}
	}
}

// A review by keys: a comment on a line, whose unfinished text is there after the page is loaded again, and a file that is loaded
// when it is opened.
func TestBrowserReviewKeys(t *testing.T) {
	b := newTab(t)
	s := newSite(t)
	s.source.cards, s.source.files = plain(s.source.time, s.dir), usualFiles()
	b.do(chromedp.Navigate(s.LoginURL(s.host, "")), chromedp.Navigate("http://"+s.host+"/task/app-a1b2/review?part=whole"))
	b.do(chromedp.KeyEvent("j"), chromedp.KeyEvent("j"), chromedp.KeyEvent("j"), chromedp.KeyEvent("c"))
	b.is(`document.activeElement.matches("#comment textarea") && document.querySelector("#comment [name=place]").value === "cmd/app/main.go:11"`)
	b.do(chromedp.KeyEvent("Because"), chromedp.Reload())
	b.is(`document.querySelector("#comment textarea")?.value === "Because"`)
	click := `document.querySelector('a[data-place="cmd/app/main.go:13"]').dispatchEvent(new MouseEvent("click", {shiftKey: true, bubbles: true, cancelable: true}))`
	b.is(click + ` === false && document.querySelector("#comment [name=place]").value === "cmd/app/main.go:11-13"`)
	b.click(`#comment button`)
	b.is(`document.getElementById("comment") === null`)
	if got := s.source.commands(); got != `[["review" "--comment" "cmd/app/main.go:11-13" "--" "app-a1b2" "Because"]]` {
		t.Error(got)
	}
	b.click(`details.file:nth-of-type(3) > summary`)
	b.is(`document.querySelector("details.file:nth-of-type(3)").textContent.includes("generated line")`)
	b.do(chromedp.KeyEvent("j"))
	b.click(`details.file:nth-of-type(2) > summary`)
	b.is(`(window.before = at) !== ""`)
	s.source.changed <- struct{}{} // nothing of this review
	b.is(`!loading && at !== window.before`)
	b.is(`document.querySelector("details.file:nth-of-type(3)").textContent.includes("generated line") && document.querySelector("details.file:nth-of-type(2)").open`)
	s.source.mu.Lock()
	s.source.files[0].Content, s.source.files[0].Added = "new", 77
	s.source.mu.Unlock()
	s.source.changed <- struct{}{}
	b.is(`document.querySelector("details.file:nth-of-type(1)").textContent.includes("+77")`)
	b.is(`document.querySelector("details.file:nth-of-type(2)").open && document.querySelector("details.file:nth-of-type(3)").textContent.includes("generated line")`)
	b.do(chromedp.KeyEvent("n"), chromedp.KeyEvent("v"))
	b.is(`location.search.includes("part=whole")`)
}
