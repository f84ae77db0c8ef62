package search

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// The weights of a term in the path and in a heading, beside 1 in the text.
const (
	pathWeight    = 6
	headingWeight = 3
)

// The usual parameters of BM25: how soon more of a term adds little, and how much long documents lose.
const (
	saturation = 1.2
	lengthLoss = 0.75
)

// maxRanked limits the documents that are ranked, roughly. The time of a query is that of
// ranking them.
const maxRanked = 1000

// rarest returns the terms that choose the documents to rank: as many as fit, the rarest
// first, because frequent ones tell little.
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

// best returns the best documents that may be shown, rated with BM25.
func best(found map[string][]posting, files map[int64]indexed, w Wanted) []Hit {
	total := 0.0 // terms
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

// weights returns how much each term tells about a passage that has it.
func (s *store) weights(found map[string][]posting) map[string]float64 {
	weights := map[string]float64{}
	for term, postings := range found {
		weights[term] = math.Log(1 + float64(len(s.manifest.files)+1)/float64(len(postings)+1))
	}
	return weights
}
