package review

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/control/comments"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/plugins/reviewer"
	"github.com/coven-run/coven/worktree/diff"
)

// A line that a change keeps is found at its new place, and lines that it changes or separates are not.
func TestShift(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(t, "lines")
		old := make([]string, n)
		for i := range old {
			old[i] = fmt.Sprintf("line %d", i)
		}
		next := slices.Clone(old)
		for i := range rapid.IntRange(1, 8).Draw(t, "edits") {
			at := rapid.IntRange(0, len(next)).Draw(t, "at")
			switch edit := rapid.SampledFrom([]string{"add", "delete", "change"}).Draw(t, "edit"); {
			case edit == "add" || at == len(next):
				next = slices.Insert(next, at, fmt.Sprintf("new %d", i))
			case edit == "delete":
				next = slices.Delete(next, at, at+1)
			default:
				next[at] = fmt.Sprintf("changed %d", i)
			}
		}
		if slices.Equal(old, next) {
			return
		}
		patch := diffOf(t, dir, old, next)
		from := rapid.IntRange(1, n).Draw(t, "from")
		to := rapid.IntRange(from, n).Draw(t, "to")
		want := slices.Index(next, old[from-1]) + 1
		kept := want > 0 && want+to-from <= len(next) && slices.Equal(next[want-1:want+to-from], old[from-1:to])
		got, ok := shift(patch, from, to)
		if ok != kept || ok && got != want {
			t.Fatalf("lines %d to %d: at %d, %v, want %d, %v\n%s", from, to, got, ok, want, kept, patch)
		}
	})
}

