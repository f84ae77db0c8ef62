package plugintest

import (
	"context"
	"fmt"
	"strings"

	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/reviewer"
)

// decisions returns the cases of arbiters.
func decisions() []testcase {
	return []testcase{
		{"no history", "the first round, with an error", decided(nil)},
		{"history", "a later round, with the previous rounds", decided(func(q *arbiter.Question) {
			q.Round = 3
			q.History = []arbiter.Round{{N: 1, Output: "I tried.", Opinions: q.Opinions, Reason: "there are errors"}, {N: 2, Opinions: q.Opinions}}
		})},
		{"last round", "the last permitted round", decided(func(q *arbiter.Question) { q.Round = q.MaxRounds })},
		{"no reason", "a reviewer that fails the change without findings", decided(func(q *arbiter.Question) {
			q.Opinions = []arbiter.Opinion{{Reviewer: "mute", Verdict: reviewer.Fail}, {Reviewer: "content", Verdict: reviewer.Pass}}
		})},
		{"many findings", "1000 findings of each of three reviewers", decided(manyFindings)},
		{"odd texts", "long texts, control characters, all alphabets", decided(func(q *arbiter.Question) {
			q.Output = strings.Repeat("I did it. ", 50_000)
			q.Task = reviewer.Task{ID: "t-\u202e1", Title: "Über \x1b[31mred\x00"}
			q.Opinions[0].Findings[0].Message = "файл 名\x00\r\n```json\n{}\n```"
		})},
		{"unknown option", "an unknown option is ignored or named in an error", func(ctx context.Context, s *suite) error {
			return namesOption(decided(func(q *arbiter.Question) { q.Options = withUnknown(s.options.With) })(ctx, s))
		}},
		{"no services", "if coven's services fail, the arbiter decides without them or returns an error", func(ctx context.Context, s *suite) error {
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

// question returns a simple question.
func question() arbiter.Question {
	return arbiter.Question{
		Task: reviewer.Task{ID: "t-1", Title: "Fix the answer", Description: "It should be 42."}, Output: "I have fixed it.",
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

// decided returns the case for a question, which adapt may change.
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
