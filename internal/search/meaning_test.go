package search_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/search"
)

// Only passages that may be shown are compared by meaning.
func TestSimilarities(t *testing.T) {
	files := map[string]string{"secret/a.md": "stop the car"}
	for i := range 60 {
		files[fmt.Sprintf("f%02d.md", i)] = strings.Repeat("car ", i+1)
	}
	f := repository(t, files)
	f.write("motor.md", "stop a car that a motor moves")
	var compared []string
	f.Similarities = func(_ context.Context, query string, texts []string) ([]float64, error) {
		if query != "stop the car" {
			t.Errorf("the query is %q", query)
		}
		compared = texts
		scores := make([]float64, len(texts))
		for i, text := range texts {
			scores[i] = float64(strings.Count(text, "motor"))
		}
		return scores, nil
	}
	hits, err := f.Query(t.Context(), "stop the car", search.QueryOptions{Limit: 3, Keep: func(path string) bool { return !strings.HasPrefix(path, "secret/") }})
	must(t, err)
	if len(compared) != 50 || slices.ContainsFunc(compared, func(text string) bool { return strings.Contains(text, "secret/") }) {
		t.Errorf("%d passages are compared: %.200q", len(compared), compared)
	}
	if len(hits) != 3 || hits[0].Path != "motor.md" || !strings.HasPrefix(hits[0].Snippet, "stop a car") {
		t.Errorf("%+v", hits)
	}

	// After a failure, the order by words remains, and the error is reported once.
	broken := errors.New("broken")
	f.Similarities = func(context.Context, string, []string) ([]float64, error) { return nil, broken }
	var told []error
	byWords, err := f.Query(t.Context(), "stop the car", search.QueryOptions{Limit: 3, Warn: func(err error) { told = append(told, err) }})
	must(t, err)
	f.Similarities = nil
	plain, err := f.Query(t.Context(), "stop the car", search.QueryOptions{Limit: 3})
	must(t, err)
	if !slices.Equal(byWords, plain) || len(told) != 1 || !errors.Is(told[0], broken) {
		t.Errorf("%+v, %+v, told %v", byWords, plain, told)
	}
	ctx, cancel := context.WithCancel(t.Context())
	f.Similarities = func(context.Context, string, []string) ([]float64, error) { cancel(); return nil, broken }
	if _, err := f.Query(ctx, "stop the car", search.QueryOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a query that was stopped: %v", err)
	}
}
