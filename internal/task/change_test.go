package task

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// odd is a line in the style of another program.
const odd = `{ "zeta" : [1, {"a":"}"}] ,"id":"t-1", "title":"\u00e9 <b> & \"q\"","x":1.50 }`

func TestChangesTouchOnlyTheirMembers(t *testing.T) {
	const before, after = `{"id":"t-0"}` + "\n", "\r\n\n" + `{"_type":"memory","key":"t-1"}`
	type step func(f *File) (Task, error)
	claim := func(f *File) (Task, error) { return f.Claim(t.Context(), "t-1", "w<1>") }
	block := func(f *File) (Task, error) { return f.Block(t.Context(), "t-1", "", "why & how") }
	release := func(f *File) (Task, error) { return f.Release(t.Context(), "t-1", "", "") }
	closed := func(f *File) (Task, error) { return f.Close(t.Context(), "t-1", "", "done > that") }
	edited := func(f *File) (Task, error) {
		return f.Edit(t.Context(), "t-1", Edit{Description: new("a <b>\n"), Priority: new(0), Labels: &[]string{"x"}})
	}
	emptied := func(f *File) (Task, error) {
		return f.Edit(t.Context(), "t-1", Edit{Description: new(""), Labels: &[]string{}})
	}
	retitled := func(f *File) (Task, error) { return f.Edit(t.Context(), "t-1", Edit{Title: new("q & a")}) }
	head := strings.TrimSuffix(odd, " }")
	for name, c := range map[string]struct {
		steps []step
		want  string
	}{
		"claim":         {[]step{claim}, head + `,"status":"in_progress","assignee":"w<1>","started_at":` + atText + `,"updated_at":` + atText + ` }`},
		"close":         {[]step{closed}, head + `,"status":"closed","closed_at":` + atText + `,"close_reason":"done > that","updated_at":` + atText + ` }`},
		"block":         {[]step{block}, head + `,"status":"blocked","notes":"why & how","updated_at":` + atText + ` }`},
		"claim, block":  {[]step{claim, block}, head + `,"status":"blocked","started_at":` + atText + `,"updated_at":` + atText + `,"notes":"why & how" }`},
		"claim, give":   {[]step{claim, release}, head + `,"status":"open","started_at":` + atText + `,"updated_at":` + atText + ` }`},
		"release":       {[]step{release}, odd},
		"edit":          {[]step{edited}, head + `,"description":"a <b>\n","priority":0,"labels":["x"],"updated_at":` + atText + ` }`},
		"edit, empty":   {[]step{edited, emptied}, head + `,"priority":0,"updated_at":` + atText + ` }`},
		"edit nothing":  {[]step{emptied}, odd},
		"title":         {[]step{retitled}, strings.Replace(head, `"\u00e9 <b> & \"q\""`, `"q & a"`, 1) + `,"updated_at":` + atText + ` }`},
		"claim, closed": {[]step{claim, closed, closed}, head + `,"status":"closed","assignee":"w<1>","started_at":` + atText + `,"updated_at":` + atText + `,"closed_at":` + atText + `,"close_reason":"done > that" }`},
	} {
		t.Run(name, func(t *testing.T) {
			f := tracker(t, before+odd+after)
			for i, do := range c.steps {
				if _, err := do(f); err != nil {
					t.Fatalf("step %d: %v", i, err)
				}
			}
			if got, want := content(t, f), before+c.want+after; got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestClaim(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		is   error
		text string
	}{
		"open":                {`{"id":"x"}`, nil, ""},
		"mine":                {`{"id":"x","status":"in_progress","assignee":"me"}`, nil, ""},
		"given to me":         {`{"id":"x","assignee":"me"}`, nil, ""},
		"blocked by status":   {`{"id":"x","status":"blocked"}`, nil, ""},
		"deferred to later":   {`{"id":"x","defer_until":"2030-01-01"}`, nil, ""},
		"another's":           {`{"id":"x","status":"in_progress","assignee":"bob"}`, ErrClaimed, "claimed by bob"},
		"given to another":    {`{"id":"x","assignee":"bob"}`, ErrClaimed, "claimed by bob"},
		"closed":              {`{"id":"x","status":"closed","assignee":"bob"}`, ErrNotClaimable, "status is closed"},
		"closed by me":        {`{"id":"x","status":"closed","assignee":"me"}`, ErrNotClaimable, "status is closed"},
		"in progress, no one": {`{"id":"x","status":"in_progress"}`, ErrNotClaimable, "status is in_progress"},
		"deferred":            {`{"id":"x","status":"deferred"}`, ErrNotClaimable, "status is deferred"},
	} {
		t.Run(name, func(t *testing.T) {
			f := tracker(t, c.line+"\n")
			got, err := f.Claim(t.Context(), "x", "me")
			if !errors.Is(err, c.is) {
				t.Fatalf("got %v, want %v", err, c.is)
			}
			if c.is != nil {
				if !strings.Contains(err.Error(), c.text) || content(t, f) != c.line+"\n" {
					t.Errorf("%v; file %s", err, content(t, f))
				}
				return
			}
			if got.Status != StatusInProgress || got.Assignee != "me" {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestClaimOfBlockedTask(t *testing.T) {
	f := tracker(t, `{"id":"a"}`+"\n"+`{"id":"x","dependencies":[{"depends_on_id":"a","type":"blocks"}]}`+"\n")
	_, err := f.Claim(t.Context(), "x", "me")
	blocked := (*BlockedError)(nil)
	if !errors.As(err, &blocked) || strings.Join(blocked.Blockers, " ") != "a" {
		t.Fatalf("got %v", err)
	}
	if _, err := f.Close(t.Context(), "a", "", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Claim(t.Context(), "x", "me"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Claim(t.Context(), "x", ""); err == nil {
		t.Error("claimed for nobody")
	}
}

// Repeating a change writes nothing.
func TestChangesAreIdempotent(t *testing.T) {
	steps := []struct {
		name string
		do   func(f *File) (Task, error)
	}{
		{"claim", func(f *File) (Task, error) { return f.Claim(t.Context(), "t-1", "me") }},
		{"block", func(f *File) (Task, error) { return f.Block(t.Context(), "t-1", "", "line 1\nline 2") }},
		{"claim again", func(f *File) (Task, error) { return f.Claim(t.Context(), "t-1", "you") }},
		{"release", func(f *File) (Task, error) { return f.Release(t.Context(), "t-1", "", "given back") }},
		{"close", func(f *File) (Task, error) { return f.Close(t.Context(), "t-1", "", "done") }},
		{"note", func(f *File) (Task, error) { return f.Note(t.Context(), "t-1", "", "by the way") }},
		{"block closed", func(f *File) (Task, error) { return f.Block(t.Context(), "t-1", "", "late") }},
		{"release closed", func(f *File) (Task, error) { return f.Release(t.Context(), "t-1", "", "late") }},
	}
	f := tracker(t, odd+"\n")
	f.now = clock()
	for _, step := range steps {
		first, err := step.do(f)
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		was, stat := content(t, f), inode(t, f)
		second, err := step.do(f)
		if err != nil {
			t.Fatalf("%s again: %v", step.name, err)
		}
		if content(t, f) != was || !os.SameFile(stat, inode(t, f)) {
			t.Errorf("%s again wrote the file", step.name)
		}
		if !first.UpdatedAt.Equal(second.UpdatedAt) || first.Status != second.Status {
			t.Errorf("%s: %+v, then %+v", step.name, first, second)
		}
	}
	last, err := f.Get(t.Context(), "t-1")
	if err != nil {
		t.Fatal(err)
	}
	if last.Status != StatusClosed || last.Notes != "line 1\nline 2\ngiven back\nby the way" || last.CloseReason != "done" {
		t.Errorf("got %+v", last)
	}
}

func TestCloseWithAnotherReason(t *testing.T) {
	f := tracker(t, `{"id":"x","status":"closed","closed_at":"2026-01-01T00:00:00Z","close_reason":"old"}`+"\n")
	got, err := f.Close(t.Context(), "x", "", "new")
	if err != nil {
		t.Fatal(err)
	}
	if got.CloseReason != "new" || got.ClosedAt.Year() != 2026 || got.ClosedAt.Month() != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestReleaseKeepsAStatusOfThePerson(t *testing.T) {
	f := tracker(t, `{"id":"x","status":"deferred","assignee":"coven/1"}`+"\n")
	got, err := f.Release(t.Context(), "x", "", "")
	if err != nil || got.Status != "deferred" || got.Assignee != "" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestUnknownTask(t *testing.T) {
	f := tracker(t, odd+"\n")
	_, got := f.Get(t.Context(), "nope")
	_, claimed := f.Claim(t.Context(), "nope", "me")
	_, closed := f.Close(t.Context(), "nope", "", "")
	_, blocked := f.Block(t.Context(), "nope", "", "")
	_, released := f.Release(t.Context(), "nope", "", "")
	for i, err := range []error{got, claimed, closed, blocked, released} {
		if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "nope") {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

// If several lines have the same ID, the last one is changed.
func TestLastDuplicateIsChanged(t *testing.T) {
	const first = `{"id":"x","title":"one","status":"closed"}` + "\n"
	f := tracker(t, first+`{"id":"x","title":"two","status":"open","status":"open"}`)
	if _, err := f.Close(t.Context(), "x", "", ""); err != nil {
		t.Fatal(err)
	}
	want := first + `{"id":"x","title":"two","status":"open","status":"closed","closed_at":` + atText + `,"updated_at":` + atText + `}`
	if got := content(t, f); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestLargeLines(t *testing.T) {
	long := strings.Repeat("ä <&> \\n \\u0041", 60_000) // almost 1 MiB
	line := `{"id":"big","description":"` + long + `","status":"open"}`
	f := tracker(t, `{"id":"a"}`+"\n"+line+"\n")
	got, err := f.Claim(t.Context(), "big", "me")
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Description) < 500_000 {
		t.Errorf("description of %d bytes", len(got.Description))
	}
	if !strings.Contains(content(t, f), long) {
		t.Error("the description changed")
	}
}

func TestModeAndSymlinkStay(t *testing.T) {
	f := tracker(t, odd+"\n")
	real := filepath.Join(t.TempDir(), "elsewhere.jsonl")
	if err := os.Rename(f.path, real); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(real, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, f.path); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Claim(t.Context(), "t-1", "me"); err != nil {
		t.Fatal(err)
	}
	link, err := os.Lstat(f.path)
	if err != nil || link.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link became %v, %v", link.Mode(), err)
	}
	file, err := os.Stat(real)
	if err != nil || file.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", file.Mode(), err)
	}
	if !strings.Contains(content(t, f), "in_progress") {
		t.Error("the file was not changed")
	}
}

func TestLinkToNothingIsRefused(t *testing.T) {
	f := tracker(t, "")
	if err := os.Remove(f.path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere.jsonl", f.path); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Add(t.Context(), New{Title: "x"}); err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("got %v", err)
	}
}
