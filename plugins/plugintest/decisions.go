package plugintest

import (
	"context"
	"fmt"
	"strings"

	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/reviewer"
)

// decisions are the cases of arbiters.
func decisions() []testcase {
	return []testcase{
		{"no history", "the first round, with an error that was found", decided(nil)},
		{"history", "a later round, with those before it", decided(func(q *arbiter.Question) {
			q.Round = 3
			q.History = []arbiter.Round{{N: 1, Output: "I tried.", Opinions: q.Opinions, Reason: "there are errors"}, {N: 2, Opinions: q.Opinions}}
		})},
		{"last round", "the last round that there can be", decided(func(q *arbiter.Question) { q.Round = q.MaxRounds })},
		{"no reason", "a reviewer that says fail and nothing else", decided(func(q *arbiter.Question) {
			q.Opinions = []arbiter.Opinion{{Reviewer: "mute", Verdict: reviewer.Fail}, {Reviewer: "content", Verdict: reviewer.Pass}}
		})},
		{"many findings", "1000 findings of each of three reviewers", decided(manyFindings)},
		{"odd texts", "texts with control characters, of all alphabets, and long ones", decided(func(q *arbiter.Question) {
			q.Output = strings.Repeat("I did it. ", 50_000)
			q.Task = reviewer.Task{ID: "t-\u202e1", Title: "Über \x1b[31mred\x00"}
			q.Opinions[0].Findings[0].Message = "файл 名\x00\r\n```json\n{}\n```"
		})},
		{"unknown option", "an option that it does not know is ignored, or an error that names it", func(ctx context.Context, s *suite) error {
			return namesOption(decided(func(q *arbiter.Question) { q.Options = withUnknown(s.options.With) })(ctx, s))
		}},
		{"no services", "coven's services may refuse everything: it does without, or says so in an error", func(ctx context.Context, s *suite) error {
			if err := s.working(); err != nil {
				return err
			}
			host := s.services()
			host.Before = refuse
			return spoken(s.within(ctx, func(ctx context.Context) error {
				return s.decide(ctx, question(), host)
			}))
		}},
	}
}

// question is a simple one.
func question() arbiter.Question {
	return arbiter.Question{
		Task: reviewer.Task{ID: "t-1", Title: "Mend the answer", Description: "It should be 42."}, Output: "I have mended it.",
		Opinions: []arbiter.Opinion{{Reviewer: "lint", Verdict: reviewer.Fail, Findings: []reviewer.Finding{
			{Severity: reviewer.Error, File: "app.go", Line: 4, Message: "it is 41", Suggestion: "make it 42"},
		}}},
		Round: 1, MaxRounds: 5,
	}
}

func manyFindings(q *arbiter.Question) {
	q.Opinions = nil
	for i := range 3 {
		o := arbiter.Opinion{Reviewer: fmt.Sprint("reviewer-", i), Verdict: reviewer.Fail}
		for line := range reviewer.MaxFindings {
			o.Findings = append(o.Findings, reviewer.Finding{Severity: reviewer.Warning, File: "app.go", Line: line + 1, Message: "again"})
		}
		q.Opinions = append(q.Opinions, o)
	}
}

// decided is the case of a question.
func decided(adapt func(q *arbiter.Question)) func(context.Context, *suite) error {
	return func(ctx context.Context, s *suite) error {
		if err := s.working(); err != nil {
			return err
		}
		q := question()
		if adapt != nil {
			adapt(&q)
		}
		return s.within(ctx, func(ctx context.Context) error {
			return s.decide(ctx, q, s.services())
		})
	}
}
