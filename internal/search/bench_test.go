package search_test

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/search"
)

// BenchmarkSearch compares an index of a repository of 10,000 files with git grep. index
// reads all files, query runs without changes, and changed runs after a change of one file. The
// query has words that occur in ten files, a hundred files and almost all files.
func BenchmarkSearch(b *testing.B) {
	f := generated(b, 10_000)
	const query = "rareWord17 common value"
	ask := func(b *testing.B) {
		b.Helper()
		hits, err := f.Query(b.Context(), query, search.QueryOptions{})
		if err != nil || len(hits) != search.DefaultLimit || !strings.HasPrefix(hits[0].Path, "dir17/sub7/") {
			b.Fatalf("%d hits, %v", len(hits), err)
		}
	}
	b.Run("index", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			f.cache = b.TempDir()
			f.open()
			b.StartTimer()
			ask(b)
		}
	})
	f.cache = b.TempDir()
	f.open()
	ask(b)
	b.Run("query", func(b *testing.B) {
		for b.Loop() {
			ask(b)
		}
	})
	b.Run("changed", func(b *testing.B) {
		n := 0
		for b.Loop() {
			n++
			f.write("dir3/changed.go", fmt.Sprintf("package dir3 // %d", n))
			ask(b)
		}
	})
	b.Run("git-grep", func(b *testing.B) {
		for b.Loop() {
			if git(b, f.dir, "grep", "-I", "-i", "-c", "-F", "-e", "rareWord17", "-e", "common", "-e", "value") == "" {
				b.Fatal("git grep finds nothing")
			}
		}
	})
	b.Run("git-ls-files", func(b *testing.B) {
		for b.Loop() {
			git(b, f.dir, "ls-files", "-z", "-c", "-o", "--exclude-standard")
		}
	})
}

// generated returns a committed repository of n files with 1.5 kB on average, in n/10
// directories. One percent of them contain the word common.
func generated(b *testing.B, n int) *fixture {
	b.Helper()
	f := repository(b, nil)
	r := rand.New(rand.NewSource(1))
	for i := range n {
		var text strings.Builder
		fmt.Fprintf(&text, "package dir%d\n\n", i%100)
		if i%100 == 0 {
			text.WriteString("// common\n")
		}
		if i%1000 == 17 {
			fmt.Fprintf(&text, "func rareWord17() {} // %d\n", i)
		}
		for range r.Intn(100) {
			fmt.Fprintf(&text, "\tvalue%d := read%d(index[%d])\n", r.Intn(5000), r.Intn(500), r.Intn(90))
		}
		f.write(fmt.Sprintf("dir%d/sub%d/file%d.go", i%100, i%10, i), text.String())
	}
	git(b, f.dir, "add", ".")
	git(b, f.dir, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "-m", "all")
	return f
}
