package task

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// After any change of the file between two calls, a File that has read it before returns
// the same as a new File.
func TestReadAgain(t *testing.T) {
	top := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		dir := filepath.Join(top, fmt.Sprint(n))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		f := OpenFile(filepath.Join(dir, "tasks.jsonl"), dir)
		line := rapid.SampledFrom([]string{
			`{"_type":"issue","id":"a","title":"A"}`, `{"id":"a","title":"other","status":"tombstone"}`, `{"id":"b","title":"B","labels":["x"]}`,
			`{"_type":"memory","id":"m"}`, ``, ` `, `{"id":"c","title":"C","dependencies":[{"depends_on_id":"b"}]}`, `{"id":"c","title":"C","status":"closed"}`,
			`{"id":`, `=======`,
		})
		for range rapid.IntRange(1, 8).Draw(t, "rounds") {
			switch rapid.SampledFrom([]string{"file", "claim", "note", "add"}).Draw(t, "who") {
			case "file":
				ending := rapid.SampledFrom([]string{"\n", "\r\n", ""}).Draw(t, "ending")
				text := strings.Join(rapid.SliceOfN(line, 0, 6).Draw(t, "lines"), "\n") + ending
				if err := os.WriteFile(f.path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			case "claim":
				_, _ = f.Claim(t.Context(), "a", "me") // it may be missing or claimed
			case "note":
				_, _ = f.Note(t.Context(), "b", "me", "a word")
			default:
				_, _ = f.Add(t.Context(), New{Title: "more", After: []string{"c"}})
			}
			got, gotErr := f.List(t.Context())
			want, wantErr := OpenFile(f.path, dir).List(t.Context())
			if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) || !reflect.DeepEqual(got, want) {
				t.Fatalf("got  %+v, %v\nwant %+v, %v", got, gotErr, want, wantErr)
			}
			known, err := f.read(t.Context())
			if err != nil {
				continue
			}
			if again, err := OpenFile(f.path, dir).read(t.Context()); err != nil || again.typed != known.typed || !reflect.DeepEqual(again.line, known.line) {
				t.Fatalf("got  %v %v\nwant %+v, %v", known.typed, known.line, again, err)
			}
		}
	})
}
