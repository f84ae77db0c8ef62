package task

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/text/jsonline"
)

// clock advances a millisecond on every reading, so that changes have different times.
func clock() func() time.Time {
	var mu sync.Mutex
	now := at
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(time.Millisecond)
		return now
	}
}

func inode(t *testing.T, f *File) os.FileInfo {
	t.Helper()
	info, err := os.Stat(f.path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func TestAddMakesTheFile(t *testing.T) {
	dir := t.TempDir()
	f := OpenFile(filepath.Join(dir, "My Repo", directory, defaultFile), filepath.Join(dir, "git", "coven", "locks"))
	f.now = func() time.Time { return at }
	first, err := f.Add(t.Context(), New{Title: "First <&>", Description: "d", Acceptance: []string{"a", "b\nc"}, Priority: 1, Labels: []string{"l", "l"}})
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^my-repo-[a-z0-9]{4}$`).MatchString(first.ID) {
		t.Errorf("id %q", first.ID)
	}
	want := `{"_type":"issue","id":"` + first.ID + `","title":"First <&>","description":"d","acceptance_criteria":"- [ ] a\n- [ ] b\n  c",` +
		`"status":"open","priority":1,"issue_type":"task","created_at":` + atText + `,"created_by":"coven","updated_at":` + atText + `,"labels":["l"]}` + "\n"
	if got := content(t, f); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	entries, err := os.ReadDir(filepath.Dir(f.path))
	if err != nil || len(entries) != 1 {
		t.Errorf("beside the file: %v, %v", entries, err)
	}
}

func TestAddAfter(t *testing.T) {
	f := tracker(t, "")
	f.now = clock()
	first, err := f.Add(t.Context(), New{Title: "first"})
	if err != nil {
		t.Fatal(err)
	}
	second, err := f.Add(t.Context(), New{Title: "second", After: []string{first.ID, first.ID}, Type: "bug"})
	if err != nil {
		t.Fatal(err)
	}
	if len(second.DependsOn) != 1 || second.DependsOn[0] != (Dependency{ID: first.ID, Type: "blocks"}) || second.Type != "bug" {
		t.Errorf("got %+v", second)
	}
	if ready, err := f.Ready(t.Context()); err != nil || ids(ready) != first.ID {
		t.Errorf("ready %s, %v", ids(ready), err)
	}
	if _, err := f.Close(t.Context(), first.ID, "", ""); err != nil {
		t.Fatal(err)
	}
	if ready, err := f.Ready(t.Context()); err != nil || ids(ready) != second.ID {
		t.Errorf("ready %s, %v", ids(ready), err)
	}
}

func TestAddRefuses(t *testing.T) {
	const text = `{"id":"a","dependencies":[{"depends_on_id":"b"}]}` + "\n" + `{"id":"b","parent":"c"}` + "\n" +
		`{"id":"c","dependencies":[{"depends_on_id":"a"}]}` + "\n" + `{"id":"dead","status":"tombstone"}` + "\n"
	cycle := (*CycleError)(nil)
	for name, c := range map[string]struct {
		n  New
		is func(error) bool
	}{
		"no title":      {New{Title: " \n"}, func(err error) bool { return errors.Is(err, ErrInvalid) }},
		"low priority":  {New{Title: "x", Priority: 5}, func(err error) bool { return errors.Is(err, ErrInvalid) }},
		"high priority": {New{Title: "x", Priority: -1}, func(err error) bool { return errors.Is(err, ErrInvalid) }},
		"empty label":   {New{Title: "x", Labels: []string{""}}, func(err error) bool { return errors.Is(err, ErrInvalid) }},
		"unknown after": {New{Title: "x", After: []string{"zz"}}, func(err error) bool { return errors.Is(err, ErrNotFound) }},
		"deleted after": {New{Title: "x", After: []string{"dead"}}, func(err error) bool { return errors.Is(err, ErrNotFound) }},
		"after a circle": {New{Title: "x", After: []string{"a"}}, func(err error) bool {
			return errors.As(err, &cycle) && strings.Contains(err.Error(), "a -> b -> c -> a")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := tracker(t, text)
			if _, err := f.Add(t.Context(), c.n); !c.is(err) {
				t.Errorf("got %v", err)
			}
			if content(t, f) != text {
				t.Error("the file was written")
			}
		})
	}
}

func TestAddKeepsTheEnding(t *testing.T) {
	for name, c := range map[string]struct{ before, between, after string }{
		"newline":    {`{"id":"a-1"}` + "\n", "", "\n"},
		"no newline": {`{"id":"a-1"}`, "\n", ""},
		"crlf":       {`{"id":"a-1"}` + "\r\n", "", "\r\n"},
		"crlf, none": {`{"id":"a-1"}` + "\r\n" + `{"id":"a-2"}`, "\r\n", ""},
		"blank line": {"\n", "", "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			f := tracker(t, c.before)
			if _, err := f.Add(t.Context(), New{Title: "x"}); err != nil {
				t.Fatal(err)
			}
			got := content(t, f)
			line, ok := strings.CutPrefix(got, c.before+c.between)
			if body, tail := strings.CutSuffix(line, c.after); !ok || !tail || strings.ContainsAny(body, "\r\n") || body[len(body)-1] != '}' {
				t.Errorf("got %q", got)
			}
		})
	}
}

// In a file whose lines have no _type, new lines have none either.
func TestAddWritesAsItsNeighbours(t *testing.T) {
	f := tracker(t, `{"id":"a-1"}`+"\n")
	if _, err := f.Add(t.Context(), New{Title: "x"}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(content(t, f), `"_type"`) {
		t.Error(content(t, f))
	}
}

func TestPrefix(t *testing.T) {
	for name, c := range map[string]struct{ content, config, want string }{
		"directory":        {"", "", "repo"},
		"most ids":         {`{"id":"a-b-1x"}` + "\n" + `{"id":"cc-1"}` + "\n" + `{"id":"cc-1.2"}`, "", "cc"},
		"first of equals":  {`{"id":"zz-1"}` + "\n" + `{"id":"cc-1"}`, "", "zz"},
		"tombstones count": {`{"id":"tt-1","status":"tombstone"}`, "", "tt"},
		"ids of no kind":   {`{"id":"Fix It"}`, "", "repo"},
		"configured":       {`{"id":"cc-1"}`, "# x\nissue-prefix: \"my-\" # y\nno-db: false\n", "my"},
		"not configured":   {`{"id":"cc-1"}`, "# issue-prefix: \"\"\n", "cc"},
	} {
		t.Run(name, func(t *testing.T) {
			f := tracker(t, c.content)
			if c.config != "" {
				if err := os.WriteFile(filepath.Join(filepath.Dir(f.path), "config.yaml"), []byte(c.config), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			added, err := f.Add(t.Context(), New{Title: "x"})
			if err != nil {
				t.Fatal(err)
			}
			if got := added.ID[:strings.LastIndex(added.ID, "-")]; got != c.want {
				t.Errorf("id %s, want prefix %s", added.ID, c.want)
			}
		})
	}
}

func TestPrefixFromName(t *testing.T) {
	for name, want := range map[string]string{
		"Coven": "coven", "my_app v2": "my-app-v2", ".-": "task", "日本": "task", strings.Repeat("ab-", 30): strings.Repeat("ab-", 13) + "a",
	} {
		if got := prefixFrom(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// User text and IDs of other programs are not changed.
func TestVerbatim(t *testing.T) {
	words := []string{"🧙‍♀️ emoji", strings.Repeat("x", 5000), "a b/../c", "-x", "$(rm -rf /); `id` 'q' \"q\" | & > < \\ \t", "<script>&amp;", "line\nbreak", "a\u2028b"}
	for _, w := range words {
		id, err := jsonline.Encode(w)
		if err != nil {
			t.Fatal(err)
		}
		f := tracker(t, `{"id":`+string(id)+`}`+"\n")
		added, err := f.Add(t.Context(), New{Title: w, Description: w, Labels: []string{w}, After: []string{w}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Claim(t.Context(), w, w); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Block(t.Context(), w, "", w); err != nil {
			t.Fatal(err)
		}
		held, err := f.Get(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		got, err := f.Get(t.Context(), added.ID)
		if err != nil {
			t.Fatal(err)
		}
		if got.Title != w || got.Description != w || got.Labels[0] != w || got.DependsOn[0].ID != w || held.ID != w || held.Notes != w {
			t.Errorf("%q became %+v and %+v", w, got, held)
		}
	}
}