func diffOf(t *rapid.T, dir string, old, next []string) string {
	for name, lines := range map[string][]string{"old": old, "new": next} {
		text := strings.Join(append(lines, ""), "\n")
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("git", "diff", rapid.SampledFrom([]string{"-U0", "-U3"}).Draw(t, "context"), "--no-index", "--", "old", "new")
	cmd.Dir = dir
	patch, _ := cmd.Output() // it fails if there are differences
	return string(patch)
}

func TestParsePlace(t *testing.T) {
	for text, want := range map[string]string{
		"a.go:1": "{a.go new 1 1}", "a.go:2-4": "{a.go new 2 4}", "a.go:-3": "{a.go old 3 3}", "a.go:-3-5": "{a.go old 3 5}",
		"a b:c.go:7": "{a b:c.go new 7 7}", "a.go": "", "a.go:0": "", ":1": "", "a.go:4-2": "", "a.go:1234567890": "", "a.go:1-": "", "a.go:+1": "",
	} {
		a, err := ParsePlace(text)
		got := ""
		if err == nil {
			if got = fmt.Sprint(struct {
				path     string
				side     Side
				from, to int
			}{a.Path, a.Side, a.From, a.To}); a.Place() != text {
				t.Errorf("%s: the place is %s", text, a.Place())
			}
		}
		if got != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
}

// The state of a comment says whether its lines are the same, where they are, and since when they are not.
func TestStates(t *testing.T) {
	tree := func(c string) string { return strings.Repeat(c, 40) }
	one, sent, now := tree("1"), tree("2"), tree("3") // when it was written, when it was sent, and now
	for name, test := range map[string]struct {
		first, second string // how the lines change until it is sent, and then
		content       string // now
		draft         bool
		results       []event.Result
		want          string
	}{
		"draft":                    {content: "a\nb\n", draft: true, want: "draft a.go:2  "},
		"outdated":                 {first: "@@ -2 +2 @@\n-b\n+c\n", content: "a\nc\n", draft: true, want: "outdated :0  "},
		"draft with moved lines":   {first: "@@ -0,0 +1 @@\n+x\n", content: "x\na\nb\n", draft: true, want: "draft a.go:3  "},
		"untouched":                {content: "a\nb\n", results: []event.Result{{Commit: "C1", Tree: sent}}, want: "untouched a.go:2  "},
		"moved":                    {second: "@@ -0,0 +1 @@\n+x\n", content: "x\na\nb\n", want: "moved a.go:3  "},
		"addressed":                {second: "@@ -2 +2 @@\n-b\n+c\n", content: "a\nc\n", results: []event.Result{{Commit: "C1", Tree: sent}, {Commit: "C2"}, {Tree: now}, {Commit: "C3", Tree: now}}, want: "addressed :0 C3 "},
		"addressed without commit": {second: "@@ -2 +2 @@\n-b\n+c\n", content: "a\nc\n", want: "addressed :0  "},
		"superseded":               {first: "@@ -2 +2 @@\n-b\n+c\n", content: "a\nc\n", results: []event.Result{{Commit: "C1", Tree: now}}, want: "superseded :0  "},
		"behind a link":            {content: "a\nc\n", want: "addressed :0  "},
		"answered":                 {content: "a\nb\n", results: []event.Result{{Outputs: map[string]any{"answers": map[string]any{"c1": "No."}}}, {Outputs: map[string]any{"answers": map[string]any{"c1": "Yes."}}}, {Outputs: map[string]any{"answers": "none"}}, {Outputs: map[string]any{"answers": map[string]any{"c1": 1, "c2": "x"}}}}, want: "untouched a.go:2  Yes."},
		"made-up answer":           {content: "a\nb\n", draft: true, results: []event.Result{{Outputs: map[string]any{"answers": map[string]any{"c1": "No."}}}}, want: "draft a.go:2  "},
	} {
		changed := func(by string) patches {
			if by == "" {
				return patches{}
			}
			return patches{[]diff.FileChange{{Path: "a.go", Status: "M"}}, []string{"diff --git a/a.go b/a.go\n--- a/a.go\n+++ b/a.go\n" + by}}
		}
		p := placer{
			page: control.Page{Diff: control.Diff{From: tree("0"), To: now}},
			diffs: map[[2]string]patches{
				{one, sent}: changed(test.first), {sent, now}: changed(test.second), {one, now}: changed(test.first + test.second),
			},
			contents: map[[2]string][]string{
				{one, "a.go"}: {"a", "b"}, {sent, "a.go"}: {"a", "b"}, {now, "a.go"}: comments.LinesOf([]byte(test.content)),
			},
			turns: turns{sent: map[string]sending{"c1": {results: 1, tree: sent}}, results: append([]event.Result{{Outputs: map[string]any{"answers": map[string]any{"c1": "before"}}}}, test.results...)},
		}
		if test.first != "" {
			p.contents[[2]string{sent, "a.go"}] = comments.LinesOf([]byte(test.content))
		}
		if test.draft {
			p.turns.sent = nil
		}
		got := p.comment(Comment{ID: "c1", Anchor: Anchor{Tree: one, Path: "a.go", Side: New, From: 2, To: 2, Hash: comments.HashOf([]string{"b"})}})
		text := fmt.Sprintf("%s %s:%d %s %s", got.State, got.Now.Path, got.Now.From, got.Commit, got.Answer)
		if text != test.want {
			t.Errorf("%s: %q, want %q", name, text, test.want)
		}
		if sent := !test.draft; got.IsSent() != sent {
			t.Errorf("%s: sent is %v", name, !sent)
		}
	}
}

// A comment on a removed line needs all of its lines to be removed, in that file.
func TestIsRemoved(t *testing.T) {
	p := placer{page: control.Page{Diff: control.Diff{Patch: "diff --git a/b.go b/b.go\n--- a/b.go\n+++ b/b.go\n@@ -1,6 +1,5 @@\n one\n-two\n+2\n-three\n four\n-five\n+5\n six\n"}}}
	for text, want := range map[string]bool{
		"b.go:-1": false, "b.go:-2": true, "b.go:-2-3": true, "b.go:-2-4": false, "b.go:-1-2": false, "b.go:-3-5": false, "b.go:-5": true, "b.go:-4-5": false, "b.go:-6": false, "a.go:-2": false,
	} {
		a, err := ParsePlace(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.isRemoved(a); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// Lines whose tree git has collected are found by their hash: at their place, or at the only other one.
func TestSearch(t *testing.T) {
	for content, want := range map[string]int{"a\nb\nx": 1, "x\na\nb\n": 2, "x\na\nb\na\nb\n": 0, "a\nb\na\nb\n": 1, "a\nx\nb\n": 0, "": 0, "a\n": 0} {
		p := placer{contents: map[[2]string][]string{{"tree", "a.go"}: comments.LinesOf([]byte(content))}}
		got, same := p.search(Anchor{Path: "a.go", From: 1, To: 2, Hash: comments.HashOf([]string{"a", "b"})}, "tree")
		if same != (want > 0) || same && (got.From != want || got.To != want+1 || got.Tree != "tree") {
			t.Errorf("%q: %d to %d, %v", content, got.From, got.To, same)
		}
	}
}

// A comment follows its file to another name.
func TestRenamed(t *testing.T) {
	at := Anchor{Tree: "1", Path: "a.go", Side: New, From: 1, To: 1, Hash: comments.HashOf([]string{"a"})}
	for status, want := range map[string]State{"R": Moved, "C": Untouched, "D": Addressed} {
		change := diff.FileChange{Path: "b.go", OldPath: "a.go", Status: status}
		if status == "D" {
			change = diff.FileChange{Path: "a.go", Status: "D"}
		}
		p := placer{
			page:     control.Page{Diff: control.Diff{To: "2"}},
			diffs:    map[[2]string]patches{{"1", "2"}: {[]diff.FileChange{change}, []string{"diff --git a/a.go b/b.go\nrename from a.go\nrename to b.go\n"}}},
			contents: map[[2]string][]string{{"2", "b.go"}: {"a"}, {"2", "a.go"}: {"a"}},
			turns:    turns{sent: map[string]sending{"c1": {}}},
		}
		got := p.comment(Comment{ID: "c1", Anchor: at})
		if got.State != want || want == Moved && got.Now.Path != "b.go" {
			t.Errorf("%s: %s, %+v", status, got.State, got.Now)
		}
	}
}

// Only results after a comment was sent tell about it. An approval is no turn.
func TestTurns(t *testing.T) {
	of := func(kind event.Type, data any) event.Event {
		text, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		return event.Event{Type: kind, Data: text}
	}
	changes := []reviewer.Finding{{Message: "x"}}
	got := turnsIn([]event.Event{
		of(event.StepCompleted, event.Result{Tree: "1"}),
		of(event.ReviewAnswered, event.MergeDecision{Tree: "1", Changes: changes, Comments: []string{"c1"}}),
		of(event.StepCompleted, event.Result{Tree: "2"}),
		of(event.ReviewAnswered, event.MergeDecision{Tree: "2", Changes: changes, Comments: []string{"c2"}}),
		of(event.ReviewAnswered, event.MergeDecision{Tree: "3", Comments: []string{"c3"}}),
	})
	if got.before != "2" || len(got.results) != 2 || got.sent["c1"] != (sending{1, "1"}) || got.sent["c2"] != (sending{2, "2"}) {
		t.Errorf("%+v", got)
	}
	if _, sent := got.after("c3"); sent {
		t.Error("an approval has sent a comment")
	}
}
