package web

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/coven-run/coven/internal/control/review"
	"github.com/coven-run/coven/plugins/reviewer"
)

// sampleFiles returns a file with each kind of line, one whose name and lines are scripts, and one that is folded.
func sampleFiles() []review.File {
	at := review.Anchor{Path: "a.go", Side: review.New, From: 2, To: 2}
	draft := review.Placed{Comment: review.Comment{ID: "c1", By: script, Anchor: at, Text: "Why? " + script}, State: review.Draft, Now: at}
	sent := review.Placed{Comment: review.Comment{ID: "c2", Anchor: at, Text: "Sent."}, State: review.Addressed, Commit: strings.Repeat("1", 40), Answer: "Done. " + script}
	return []review.File{
		{Path: "a.go", Status: "M", Added: 2, Deleted: 1, FromStart: true, Comments: []review.Placed{sent}, Hunks: []review.Hunk{{Header: "@@ -1,2 +1,3 @@ " + script, Lines: []review.Line{
			{Op: gitdiff.OpContext, Old: 1, New: 1, Text: "package a"},
			{Op: gitdiff.OpDelete, Old: 2, Text: "const limit = 10"},
			{Op: gitdiff.OpAdd, New: 2, Text: "const limit = 100", Comments: []review.Placed{draft}},
			{Op: gitdiff.OpAdd, New: 3, Text: script, Findings: []review.Finding{{Finding: reviewer.Finding{Severity: reviewer.Error, Message: "A finding " + script}, By: "lint", Open: true}}},
		}}}},
		{Path: script + ".go", Status: "A", Added: 1, FromStart: true, Hunks: []review.Hunk{{Header: "@@ -0,0 +1 @@", Lines: []review.Line{{Op: gitdiff.OpAdd, New: 1, Text: "x"}}}}},
		{Path: "go.sum", Status: "M", Added: 1, Generated: true, FromStart: true, Hunks: []review.Hunk{{Header: "@@ -0,0 +1 @@", Lines: []review.Line{{Op: gitdiff.OpAdd, New: 1, Text: "generated line"}}}}},
	}
}

func (s *fakeSource) Review(_ string, _ review.Extent, last string) (review.Review, []review.File, error) {
	r := review.Review{Last: strings.Repeat("a", 40), Viewed: []string{}}
	if last != "" {
		r.Last = last
	}
	s.mu.Lock()
	files := slices.Clone(s.files)
	s.mu.Unlock()
	if files == nil {
		files = sampleFiles()
	}
	for _, f := range files {
		for _, h := range f.Hunks {
			for _, l := range h.Lines {
				r.Comments = append(r.Comments, l.Comments...)
			}
		}
	}
	return r, files, nil
}

func (s *fakeSource) Viewed(_ review.Review, path string, viewed bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = append(s.started, []string{"viewed", path, fmt.Sprint(viewed)})
	return nil
}

func (s *fakeSource) Looked(review.Review) error { return nil }

const wholeReview = "/task/app-1/review?part=whole"

// The review has the lines with their comments and findings. The address keeps the last look, so that a page that is loaded
// again shows no less.
func TestReview(t *testing.T) {
	s := newSite(t).login()
	answer, _ := s.request(http.MethodGet, "/task/app-1/review", "")
	if to := answer.Header.Get("Location"); to != "/task/app-1/review?last="+strings.Repeat("a", 40)+"&part=look" {
		t.Errorf("leads to %s", to)
	}
	for _, view := range []string{"", "&view=split"} {
		text := s.get(wholeReview+view, http.StatusOK)
		for _, want := range []string{
			"package a", "const limit = 10", "<mark>0</mark>", "3 files, 0 viewed", "Why?", "A finding", "addressed by 1111111111", "the agent:</strong> Done.",
			"send 1 comment to the agent", "coven review app-1 --send", `data-place="a.go:-2"`, `data-place="a.go:3"`, "approve", "request changes", "show its lines",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", view, want, text)
			}
		}
		for _, no := range []string{"<script>a", "<img", "onload=\"x", "\x1b", "\u202e", "\u200b", "generated line"} {
			if strings.Contains(text, no) {
				t.Errorf("%s: %q is in\n%s", view, no, text)
			}
		}
	}
	if text := s.get("/task/app-1/review/file?part=whole&file=go.sum", http.StatusOK); !strings.Contains(text, "generated line") {
		t.Errorf("the folded file:\n%s", text)
	}
	s.get("/task/app-1/review/file?part=whole&file=../../etc/passwd", http.StatusNotFound)
	s.get("/task/none/review", http.StatusNotFound)
}

// The forms of the review run command lines of coven, and lead back to the same part.
func TestReviewForms(t *testing.T) {
	s := newSite(t).login()
	s.post(wholeReview+"&at=a.go:2-3#comment-text", "/task/app-1/comments", http.StatusSeeOther, "place", "a.go:2-3", "text", "-x\r\ny", "part", "whole")
	s.post(wholeReview+"&at=a.go:2#comment-text", "/task/app-1/comments", http.StatusSeeOther, "place", "a.go:2", "text", "\tx", "kind", "suggestion")
	s.post(wholeReview+"&at=a.go:-2#comment-text", "/task/app-1/comments", http.StatusUnprocessableEntity, "place", "a.go", "text", "x")
	s.post(wholeReview, "/task/app-1/comments/c1/discard", http.StatusSeeOther)
	s.post(wholeReview, "/task/app-1/viewed", http.StatusSeeOther, "text", "a.go")
	s.post(wholeReview, "/task/app-1/send", http.StatusSeeOther)
	want := `[["review" "--comment" "a.go:2-3" "--" "app-1" "-x\ny"] ["review" "--suggest" "a.go:2" "--" "app-1" "\tx"]` +
		` ["review" "app-1" "--discard" "c1"] ["viewed" "a.go" "true"] ["review" "app-1" "--send"]]`
	if got := s.source.commands(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	r, _ := s.request(http.MethodPost, "/task/app-1/comments", "place=a.go%3A2&text=x", "Sec-Fetch-Site: same-origin")
	if r.StatusCode < 400 {
		t.Errorf("without a proof: %d", r.StatusCode)
	}
	readOnly := newSite(t, func(o *Options) { o.ReadOnly = true }).login()
	if text := readOnly.get(wholeReview+"&at=a.go:2", http.StatusOK); strings.Contains(text, "<form") || strings.Contains(text, "href=\"/task/app-1/review?at") {
		t.Errorf("read-only:\n%s", text)
	}
}

func TestChangedPart(t *testing.T) {
	for _, test := range [][5]string{
		{"limit = 10", "limit = 100", "limit = 10", "", ""},
		{"limit = 100", "limit = 10", "limit = 10", "0", ""},
		{"a b c", "a x c", "a ", "b", " c"},
		{"abc", "xyz", "abc", "", ""},
		{"aaa", "aa", "aa", "a", ""},
		{"日本語", "日米語", "日", "本", "語"},
		{"", "x", "", "", ""},
	} {
		if before, change, after := changedPart(test[0], test[1]); before != test[2] || change != test[3] || after != test[4] {
			t.Errorf("%q and %q: %q, %q, %q", test[0], test[1], before, change, after)
		}
	}
}
