package search_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/search"
)

// A fixture is a repository with an index.
type fixture struct {
	*search.Index
	t     testing.TB
	dir   string
	cache string
	lists int // number of times that the files were listed
	now   time.Time
}

// repository creates a repository with files and an index.
func repository(t testing.TB, files map[string]string) *fixture {
	t.Helper()
	f := &fixture{t: t, dir: t.TempDir(), cache: t.TempDir()}
	git(t, f.dir, "init", "--quiet")
	for path, text := range files {
		f.write(path, text)
	}
	f.open()
	return f
}

// open reopens the index like another process. Its clock is ahead, so that the stamps
// of new files are reliable.
func (f *fixture) open() {
	list := gitList(f.t, f.dir)
	f.Index = search.New(search.Options{
		Root: f.dir, Cache: f.cache, Now: func() time.Time { return time.Now().Add(time.Hour + f.now.Sub(time.Time{})) },
		List: func(ctx context.Context) (search.Listing, error) { f.lists++; return list(ctx) },
	})
}

func (f *fixture) write(path, text string) {
	f.t.Helper()
	file := filepath.Join(f.dir, path)
	must(f.t, os.MkdirAll(filepath.Dir(file), 0o755))
	must(f.t, os.WriteFile(file, []byte(text), 0o644))
}

// answer checks the paths in the result of a query, best first.
func (f *fixture) answer(query string, want ...string) {
	f.t.Helper()
	hits, err := f.Query(f.t.Context(), query, search.QueryOptions{})
	must(f.t, err)
	var got []string
	for _, h := range hits {
		got = append(got, h.Path)
	}
	if !slices.Equal(got, want) {
		f.t.Errorf("%q is answered by %q, want %q", query, got, want)
	}
}

