// Package findings tracks the open error findings of a session: findings of the last
// review of each step that no person has accepted.
//
// A finding stays open until a later review of the same step completes without it, or
// a person accepts it. Nothing else closes it: neither an arbiter that ends the loop,
// nor a skipped step, nor an interrupted review.
package findings

import (
	"fmt"
	"slices"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/plugins/reviewer"
)

// Log collects the findings in a session's events. The zero value is an empty log.
type Log struct {
	reviews map[string]bool // paths of the started review steps
	open    []event.Finding
	read    int // number of events
}

// Open returns the findings that are open after the events read so far.
func (l *Log) Open() []event.Finding { return slices.Clone(l.open) }

// Read reads the new events. events must begin with all events that were read before.
// It stops at the first error.
func (l *Log) Read(events []event.Event) error {
	for l.read < len(events) {
		if err := l.Take(events[l.read]); err != nil {
			return err
		}
	}
	return nil
}

// Take reads the next event.
func (l *Log) Take(e event.Event) error {
	err := l.apply(e)
	if err == nil {
		l.read++
	}
	return err
}

func (l *Log) apply(e event.Event) error {
	switch e.Type {
	case event.StepStarted:
		var start event.StepStart
		err := e.Decode(&start)
		if start.Kind == "review" {
			if l.reviews == nil {
				l.reviews = map[string]bool{}
			}
			l.reviews[e.Path] = true
		}
		return err
	case event.StepCompleted:
		if !l.reviews[e.Path] {
			return nil
		}
		var r event.Result
		err := e.Decode(&r)
		l.reviewed(StepOf(e.Path), r)
		return err
	case event.ReviewAnswered:
		var answer event.MergeDecision
		err := e.Decode(&answer)
		if answer.Approved {
			l.drop(func(f event.Finding) bool { return slices.Contains(answer.Accepted, f) })
		}
		return err
	}
	return nil
}

// reviewed replaces the earlier findings of a step. An interrupted review closes
// nothing, because a reviewer that passed the change may have seen another worktree
// or only a part of it.
func (l *Log) reviewed(step string, r event.Result) {
	ended := r.OK || r.ErrorType == event.ErrorFindings
	if ended {
		l.drop(func(f event.Finding) bool { return f.Step == step })
	}
	for _, o := range r.Opinions {
		found := errorsOf(step, o)
		if len(found) > 0 && !ended {
			l.drop(func(f event.Finding) bool { return f.Step == step && f.Reviewer == o.Reviewer })
		}
		l.open = append(l.open, found...)
	}
}

func (l *Log) drop(closed func(event.Finding) bool) {
	l.open = slices.DeleteFunc(slices.Clone(l.open), closed)
}

// errorsOf returns the error findings of an opinion. A reviewer that fails a change
// without any finding counts as one error finding.
func errorsOf(step string, o event.Opinion) []event.Finding {
	var all []event.Finding
	for _, f := range o.Findings {
		if f.Severity == reviewer.Error {
			all = append(all, event.Finding{Step: step, Reviewer: o.Reviewer, Finding: f})
		}
	}
	if o.Verdict == reviewer.Fail && len(o.Findings) == 0 {
		unnamed := reviewer.Finding{Severity: reviewer.Error, Message: o.Reviewer + " says fail and names no finding"}
		all = append(all, event.Finding{Step: step, Reviewer: o.Reviewer, Finding: unnamed})
	}
	return all
}

var counters = lazyregexp.New(`#\d+|\[\d+\]|^revise@\d+/`)

// StepOf returns the path of a step without revisions, iterations and attempts.
func StepOf(path string) string { return counters.ReplaceAllString(path, "") }

// Summary describes the open findings in one line: "2 open error findings: a.txt:1
// leaks the token, and 1 more". It is empty when there are none.
func Summary(open []event.Finding) string {
	switch len(open) {
	case 0:
		return ""
	case 1:
		return "1 open error finding: " + Line(open[0])
	}
	return fmt.Sprintf("%d open error findings: %s, and %d more", len(open), Line(open[0]), len(open)-1)
}

// maxMessage limits a finding's message in Line, in characters.
const maxMessage = 200

// Line formats a finding in one line: "a.txt:1 leaks the token".
func Line(f event.Finding) string {
	text := oneline.Clip(f.Message, maxMessage)
	if f.File == "" {
		return text
	}
	return f.Where() + " " + text
}
