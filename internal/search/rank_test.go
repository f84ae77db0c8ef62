package search_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/search"
)

// The scores match bm25 of SQLite's FTS5 for the same columns and weights.
func TestScores(t *testing.T) {
	files := map[string]string{
		"apple.md": "# Pie\n\nbanana banana cherry\n",
		"b.md":     "# Apple pie\n\nThe apple is in the pie.\n",
		"c.txt":    "an apple, a banana, and many more words that make it longer\n",
		"d.txt":    "cherry\n",
	}
	for i := range 6 {
		files[fmt.Sprintf("more/%d.txt", i)] = strings.Repeat("date ", i+1)
	}
	f := repository(t, files)
	for query, want := range map[string]string{
		"apple":        "apple.md 1.38395, b.md 1.22870, c.txt 0.566161",
		"banana apple": "apple.md 3.03101, c.txt 1.47525, b.md 1.22870",
		"date":         "more/5.txt 1.78193e-06, more/4.txt 1.75460e-06, more/3.txt 1.71514e-06", // in most files
	} {
		hits, err := f.Query(t.Context(), query, search.QueryOptions{Limit: 3})
		must(t, err)
		var got []string
		for _, h := range hits {
			got = append(got, fmt.Sprintf("%s %#.6g", h.Path, h.Score))
		}
		if got := strings.Join(got, ", "); got != want {
			t.Errorf("%q is answered by\n%s, want\n%s", query, got, want)
		}
	}
}
