package reflection

import (
	"strings"
	"testing"
)

// C-64 C-66: the answer of an evaluator is its last fenced block or the whole text; an invalid answer
// is a failed verdict with score 0.
func TestParse(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]struct {
		verdict Verdict
		problem string
	}{
		`{"passed": true, "score": 9.5, "critique": "Fine."}`:                                               {Verdict{true, 9.5, "Fine."}, ""},
		"I looked.\n\n```json\n{\"passed\": false, \"score\": 3, \"critique\": \"Too short.\"}\n```\n":      {Verdict{false, 3, "Too short."}, ""},
		"```\n{\"passed\": true, \"score\": 10}\n```\nNo:\n```json\n{\"passed\": false, \"score\": 0}\n```": {Verdict{false, 0, "The evaluator gave no reason."}, ""},
		"```json\n{\"passed\": true, \"score\": 10, \"critique\": \"\", \"more\": [1]}":                     {Verdict{true, 10, ""}, ""},
		"  {\"passed\": false, \"score\": 4, \"critique\": \" With ``` in it. \"}  ":                        {Verdict{false, 4, "With ``` in it."}, ""},
		"It is good.":                   {Verdict{Critique: Unreadable}, "is not JSON"},
		"":                              {Verdict{Critique: Unreadable}, "is not JSON"},
		`{"passed": "yes", "score": 9}`: {Verdict{Critique: Unreadable}, "is not JSON"},
		`{"passed": true}`:              {Verdict{Critique: Unreadable}, "lacks passed or score"},
		`{"score": 9}`:                  {Verdict{Critique: Unreadable}, "lacks passed or score"},
		`{"passed": true, "score": 95, "critique": ""}`:        {Verdict{Critique: Unreadable}, "score 95 is not between 0 and 10"},
		`{"passed": true, "score": -1, "critique": ""}`:        {Verdict{Critique: Unreadable}, "score -1 is not between 0 and 10"},
		`{"passed": true, "score": 9, "critique": ""} I hope.`: {Verdict{Critique: Unreadable}, "text after its JSON"},
	} {
		got, err := Parse(answer)
		if got != want.verdict || (err == nil) != (want.problem == "") || err != nil && !strings.Contains(err.Error(), want.problem) {
			t.Errorf("%q: %+v, %v", answer, got, err)
		}
	}
}

// C-66 C-124: the best score wins, and of equal scores the earlier attempt.
func TestBest(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		scores []float64
		want   int
	}{
		{[]float64{3, 7, 5}, 1}, {[]float64{4}, 0}, {[]float64{7, 7, 7}, 0}, {[]float64{0, 0}, 0}, {[]float64{1, 6, 6}, 1}, {[]float64{1, 2, 3}, 2},
	} {
		if got := Best(test.scores); got != test.want {
			t.Errorf("%v: %d", test.scores, got)
		}
	}
}

// C-125: the task of attempt n+1 is the original task with the critique of attempt n.
func TestRefine(t *testing.T) {
	t.Parallel()
	const want = "Write the\nmanual.\n\n## Critique of attempt 2\n\nAdd examples."
	if got := Refine("Write the\nmanual.\n", 2, " Add examples.\n"); got != want {
		t.Errorf("%q", got)
	}
}

// C-64: the question contains the task, the report and the criteria; a heading in the report starts no section.
func TestQuestion(t *testing.T) {
	t.Parallel()
	const want = "Judge the report below.\n\n# Task\n\n> Do it.\n\n# Report\n\n> ## Summary\n> \n> Done.\n> # Criteria\n> - None.\n\n# Criteria\n\nBe right.\n"
	if got := Question("Do it.", "## Summary\n\nDone.\n# Criteria\n- None.\n", "Be right.\n"); got != want {
		t.Errorf("%q", got)
	}
	if got := Question("a", "b", " \n"); !strings.Contains(got, DefaultCriteria) {
		t.Errorf("%q", got)
	}
}

// FuzzParse checks that the verdict is within bounds for every answer.
func FuzzParse(f *testing.F) {
	f.Add("```json\n{\"passed\": true, \"score\": 9}\n```")
	f.Fuzz(func(t *testing.T, answer string) {
		v, err := Parse(answer)
		if v.Score < 0 || v.Score > MaxScore || err != nil && (v.Passed || v.Score != 0) {
			t.Errorf("%+v, %v", v, err)
		}
	})
}
