package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Candidate is an agent that may suit a task, with the evidence.
type Candidate struct {
	Agent string   `json:"agent"`
	Score int      `json:"score"`
	Words []string `json:"words"` // matching words of the task, each with the matching field: "sql (keywords)"
}

// minScore is the minimum score of a suitable agent: one keyword, or two words of the
// description.
const minScore = 2

// Candidates returns the agents that match a task, sorted by descending score, then by name.
func (r *Registry) Candidates(task string) []Candidate {
	given := stems(task)
	var all []Candidate
	for _, d := range r.Agents() {
		if c := d.suits(given); c.Score > 0 {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Agent, b.Agent))
	})
	return all
}

// Suits reports whether the score is high enough.
func (c Candidate) Suits() bool { return c.Score >= minScore }

// suits scores a definition against the words of a task. A word counts once, in its highest-scoring
// field. Matches of the field cannot have a negative score.
func (d Definition) suits(given []string) Candidate {
	fields := []struct {
		name  string
		score int
		words []string
	}{
		{"cannot", -minScore, stems(d.Cannot...)},
		{"name", 3, stems(d.Name)},
		{"keywords", 3, stems(d.Keywords...)},
		{"capabilities", 2, stems(d.Capabilities...)},
		{"domain", 2, stems(d.Domain)},
		{"role", 1, stems(d.Role)},
		{"accepts", 1, stems(d.Accepts)},
		{"description", 1, stems(d.Description)},
	}
	c := Candidate{Agent: d.Name, Words: []string{}}
	for _, word := range given {
		for _, f := range fields {
			if slices.Contains(f.words, word) {
				c.Score += f.score
				c.Words = append(c.Words, fmt.Sprintf("%s (%s)", word, f.name))
				break
			}
		}
	}
	return c
}

// stems returns the distinct words of texts, in lower case and without common endings. It omits
// stop words.
func stems(texts ...string) []string {
	var all []string
	for _, text := range texts {
		for _, word := range strings.FieldsFunc(strings.ToLower(text), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }) {
			if len(word) > 1 && !slices.Contains(stopWords(), word) {
				all = append(all, stem(word))
			}
		}
	}
	return unique(all)
}

// stem removes an ending, so that "reviews" and "reviewing" become "review".
func stem(word string) string {
	const least = 3 // minimum length of a stem
	for _, ending := range []struct{ from, to string }{
		{"sses", "ss"}, {"ations", ""}, {"ation", ""}, {"ate", ""}, {"ies", "y"}, {"ing", ""}, {"ers", ""}, {"er", ""}, {"ors", ""}, {"or", ""}, {"ed", ""}, {"es", ""}, {"s", ""}, {"e", ""},
	} {
		if rest, ok := strings.CutSuffix(word, ending.from); ok && len(rest) >= least && !strings.HasSuffix(rest, "s") {
			return rest + ending.to
		}
	}
	return word
}

// stopWords returns the stop words.
func stopWords() []string {
	return strings.Fields(`
		an and are as at be by for from if in into is it its not of on only or our please so that the their them then
		this to up use used we what when where which who with without you your`)
}
