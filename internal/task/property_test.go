package task

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coven-run/coven/internal/text/jsonline"
)

func parse(path string, data []byte) (*document, error) {
	return reading{}.parse(path, bytes.NewReader(data))
}

func (d *document) bytes() []byte { return bytes.Join(d.lines, nil) }

// lineOf generates lines in the styles of different programs.
func lineOf() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		id := rapid.SampledFrom([]string{"a-1", "a-2", "a-3", "b 4/..", "-x", "é🧙"}).Draw(t, "id")
		return rapid.SampledFrom([]string{
			`{"id":"` + id + `","title":"T","status":"open"}`,
			`{ "title" : "T \u0026 <x>", "id" : "` + id + `" , "n":1e3 }`,
			`{"x":{"id":"no","y":[{},[],"]}"]},"id":"` + id + `","status":"open","updated_at":"2026-01-01T00:00:00Z"}  `,
			`{"id":"` + id + `","status":"closed","closed_at":"2026-01-01T00:00:00Z","close_reason":"r"}`,
			`{"assignee":"w1","id":"` + id + `","status":"in_progress","notes":"n\nm"}`,
			`{"assignee":"w1","assignee":"w2","id":"` + id + `","status":"in_progress"}`,
			`{"id":"` + id + `","dependencies":[{"depends_on_id":"a-1","type":"blocks"}]}`,
			`{"id":"` + id + `","status":"tombstone"}`,
			`{"_type":"memory","id":"` + id + `"}`,
			``,
		}).Draw(t, "shape")
	})
}

// Changing one task changes no byte of other lines, and only coven's members of its
// line.
func TestNoOtherByteChanges(t *testing.T) {
	ours := []string{"status", "assignee", "started_at", "updated_at", "closed_at", "close_reason", "notes", "title", "labels"}
	dir := t.TempDir()
	rapid.Check(t, func(r *rapid.T) {
		f := OpenFile(filepath.Join(dir, "tasks.jsonl"), filepath.Join(dir, "locks"))
		text := strings.Join(rapid.SliceOfN(lineOf(), 1, 8).Draw(r, "lines"), rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(r, "ending"))
		text += rapid.SampledFrom([]string{"", "\n"}).Draw(r, "end")
		if err := os.WriteFile(f.path, []byte(text), 0o644); err != nil {
			r.Fatal(err)
		}
		for range rapid.IntRange(1, 5).Draw(r, "steps") {
			before, err := f.read(context.Background())
			if err != nil {
				r.Fatal(err)
			}
			id, err := operate(r, f)
			after, readErr := f.read(context.Background())
			if readErr != nil {
				r.Fatal(readErr)
			}
			if err != nil && !bytes.Equal(before.bytes(), after.bytes()) {
				r.Fatalf("%v, and the file changed", err)
			}
			compare(r, before, after, id, ours)
		}
	})
}

// operate changes the file and returns the ID of the changed task. The ID is empty for a new
// task.
func operate(r *rapid.T, f *File) (string, error) {
	ctx := context.Background()
	id := rapid.SampledFrom([]string{"a-1", "a-2", "a-3", "b 4/..", "-x", "é🧙", "gone"}).Draw(r, "task")
	word := rapid.SampledFrom([]string{"w1", "w2", "a <b> & \"c\"\n😀"}).Draw(r, "word")
	var err error
	switch rapid.SampledFrom([]string{"add", "claim", "close", "block", "release", "edit"}).Draw(r, "operation") {
	case "add":
		_, err = f.Add(ctx, New{Title: word})
		id = ""
	case "claim":
		_, err = f.Claim(ctx, id, word)
	case "close":
		_, err = f.Close(ctx, id, "", word)
	case "block":
		_, err = f.Block(ctx, id, "", word)
	case "release":
		_, err = f.Release(ctx, id, "", word)
	case "edit":
		_, err = f.Edit(ctx, id, Edit{Title: &word, Labels: &[]string{word}})
	}
	blocked := (*BlockedError)(nil)
	if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrClaimed) && !errors.Is(err, ErrNotClaimable) && !errors.As(err, &blocked) {
		r.Fatal(err)
	}
	return id, err
}