func (f *fixture) file(pattern string) string {
	f.t.Helper()
	found, err := filepath.Glob(filepath.Join(f.cache, "search", "*", pattern))
	must(f.t, err)
	if len(found) != 1 {
		f.t.Fatalf("%d files %s", len(found), pattern)
	}
	return found[0]
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Results of queries on a corpus in which every second file also contains the words.
func TestRanking(t *testing.T) {
	files := map[string]string{
		"store/session_writer.go": "package store\n\n// WriteSession stores a session.\nfunc WriteSession() error { return nil }\n",
		"net/http2_server.go":     "package net\n\ntype HTTPServer struct{}\n\nfunc (s *HTTPServer) parseJSON2() {}\n",
		"docs/landing.md":         "# Landing a change\n\nThe branch moves.\n",
		"docs/other.md":           "# Other\n\nLanding, a change, landing, and text that goes on for a while about more than that.\n",
		"docs/fenced.md":          "# Code\n\n```\n# quokka wallaby\n```\n",
		"docs/headed.md":          "# Quokka wallaby\n\ntext of another kind\n",
		"limits/retry.go":         "package limits\n\nfunc backoff() {}\n",
		"text/日本.md":              "検索する\n",
	}
	for i := range 60 {
		files[fmt.Sprintf("more/file%02d.go", i)] = fmt.Sprintf("package more\n\n// the session and the server wait\nfunc wait%d() { write(); read() }\n", i)
	}
	f := repository(t, files)
	for _, c := range []struct{ query, first string }{
		{"WriteSession", "store/session_writer.go"},           // the whole identifier
		{"write_session", "store/session_writer.go"},          // another notation
		{"writing sessions", "store/session_writer.go"},       // its parts with other endings
		{"http server", "net/http2_server.go"},                // a run of capitals ends before the last one
		{"json", "net/http2_server.go"},                       // between a lower-case letter, capitals and a digit
		{"parsejson2", "net/http2_server.go"},                 // as one word
		{"landing a change", "docs/landing.md"},               // in a heading
		{"quokka", "docs/headed.md"},                          // a comment in a code block is not a heading
		{"limits", "limits/retry.go"},                         // in the path
		{"how do we retry", "limits/retry.go"},                // stop words are ignored
		{"where is the backoff", "limits/retry.go"},           //
		{"索", "text/日本.md"},                                   // a character of a language without word separators
		{`"quokka" OR NEAR(wallaby) -x*`, "docs/headed.md"},   // the query is text, not a language
		{"' ; DROP TABLE docs; -- wallaby", "docs/headed.md"}, //
	} {
		hits, err := f.Query(t.Context(), c.query, search.QueryOptions{Limit: 3})
		must(t, err)
		if len(hits) == 0 || hits[0].Path != c.first {
			t.Errorf("%q is answered by %+v, want %s first", c.query, hits, c.first)
		}
		if len(hits) > 3 {
			t.Errorf("%q has %d answers, want at most 3", c.query, len(hits))
		}
	}
	f.answer("xylophone")
	f.answer("--- ... !")
}

// A hit has the lines that match the query, and their position.
func TestPassage(t *testing.T) {
	lines := slices.Repeat([]string{"retry"}, 30)
	lines[20], lines[21] = "func retryAfter(limit time.Duration) {", "\twait(limit)"
	f := repository(t, map[string]string{"a.go": strings.Join(lines, "\n"), "b.go": "x", "c.go": "y"})
	hits, err := f.Query(t.Context(), "retry after limit", search.QueryOptions{})
	must(t, err)
	if len(hits) != 1 || hits[0].Line != 21 || !strings.HasPrefix(hits[0].Snippet, lines[20]+"\n"+lines[21]) || hits[0].Score <= 0 {
		t.Errorf("the hits are %+v", hits)
	}
}

// A query sees the current files, and reads only those that have changed.
func TestFresh(t *testing.T) {
	f := repository(t, map[string]string{"a.txt": "apple", "b.txt": "banana", "dir/c.txt": "cherry", ".gitignore": "*.log\nignored/\n", "x.log": "apple", "ignored/y.txt": "apple"})
	must(t, os.MkdirAll(filepath.Join(f.dir, "empty", "deep"), 0o755))
	f.answer("apple", "a.txt")
	f.answer("banana", "b.txt")
	if f.lists != 1 {
		t.Errorf("the files were listed %d times though nothing had changed", f.lists)
	}
	f.write("a.txt", "grape")
	f.answer("apple")
	f.answer("grape", "a.txt")
	if f.lists != 1 {
		t.Error("the files were listed for a file with another content")
	}
	f.write("empty/deep/d.txt", "damson")
	f.answer("damson", "empty/deep/d.txt")
	f.write("ignored/z.txt", "damson")
	f.answer("damson", "empty/deep/d.txt")
	must(t, os.Rename(filepath.Join(f.dir, "b.txt"), filepath.Join(f.dir, "dir", "e.txt")))
	f.answer("banana", "dir/e.txt")
	must(t, os.RemoveAll(filepath.Join(f.dir, "dir")))
	f.answer("banana")
	f.answer("cherry")
	f.write(".gitignore", "*.txt\n") // in place, so its directory does not change
	f.answer("apple", "x.log")
	f.write(".gitignore", "")
	f.answer("apple", "x.log", "ignored/y.txt")
	git(t, f.dir, "add", ".")
	f.write(".git/info/exclude", "*.log\n*.txt\n")
	f.answer("apple", "x.log", "ignored/y.txt") // the file is tracked
	git(t, f.dir, "rm", "--quiet", "--cached", "-r", ".")
	f.answer("apple")
}

// Two changes of a file in such quick succession that its size and times are the
// same are both detected.
func TestFreshAtOnce(t *testing.T) {
	f := repository(t, map[string]string{"a.txt": "apple", "b.txt": "other"})
	f.now = time.Time{}.Add(-time.Hour) // matches the file system's clock
	file := filepath.Join(f.dir, "a.txt")
	at := time.Now()
	must(t, os.Chtimes(file, at, at))
	f.answer("apple", "a.txt")
	handle, err := os.OpenFile(file, os.O_WRONLY, 0)
	must(t, err)
	_, err = handle.WriteAt([]byte("grape"), 0)
	must(t, err)
	must(t, handle.Close())
	must(t, os.Chtimes(file, at, at))
	f.answer("grape", "a.txt")
	f.write("c.txt", "grape")
	f.answer("grape", "a.txt", "c.txt")
}

// Only the text of regular files in the repository is searched.
func TestOnlyFiles(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret.txt")
	must(t, os.WriteFile(outside, []byte("apple"), 0o644))
	f := repository(t, map[string]string{
		"a.txt": "apple", "binary": "apple\x00", "large.txt": "apple " + strings.Repeat("x\n", 1<<19), "sub/b.txt": "x",
	})
	at := func(name string) string { return filepath.Join(f.dir, name) }
	must(t, os.Symlink(outside, at("link.txt")))
	must(t, os.Symlink(filepath.Dir(outside), at("linked")))
	must(t, syscall.Mkfifo(at("pipe.txt"), 0o644))
	f.answer("apple", "a.txt")
	lines, more, err := f.Search(t.Context(), "appl[e]", search.QueryOptions{})
	must(t, err)
	if want := []search.Line{{Path: "a.txt", Line: 1, Text: "apple"}}; more || !slices.Equal(lines, want) {
		t.Errorf("the lines are %v, want %v", lines, want)
	}
	all, err := f.Files(t.Context(), "")
	must(t, err)
	if want := []string{"a.txt", "binary", "large.txt", "sub/b.txt"}; !slices.Equal(all, want) {
		t.Errorf("the files are %q, want %q", all, want)
	}

	// An indexed directory has become a link.
	must(t, os.RemoveAll(at("sub")))
	must(t, os.Symlink(filepath.Dir(outside), at("sub")))
	must(t, os.WriteFile(filepath.Join(filepath.Dir(outside), "b.txt"), []byte("damson"), 0o644))
	f.answer("damson")
}

func TestGlobs(t *testing.T) {
	f := repository(t, map[string]string{"a.go": "", "dir/b.go": "", "dir/sub/c.go": "", "dir/d.md": ""})
	for glob, want := range map[string][]string{
		"":            {"a.go", "dir/b.go", "dir/d.md", "dir/sub/c.go"},
		"*.go":        {"a.go", "dir/b.go", "dir/sub/c.go"},
		"/*.go":       {"a.go"},
		"dir/*.go":    {"dir/b.go"},
		"dir/**":      {"dir/b.go", "dir/d.md", "dir/sub/c.go"},
		"**/*.{md,x}": {"dir/d.md"},
		"none":        nil,
	} {
		got, err := f.Files(t.Context(), glob)
		must(t, err)
		if !slices.Equal(got, want) {
			t.Errorf("%q matches %q, want %q", glob, got, want)
		}
	}
	if _, err := f.Files(t.Context(), "[a"); err == nil {
		t.Error("an invalid glob is accepted")
	}
}

func TestSearchIsBounded(t *testing.T) {
	f := repository(t, map[string]string{"a.txt": strings.Repeat("apple\r\n", 10), "b.txt": "x\napple\n" + strings.Repeat("y", 9999) + " apple"})
	lines, more, err := f.Search(t.Context(), "^apple$", search.QueryOptions{Limit: 10})
	must(t, err)
	if len(lines) != 10 || !more || lines[9] != (search.Line{Path: "a.txt", Line: 10, Text: "apple"}) {
		t.Errorf("more: %v, lines %v", more, lines)
	}
	lines, more, err = f.Search(t.Context(), "apple", search.QueryOptions{Keep: func(path string) bool { return path == "b.txt" }})
	must(t, err)
	if len(lines) != 2 || more || lines[0].Line != 2 || len(lines[1].Text) > 300 {
		t.Errorf("more: %v, lines %v", more, lines)
	}
	if _, _, err = f.Search(t.Context(), "(", search.QueryOptions{}); err == nil {
		t.Error("an invalid expression is accepted")
	}
}

// Files that may not be shown do not count against the limit.
func TestKeep(t *testing.T) {
	files := map[string]string{"z/public.txt": "apple and more words than the others have"}
	for i := range 40 {
		files[fmt.Sprintf("secret/%d.txt", i)] = "apple"
	}
	f := repository(t, files)
	hits, err := f.Query(t.Context(), "apple", search.QueryOptions{Limit: 2, Keep: func(path string) bool { return !strings.HasPrefix(path, "secret/") }})
	must(t, err)
	if len(hits) != 1 || hits[0].Path != "z/public.txt" {
		t.Errorf("the hits are %+v", hits)
	}
}
