package search

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"
)

// A Hit is a file that matches a query.
type Hit struct {
	Path    string  `json:"path"`
	Line    int     `json:"line"`    // first line of the snippet
	Snippet string  `json:"snippet"` // best passage
	Score   float64 `json:"score"`   // higher is better; only comparable within one result
}

// DefaultLimit is the default limit of Query.
const DefaultLimit = 10

// QueryOptions restricts the results of Search and Query.
type QueryOptions struct {
	Glob  string                 // for Search: only in matching files; empty for all
	First bool                   // for Search: only the first line of each file
	Limit int                    // maximum number of results; 0 for the default
	Keep  func(path string) bool // reports whether a file may be shown; nil allows all
	Warn  func(error)            // for Query: receives the error of a failed comparison by meaning; may be nil
}

// Query returns the files that best match words or identifiers, best first.
// They are ranked with BM25 over the words and identifiers of the text, the headings and
// the path, and, if Options.Similarities is set, by the meaning of their best passages.
func (x *Index) Query(ctx context.Context, query string, w QueryOptions) ([]Hit, error) {
	terms := queryTerms(query)
	if len(terms) == 0 || x.missing() {
		return nil, nil
	}
	if w.Limit <= 0 {
		w.Limit = DefaultLimit
	}
	limit := w.Limit
	if x.Similarities != nil {
		w.Limit = max(limit, maxCompared)
	}
	var hits []Hit
	err := x.with(ctx, func(s *store) error {
		if err := x.refresh(ctx, s); err != nil {
			return err
		}
		files := s.manifest.documents()
		found, err := s.find(terms, files)
		if err != nil {
			return err
		}
		hits = best(found, files, w)
		return x.passages(hits, s.weights(found))
	})
	if err != nil {
		return nil, err
	}
	if err := x.byMeaning(ctx, query, hits); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if w.Warn != nil {
			w.Warn(err)
		}
	}
	return hits[:min(limit, len(hits))], nil
}

// maxCompared limits the files that are compared by meaning.
const maxCompared = 50

// rrfConstant is the constant of reciprocal rank fusion, which reduces the weight of the first ranks.
const rrfConstant = 60

// byMeaning reorders hits by combining their rank with the rank of their passages' similarity to the query.
func (x *Index) byMeaning(ctx context.Context, query string, hits []Hit) error {
	if x.Similarities == nil || len(hits) == 0 {
		return nil
	}
	texts := make([]string, len(hits))
	for i, h := range hits {
		texts[i] = h.Path + "\n" + h.Snippet
	}
	similar, err := x.Similarities(ctx, query, texts)
	if err != nil {
		return err
	}
	order := make([]int, len(hits)) // most similar first
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(similar[b], similar[a]) })
	for rank, i := range order {
		hits[i].Score = 1/float64(rrfConstant+i) + 1/float64(rrfConstant+rank)
	}
	closest := make([]Hit, len(hits)) // ties are resolved by similarity
	for rank, i := range order {
		closest[rank] = hits[i]
	}
	copy(hits, closest)
	slices.SortStableFunc(hits, func(a, b Hit) int { return cmp.Compare(b.Score, a.Score) })
	return nil
}

// passages sets the best passage of each hit.
func (x *Index) passages(hits []Hit, weights map[string]float64) error {
	root, err := os.OpenRoot(x.Root)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // read only
	for i := range hits {
		text, _ := readText(root, hits[i].Path) // a deleted file has no passage
		hits[i].Line, hits[i].Snippet = passage(string(text), weights)
	}
	return nil
}

// Size of a passage in lines, and of its lines in bytes.
const (
	passageLines = 5
	maxLine      = 240
)

// passage returns the lines of a text that best match the terms, and the number of
// the first one.
func passage(text string, weights map[string]float64) (first int, snippet string) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	terms := make([][]string, len(lines))
	for i, line := range lines {
		eachToken(line, func(term string) {
			if weights[term] > 0 {
				terms[i] = append(terms[i], term)
			}
		})
	}
	best, at := 0.0, 0
	for i := range lines {
		if len(terms[i]) == 0 {
			continue
		}
		if score := passageScore(terms[i:min(i+passageLines, len(lines))], weights); score > best {
			best, at = score, i
		}
	}
	var out []string
	for _, line := range lines[at:min(at+passageLines, len(lines))] {
		out = append(out, clip(line))
	}
	return at + 1, strings.TrimRight(strings.Join(out, "\n"), "\n \t")
}

// passageScore rates a passage by its distinct terms and, with little weight, by their frequency.
func passageScore(lines [][]string, weights map[string]float64) float64 {
	seen, total := map[string]bool{}, 0.0
	for i, line := range lines {
		for _, term := range line {
			if !seen[term] {
				seen[term] = true
				total += weights[term] * (1 - 0.02*float64(i)) // prefer terms in the first line
			} else {
				total += weights[term] * 0.05
			}
		}
	}
	return total
}

// clip truncates a line.
func clip(line string) string {
	line = strings.TrimSuffix(line, "\r")
	if len(line) <= maxLine {
		return line
	}
	return strings.ToValidUTF8(line[:maxLine], "") + "…"
}
