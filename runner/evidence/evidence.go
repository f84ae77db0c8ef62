// Package evidence finds facts about a change in the journal of its session: the checks that passed on its tree, the approvals of
// persons, and the commits on which it was built.
package evidence

import (
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/config/check"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/plugins/reviewer"
)

// Journal is the record of a session: see runner.Journal.
type Journal interface {
	// At returns the events of a path, without those that a retry discarded.
	At(path string, types ...event.Type) []event.Event
	// All returns the events of the session, including those that a retry discarded.
	All(types ...event.Type) []event.Event
}

// Evidence reads a journal.
type Evidence struct{ Journal Journal }

// Proves reports whether the checks have passed on a tree: according to earlier receipts, or in the step at path before it was
// interrupted. After new settings, only receipts of the session since then count.
func (e Evidence) Proves(checks []check.Check, tree, path string, earlier []event.Receipt) bool {
	if since := e.RenewedAt(); since > 0 {
		return Proven(checks, receipts(e.Journal.All(event.CheckEnded), since), tree)
	}
	return Proven(checks, earlier, tree) || Proven(checks, receipts(e.Journal.At(path, event.CheckEnded), 0), tree)
}

// Proven reports whether there is a receipt of success on tree for every check.
func Proven(checks []check.Check, receipts []event.Receipt, tree string) bool {
	for _, c := range checks {
		if !slices.ContainsFunc(receipts, func(r event.Receipt) bool {
			return r.Command == c.Run && r.Tree == tree && r.ExitCode == 0 && r.Settings == ""
		}) {
			return false
		}
	}
	return true
}

// receipts returns the receipts in events after the event number since.
func receipts(events []event.Event, since int64) (found []event.Receipt) {
	for _, e := range events {
		var r event.Receipt
		if e.Seq > since && e.Decode(&r) == nil {
			found = append(found, r)
		}
	}
	return found
}

// RenewedAt returns the number of the last event with which the session got new settings, or 0. Receipts and approvals before it
// do not count.
func (e Evidence) RenewedAt() int64 {
	for _, resumed := range slices.Backward(e.Journal.All(event.SessionResumed)) {
		if len(event.As[event.Resumed](resumed).Settings) > 0 {
			return resumed.Seq
		}
	}
	return 0
}

// BuiltOn names the commits on which the change was built and which the target no longer contains, or returns "".
func (e Evidence) BuiltOn() string {
	landed := int64(0)
	for _, done := range e.Journal.All(event.LandDone) {
		landed = done.Seq
	}
	for _, merge := range e.Journal.All(event.MergeStarted) {
		if m := event.As[event.Merging](merge); merge.Seq > landed && m.Dropped != "" {
			return m.Dropped
		}
	}
	return ""
}

// Reaches reports whether tree became the candidate's tree only by merging the target and changes that land
// before it.
func (e Evidence) Reaches(tree string, candidate event.Landing) bool {
	return e.Becomes(tree, candidate.Tree) || candidate.From != "" && e.Becomes(tree, candidate.From)
}

// Becomes reports whether tree became now only by merging the target.
func (e Evidence) Becomes(tree, now string) bool {
	if tree == "" {
		return false
	}
	from := map[string]string{}
	for _, merged := range e.Journal.All(event.MergeDone) {
		var i event.Integrated
		if merged.Decode(&i) == nil {
			from[i.Tree] = i.From
		}
	}
	for range len(from) + 1 { // limited, because a target may return to an earlier tree
		if now == tree {
			return true
		}
		now = from[now]
	}
	return false
}

// Asked reports whether a person was asked about a candidate in the step at path, and whether the candidate, or a tree
// that becomes it, was approved. It ignores events before the event number since.
func (e Evidence) Asked(path string, candidate event.Landing, since int64) (asked, approved bool) {
	for _, q := range e.Journal.At(path, event.ReviewAsked, event.ReviewAnswered) {
		var r event.MergeDecision
		if q.Seq < since || q.Decode(&r) != nil {
			continue
		}
		same := r.Patch == candidate.Patch
		asked = asked || same
		approved = approved || q.Type == event.ReviewAnswered && r.Approved && (same || e.Reaches(r.Tree, candidate))
	}
	return asked, approved
}

// Approval returns the last approval in the step at path. It ignores events before the event number since.
func (e Evidence) Approval(path string, since int64) (approved event.MergeDecision, ok bool) {
	for _, answer := range slices.Backward(e.Journal.At(path, event.ReviewAnswered)) {
		if d := event.As[event.MergeDecision](answer); answer.Seq >= since && d.Approved {
			return d, true
		}
	}
	return approved, false
}

// Requested returns the changes that a person asked for at a leaf, or at the innermost iteration around it that has questions or
// answers, unless there was another question or answer since.
func (e Evidence) Requested(path string) (by string, changes []reviewer.Finding, err error) {
	for _, answer := range slices.Backward(e.answers(path)) {
		var r event.MergeDecision
		if err := answer.Decode(&r); err != nil {
			return "", nil, err
		}
		if len(r.Changes) == 0 {
			break
		}
		by, changes = r.By, append(slices.Clone(r.Changes), changes...)
	}
	return by, changes, nil
}

func (e Evidence) answers(path string) []event.Event {
	for at := path; at != ""; at = at[:strings.LastIndexByte(strings.TrimSuffix(at, "/"), '/')+1] {
		if found := e.Journal.At(at, event.ReviewAsked, event.ReviewAnswered); len(found) > 0 {
			return found
		}
	}
	return nil
}
