package search

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"
)

// A Hit is a file that answers a query.
type Hit struct {
	Path    string  `json:"path"`
	Line    int     `json:"line"`    // where the snippet begins
	Snippet string  `json:"snippet"` // lines of the best passage
	Score   float64 `json:"score"`   // higher is better; comparable within one answer only
}

// DefaultLimit is the number of hits if a query does not say it.
const DefaultLimit = 10

// Wanted limits the hits of a query.
type Wanted struct {
	Glob  string                 // of Search: only in files that match; empty: in all
	First bool                   // of Search: only the first line of each file
	Limit int                    // 0: DefaultLimit
	Keep  func(path string) bool // reports whether a file may be shown; nil: all may
	Warn  func(error)            // of Query: is told why only words count, although Similarities is set; it may be nil
}

// Query returns the files that best answer a query in words or identifiers, best first.
// They are ranked with BM25 over the words and identifiers of the text, of headings and
// of the path, and, if there is an Options.Similarities, by the meaning of their best passages.
func (x *Index) Query(ctx context.Context, query string, w Wanted) ([]Hit, error) {
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

// maxCompared is how many files are compared by their meaning.
const maxCompared = 50

// nearTop lessens how much more the first rank of a list counts than the next: see reciprocal rank fusion.
const nearTop = 60

// byMeaning sorts hits again: by their rank, and by that of the similarity of their passages to the query.
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
	order := make([]int, len(hits)) // the most similar first
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(similar[b], similar[a]) })
	for rank, i := range order {
		hits[i].Score = 1/float64(nearTop+i) + 1/float64(nearTop+rank)
	}
	closest := make([]Hit, len(hits)) // of two with one score, the more similar comes first
	for rank, i := range order {
		closest[rank] = hits[i]
	}
	copy(hits, closest)
	slices.SortStableFunc(hits, func(a, b Hit) int { return cmp.Compare(b.Score, a.Score) })
	return nil
}

// passages fills in the best passage of each hit.
func (x *Index) passages(hits []Hit, weights map[string]float64) error {
	root, err := os.OpenRoot(x.Root)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // read only
	for i := range hits {
		text, _ := readText(root, hits[i].Path) // of one that is gone by now, there is only the path
		hits[i].Line, hits[i].Snippet = passage(string(text), weights)
	}
	return nil
}

// The size of a passage in lines, and of one of its lines in bytes.
const (
	passageLines = 5
	maxLine      = 240
)

// passage returns the lines of a text that have the most of the terms, and the number of
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
		if score := worth(terms[i:min(i+passageLines, len(lines))], weights); score > best {
			best, at = score, i
		}
	}
	var out []string
	for _, line := range lines[at:min(at+passageLines, len(lines))] {
		out = append(out, clip(line))
	}
	return at + 1, strings.TrimRight(strings.Join(out, "\n"), "\n \t")
}

// worth rates a passage: by the different terms, and a little by how often it has them.
func worth(lines [][]string, weights map[string]float64) float64 {
	seen, total := map[string]bool{}, 0.0
	for i, line := range lines {
		for _, term := range line {
			if !seen[term] {
				seen[term] = true
				total += weights[term] * (1 - 0.02*float64(i)) // the first line should have them
			} else {
				total += weights[term] * 0.05
			}
		}
	}
	return total
}

// clip shortens a line.
func clip(line string) string {
	line = strings.TrimSuffix(line, "\r")
	if len(line) <= maxLine {
		return line
	}
	return strings.ToValidUTF8(line[:maxLine], "") + "…"
}
