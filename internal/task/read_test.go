package task

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files")

func TestCapturesOfBd(t *testing.T) {
	for _, name := range []string{"export", "list", "show", "ready"} {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("testdata", name+".jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			f := tracker(t, string(data))
			all, err := f.List(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ready, err := f.Ready(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.MarshalIndent(map[string]any{"list": all, "ready": ids(ready)}, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join("testdata", name+".golden"), append(got, '\n'))
		})
	}
}

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (go test -update writes it); got:\n%s", path, got)
	}
}

func TestDefaultsAndOddities(t *testing.T) {
	f := tracker(t, "\xef\xbb\xbf{\"id\":\"a\"}\r\n"+
		"\r\n"+
		`{"_type":"memory","key":"k"}`+"\n"+
		`{"_type":"config","id":7}`+"\n"+
		`{"id":"dead","status":"tombstone"}`+"\n"+
		`{"id":"a","title":"last wins","labels":null,"metadata":"{}","pinned":0,"created_at":"2026-01-02T03:04:05.123456-08:00","metadata":{"n":12345678901234567890},`+
		`"comments":[{"id":1,"author":"x","text":"hi","created_at":"2026-01-01"}]}`)
	all, err := f.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 1 {
		t.Fatalf("tasks: %s", ids(all))
	}
	a := all[0]
	if a.Title != "last wins" || a.Status != StatusOpen || a.Type != "task" || a.Priority != 2 {
		t.Errorf("got %+v", a)
	}
	if want := time.Date(2026, 1, 2, 11, 4, 5, 123456000, time.UTC); !a.CreatedAt.Equal(want) {
		t.Errorf("created %v, want %v", a.CreatedAt, want)
	}
	if n, ok := a.Metadata["n"].(json.Number); !ok || n.String() != "12345678901234567890" {
		t.Errorf("metadata %v", a.Metadata)
	}
	if len(a.Comments) != 1 || a.Comments[0].Text != "hi" || a.Comments[0].CreatedAt.IsZero() {
		t.Errorf("comments %+v", a.Comments)
	}
}

func TestTombstoneAfterTask(t *testing.T) {
	f := tracker(t, `{"id":"a","title":"x"}`+"\n"+`{"id":"a","status":"tombstone"}`+"\n")
	if _, err := f.Get(t.Context(), "a"); !errors.Is(err, ErrNotFound) {
		t.Errorf("Get: %v", err)
	}
	if _, err := f.Claim(t.Context(), "a", "me"); !errors.Is(err, ErrNotFound) {
		t.Errorf("Claim: %v", err)
	}
}

func TestNoFile(t *testing.T) {
	dir := t.TempDir()
	f := OpenFile(filepath.Join(dir, directory, defaultFile), filepath.Join(dir, "locks"))
	if all, err := f.List(t.Context()); err != nil || len(all) != 0 || all == nil {
		t.Errorf("List: %v, %v", all, err)
	}
	if ready, err := f.Ready(t.Context()); err != nil || len(ready) != 0 || ready == nil {
		t.Errorf("Ready: %v, %v", ready, err)
	}
	if _, err := f.Claim(t.Context(), "a", "me"); !errors.Is(err, ErrNotFound) {
		t.Errorf("Claim: %v", err)
	}
	if exists(filepath.Join(dir, directory)) {
		t.Error("reading made the directory")
	}
}

func TestConflictMarkersAreRefused(t *testing.T) {
	for _, mark := range []string{"<<<<<<< HEAD", "||||||| 1234567", "=======", ">>>>>>> branch", "=======\r"} {
		text := `{"id":"a","title":"<<<<<<< in a string"}` + "\n" + mark + "\n" + `{"id":"b"}` + "\n"
		refused(t, text, func(err error) bool {
			found := (*ConflictMarkersError)(nil)
			return errors.As(err, &found) && found.Line == 2 && strings.Contains(err.Error(), "issues.jsonl:2:")
		})
	}
}

func TestCorruptLinesAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		line   string
		column int
	}{
		"cut off":             {`{"id":"b","title":"x`, 20},
		"no JSON":             {`hello`, 1},
		"comma":               {`{"id":"b",}`, 11},
		"two values":          {`{"id":"b"} {"id":"c"}`, 12},
		"not an object":       {`  ["b"]`, 3},
		"a string":            {`"b"`, 1},
		"no id":               {`{"title":"x"}`, 1},
		"empty id":            {`{"title":"x","id":""}`, 19},
		"id is a number":      {`{"id":5}`, 7},
		"status is a list":    {`{"id":"b","status":[]}`, 20},
		"priority is text":    {`{"id":"b","priority":"high"}`, 22},
		"labels is text":      {`{"id":"b","labels":"x"}`, 20},
		"dependency on what":  {`{"id":"b","dependencies":[{"type":"blocks"}]}`, 26},
		"defer_until is odd":  {`{"id":"b","defer_until":"tomorrow"}`, 25},
		"pinned is odd":       {`{"id":"b","pinned":"maybe"}`, 20},
		"comments are odd":    {`{"id":"b","comments":3}`, 22},
		"control character":   {"{\"id\":\"b\x01\"}", 9},
		"nothing but a brace": {`{`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, `{"id":"a"}`+"\n"+c.line+"\n", func(err error) bool {
				found := (*CorruptError)(nil)
				if !errors.As(err, &found) || found.Line != 2 {
					return false
				}
				if found.Column != c.column {
					t.Errorf("column %d, want %d: %v", found.Column, c.column, err)
				}
				return true
			})
		})
	}
}

// refused checks that a file with this content can be neither read nor written.
func refused(t *testing.T, text string, is func(error) bool) {
	t.Helper()
	f := tracker(t, text)
	_, listed := f.List(t.Context())
	_, ready := f.Ready(t.Context())
	_, added := f.Add(t.Context(), New{Title: "x"})
	_, claimed := f.Claim(t.Context(), "a", "me")
	_, closed := f.Close(t.Context(), "a", "", "r")
	for i, err := range []error{listed, ready, added, claimed, closed} {
		if !is(err) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if got := content(t, f); got != text {
		t.Errorf("the file was written: %q", got)
	}
}

func TestNotAFile(t *testing.T) {
	f := tracker(t, "")
	f.path = filepath.Dir(f.path)
	if _, err := f.List(t.Context()); err == nil || !strings.Contains(err.Error(), "is not a file") {
		t.Errorf("List of a directory: %v", err)
	}
}