func compare(r *rapid.T, before, after *document, id string, ours []string) {
	mine, known := before.line[id]
	for i, line := range before.lines {
		switch {
		case known && i == mine:
			if got, want := foreign(r, after, i, ours), foreign(r, before, i, ours); got != want {
				r.Fatalf("line %d: other members changed:\n%s\n%s", i+1, want, got)
			}
		case id == "" && i == len(before.lines)-1:
			if !bytes.HasPrefix(after.lines[i], line) {
				r.Fatalf("line %d changed: %q", i+1, after.lines[i])
			}
		case !bytes.Equal(line, after.lines[i]):
			r.Fatalf("line %d changed:\n%q\n%q", i+1, line, after.lines[i])
		}
	}
	ends := func(d *document) bool { return bytes.HasSuffix(d.bytes(), []byte("\n")) }
	if len(before.lines) > 0 && ends(before) != ends(after) {
		r.Fatal("the final newline changed")
	}
}

// foreign returns a line without the members that coven writes.
func foreign(r *rapid.T, d *document, i int, ours []string) string {
	_, body, ending := d.parts(i)
	found, err := jsonline.Members(body)
	if err != nil {
		r.Fatal(err)
	}
	var kept []string
	for _, m := range found {
		if !slices.Contains(ours, m.Name) {
			kept = append(kept, string(body[m.Start:m.End]))
		}
	}
	return strings.Join(kept, "\n") + fmt.Sprintf("%q", ending)
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(odd + "\n" + `{"_type":"x"}` + "\r\n\n"))
	f.Add([]byte("\xef\xbb\xbf" + `{"id":"a","dependencies":[{"id":"b","dependency_type":"blocks"}]}`))
	f.Add([]byte("<<<<<<< HEAD\n"))
	f.Add([]byte(`{"id":"a","defer_until":"x","metadata":{"n":1e999}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := parse("x", data)
		if err != nil {
			conflict, corrupt := (*ConflictMarkersError)(nil), (*CorruptError)(nil)
			if !errors.As(err, &conflict) && !errors.As(err, &corrupt) {
				t.Fatalf("no place: %v", err)
			}
			if corrupt != nil && (corrupt.Line < 1 || corrupt.Column < 1) {
				t.Fatalf("place: %v", err)
			}
			return
		}
		if !bytes.Equal(d.bytes(), data) {
			t.Fatalf("%q became %q", data, d.bytes())
		}
		for id := range d.tasks {
			if err := d.patch(id, []jsonline.Edit{{Name: "status", Value: []byte(`"closed"`)}}); err != nil {
				t.Fatal(err)
			}
			if d.tasks[id].Status != StatusClosed {
				t.Fatalf("%q is not closed: %q", id, d.bytes())
			}
		}
		if again, err := parse("x", d.bytes()); err != nil || len(again.tasks) != len(d.tasks) {
			t.Fatalf("%q: %v", d.bytes(), err)
		}
	})
}

func BenchmarkReady(b *testing.B) {
	var lines bytes.Buffer
	for i := range 10_000 {
		fmt.Fprintf(&lines, `{"_type":"issue","id":"t-%d","title":"Title","description":%q,"status":"open","priority":%d,"issue_type":"task",`+
			`"created_at":"2026-11-21T01:20:29Z","dependencies":[{"issue_id":"t-%d","depends_on_id":"t-%d","type":"blocks"}]}`+"\n",
			i, strings.Repeat("d", 500), i%5, i, i/2)
	}
	dir := b.TempDir()
	f := OpenFile(filepath.Join(dir, "tasks.jsonl"), dir)
	if err := os.WriteFile(f.path, lines.Bytes(), 0o644); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := f.Ready(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
