package search_test

import (
	"bufio"
	"bytes"
	"cmp"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/search"
)

// The environment of TestJudged: a repository with the commits of testdata/queries.txt, and
// another list of commits for tuning.
const (
	judgedEnv  = "COVEN_JUDGED"
	queriesEnv = "COVEN_JUDGED_QUERIES"
)

// The ranking is better than the order of git grep -c for the queries of testdata/queries.txt.
// docs/benchmarks.md has the results.
func TestJudged(t *testing.T) {
	repo := os.Getenv(judgedEnv)
	if repo == "" {
		t.Skipf("%s has no repository with the commits of testdata/queries.txt", judgedEnv)
	}
	file := cmp.Or(os.Getenv(queriesEnv), "testdata/queries.txt")
	dir := filepath.Join(t.TempDir(), "checkout")
	git(t, ".", "clone", "--quiet", "--shared", "--no-checkout", repo, dir)
	// Both exclude the files that are too large for a copy of the repository.
	git(t, dir, "sparse-checkout", "set", "--no-cone", "/*", "!*.gz", "!*.min.js")
	x := search.New(search.Options{Root: dir, List: gitList(t, dir), Cache: t.TempDir(), Now: time.Now})
	var ours, theirs, words float64
	queries := judgedCommits(t, file)
	for _, commit := range queries {
		git(t, dir, "checkout", "--quiet", "--force", "--detach", commit+"^")
		subject := strings.TrimSpace(git(t, dir, "log", "-1", "--format=%s", commit))
		relevant := strings.Split(strings.TrimSuffix(git(t, dir, "diff", "-z", "--no-renames", "--name-only", "--diff-filter=MD", commit+"^", commit), "\x00"), "\x00")
		hits, err := x.Query(t.Context(), subject, search.QueryOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var ranked []string
		for _, h := range hits {
			ranked = append(ranked, h.Path)
		}
		a, b, c := ndcg(ranked, relevant), ndcg(byCount(t, dir, subject), relevant), ndcg(byWords(t, dir, subject), relevant)
		t.Logf("%s %.2f %.2f %.2f %.60s", commit[:8], a, b, c, subject)
		ours, theirs, words = ours+a/float64(len(queries)), theirs+b/float64(len(queries)), words+c/float64(len(queries))
	}
	t.Logf("nDCG@10 of %d queries: %.3f, of git grep -c: %.3f, of git grep -l for each word: %.3f", len(queries), ours, theirs, words)
	if ours <= theirs || ours <= words {
		t.Error("git grep ranks better")
	}
}

func judgedCommits(t *testing.T, file string) (commits []string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // read only
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if line := lines.Text(); line != "" && !strings.HasPrefix(line, "#") {
			commits = append(commits, line)
		}
	}
	if len(commits) != 50 {
		t.Fatalf("%s has %d queries", file, len(commits))
	}
	return commits
}

// byCount orders the files by the number of lines with a word of the query, like a manual git grep for
// whole words of three or more characters without stop words.
func byCount(t *testing.T, dir, query string) []string {
	t.Helper()
	args := []string{"grep", "-z", "-I", "-i", "-c", "-F"}
	for _, word := range wordsOf(query) {
		args = append(args, "-e", word)
	}
	counts := map[string]int{}
	for line := range strings.Lines(git(t, dir, args...)) {
		path, count, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\x00")
		n, err := strconv.Atoi(count)
		if err != nil {
			t.Fatalf("git grep printed %q", line)
		}
		counts[path] = n
	}
	return byNumber(counts)
}

// byWords orders the files by the number of distinct words of the query that they contain. It runs git
// grep for each word.
func byWords(t *testing.T, dir, query string) []string {
	t.Helper()
	counts := map[string]int{}
	for _, word := range wordsOf(query) {
		for _, path := range fields(git(t, dir, "grep", "-z", "-I", "-i", "-l", "-F", "-e", word)) {
			counts[path]++
		}
	}
	return byNumber(counts)
}

func wordsOf(query string) []string {
	words := strings.FieldsFunc(query, func(r rune) bool { return !strings.ContainsRune("_-./", r) && !isAlphanumeric(r) })
	return slices.DeleteFunc(words, func(word string) bool {
		return len(word) < 3 || slices.Contains([]string{"the", "and", "for", "with", "from", "that", "this", "when", "not", "are", "into", "its"}, strings.ToLower(word))
	})
}

func byNumber(counts map[string]int) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
}

func isAlphanumeric(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

// ndcg returns the nDCG@10 of a ranking with binary relevance.
func ndcg(ranked, relevant []string) float64 {
	got, ideal := 0.0, 0.0
	for i := range 10 {
		gain := 1 / math.Log2(float64(i+2))
		if i < len(ranked) && slices.Contains(relevant, ranked[i]) {
			got += gain
		}
		if i < len(relevant) {
			ideal += gain
		}
	}
	return got / ideal
}

// git runs git. A git grep without results is not an error.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil && (args[0] != "grep" || stderr.Len() > 0) {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return string(out)
}
