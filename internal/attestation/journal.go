package attestation

import (
	"slices"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/event/findings"
)

// A Record is the record of a session, from which statements are made.
type Record struct {
	Task, Session string
	Events        []event.Event
	Setup         []string                  // commands that prepare a worktree
	Required      func(command string) bool // whether a command must pass on the tree that lands
	Hide          func(string) string       // removes secrets from a text
}

// Statements returns a statement for each commit that has landed, in order.
func (r Record) Statements() []Statement {
	var all []Statement
	for i, e := range r.Events {
		if e.Type != event.LandDone {
			continue
		}
		if l := event.As[event.Landing](e); l.New != "" && l.New != l.Old {
			all = append(all, r.statement(l, r.Events[:i]))
		}
	}
	return all
}

// Proposed returns the statement about a change that has not landed. Its commit is the tip of the change.
func (r Record) Proposed(candidate event.Landing) Statement {
	candidate.New = candidate.Tip
	return r.statement(candidate, r.Events)
}

// statement returns the statement for a landing, from the events before it.
func (r Record) statement(l event.Landing, before []event.Event) Statement {
	s := Statement{
		Type: StatementType, PredicateType: PredicateType,
		Subject: []Subject{{Name: "commit", Digest: Digest{Commit: l.New}}, {Name: "tree", Digest: Digest{Tree: l.Tree}}},
		Predicate: Landing{
			Task: r.Hide(r.Task), Session: r.Session, Target: r.Hide(l.Target), Old: l.Old, Strategy: l.Strategy, Head: l.Head,
			Setup: []string{}, Checks: []Check{}, Reviews: []Review{}, // not nil, for JSON
		},
	}
	for _, command := range r.Setup {
		s.Predicate.Setup = append(s.Predicate.Setup, r.Hide(command))
	}
	for _, task := range l.With {
		s.Predicate.With = append(s.Predicate.With, r.Hide(task))
	}
	p := &s.Predicate
	for _, e := range before {
		switch e.Type {
		case event.CheckEnded:
			p.addCheck(r.check(e.Path, event.As[event.Receipt](e)), l.Tree)
		case event.StepCompleted:
			for _, receipt := range event.As[event.Result](e).Receipts {
				p.addCheck(r.check(e.Path, receipt), l.Tree)
			}
		case event.ReviewGiven:
			p.addReview(r.review(e))
		case event.ReviewAnswered:
			if d := event.As[event.MergeDecision](e); d.Approved {
				p.Approval = Approval{Required: true, By: r.Hide(d.By), At: e.Time.UTC(), Tree: d.Tree}
			}
		case event.SessionResumed:
			if len(event.As[event.Resumed](e).Settings) > 0 { // earlier receipts and approvals do not count
				p.Checks, p.Approval = []Check{}, Approval{}
			}
		case event.LandDone:
			p.Approval = Approval{} // of an earlier landing
		}
	}
	return s
}

func (r Record) check(path string, c event.Receipt) Check {
	check := Check{
		Command: r.Hide(c.Command), Required: c.Settings == "" && r.Required(c.Command), Step: r.Hide(path), ExitCode: c.ExitCode, Duration: c.Duration,
		Log: c.Sum, Tree: c.Tree, Settings: c.Settings, Reused: c.Reused, FailedBeside: r.Hide(c.FailedBeside), NotIsolated: c.NotIsolated,
	}
	if c.Read != "" {
		check.ReadOutside = &ReadOutside{Text: r.Hide(c.Read), SHA256: c.Reads}
	}
	return check
}

func (r Record) review(e event.Event) Review {
	o := event.As[event.Opinion](e)
	return Review{Reviewer: r.Hide(o.Reviewer), Step: r.Hide(findings.StepOf(e.Path)), Verdict: string(o.Verdict), Tree: o.Tree}
}

// addCheck adds a run of a command, of which only the one that counts stays: the last on the landed tree, otherwise the last
// one that passed, because a stack of changes is checked on its own tree.
func (l *Landing) addCheck(c Check, tree string) {
	rank := func(c Check) int {
		switch {
		case c.Tree == tree:
			return 2
		case c.ExitCode == 0:
			return 1
		}
		return 0
	}
	i := slices.IndexFunc(l.Checks, func(old Check) bool { return old.Command == c.Command && old.Settings == c.Settings })
	switch {
	case i < 0:
		l.Checks = append(l.Checks, c)
	case rank(c) >= rank(l.Checks[i]):
		if c.Log == l.Checks[i].Log && c.Tree == l.Checks[i].Tree && c.Duration == l.Checks[i].Duration {
			return // the result of a step repeats the receipts of its checks
		}
		l.Checks[i] = c
	}
}

// addReview adds an opinion, which replaces an earlier one of the reviewer at the same step.
func (l *Landing) addReview(r Review) {
	i := slices.IndexFunc(l.Reviews, func(old Review) bool { return old.Reviewer == r.Reviewer && old.Step == r.Step })
	if i < 0 {
		l.Reviews = append(l.Reviews, r)
		return
	}
	l.Reviews[i] = r
}
