package search

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// Weights of a term in the path and in a heading; in the text it is 1.
const (
	pathWeight    = 6
	headingWeight = 3
)

// BM25 parameters: k1 and b.
const (
	saturation = 1.2
	lengthLoss = 0.75
)

// maxRanked approximately limits the documents to rank, which takes most of the time of a
// query.
const maxRanked = 1000

// rarest returns the terms that select the documents to rank: the rarest ones that stay within
// the limit, because frequent terms are less significant.
func rarest(found map[string][]posting) (chosen []string) {
	terms := slices.SortedFunc(maps.Keys(found), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(found[a]), len(found[b])), cmp.Compare(a, b))
	})
	total := 0
	for _, term := range terms {
		if n := len(found[term]); n > 0 && (total == 0 || total+n <= maxRanked) {
			chosen, total = append(chosen, term), total+n
		}
	}
	return chosen
}

// best returns the best documents that may be shown, ranked with BM25.
func best(found map[string][]posting, files map[int64]indexed, w QueryOptions) []Hit {
	total := 0.0 // number of terms
	for _, f := range files {
		total += float64(f.length)
	}
	scores := map[int64]float64{}
	for _, term := range rarest(found) {
		n := float64(len(found[term]))
		rarity := max(math.Log((float64(len(files))-n+0.5)/(n+0.5)), 1e-6)
		for _, p := range found[term] {
			count, length := float64(p.count), float64(files[p.document].length)
			long := 1 - lengthLoss + lengthLoss*length*float64(len(files))/total
			scores[p.document] += rarity * count * (saturation + 1) / (count + saturation*long)
		}
	}
	ranked := make([]Hit, 0, len(scores))
	for document, score := range scores {
		ranked = append(ranked, Hit{Path: files[document].path, Score: score})
	}
	slices.SortFunc(ranked, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Path, b.Path))
	})
	var hits []Hit
	for _, h := range ranked {
		if len(hits) < w.Limit && (w.Keep == nil || w.Keep(h.Path)) {
			hits = append(hits, h)
		}
	}
	return hits
}

// weights returns the significance of each term in a passage.
func (s *store) weights(found map[string][]posting) map[string]float64 {
	weights := map[string]float64{}
	for term, postings := range found {
		weights[term] = math.Log(1 + float64(len(s.manifest.files)+1)/float64(len(postings)+1))
	}
	return weights
}
