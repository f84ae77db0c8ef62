package attestation

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/event"
)

// oid returns an object ID that consists of one hexadecimal digit, and sum a sha256.
func oid(digit string) string { return strings.Repeat(digit, 40) }

func sum(digit string) string { return strings.Repeat(digit, 64) }

// journal is a record of events.
type journal struct {
	t      *testing.T
	events []event.Event
}

func (j *journal) add(kind event.Type, path string, data any) {
	j.t.Helper()
	text, err := json.Marshal(data)
	if err != nil {
		j.t.Fatal(err)
	}
	n := int64(len(j.events) + 1)
	j.events = append(j.events, event.Event{V: 1, Seq: n, Time: time.Unix(n, 0), Type: kind, Path: path, Data: text})
}

func (j *journal) review(path, reviewer, verdict, tree string) {
	j.t.Helper()
	j.add(event.ReviewGiven, path, map[string]string{"reviewer": reviewer, "verdict": verdict, "tree": tree})
}

func (j *journal) record() Record {
	return Record{
		Task: "t-1", Session: "2026-01-01-one", Events: j.events, Setup: []string{"make deps s3cret"}, Required: func(command string) bool { return strings.HasPrefix(command, "check") },
		Hide: func(text string) string { return strings.ReplaceAll(text, "s3cret", "***") },
	}
}

func (j *journal) only() Statement {
	j.t.Helper()
	all := j.record().Statements()
	if len(all) != 1 {
		j.t.Fatalf("%d statements", len(all))
	}
	return all[0]
}

// full returns a journal with everything that a statement can have.
func full(t *testing.T) *journal {
	j := &journal{t: t}
	j.add(event.CheckEnded, "test#1", event.Receipt{Command: "check a", ExitCode: 1, Tree: oid("1"), LogPart: event.LogPart{Sum: sum("1")}})
	j.review("quality[1]/review#1", "ada", "fail", oid("1"))
	j.review("quality[2]/review#1", "ada", "pass", oid("2"))
	j.add(event.CheckEnded, "land#1", event.Receipt{Command: "check a", Tree: oid("3"), Duration: 5, LogPart: event.LogPart{Sum: sum("2")}, Read: "1 in s3cret", Reads: sum("3"), FailedBeside: "t-9", NotIsolated: true})
	j.add(event.StepCompleted, "make#1", event.Result{Receipts: []event.Receipt{{Command: "make s3cret", Tree: oid("1"), LogPart: event.LogPart{Sum: sum("4")}, Settings: sum("5"), Reused: "other"}}})
	j.add(event.ReviewAnswered, "land#1", event.MergeDecision{Tree: oid("2"), By: "ada"})
	j.add(event.ReviewAnswered, "land#1", event.MergeDecision{Tree: oid("2"), By: "eve", Approved: true})
	j.add(event.LandIntended, "land#1", event.Landing{New: oid("e")})
	j.add(event.LandDone, "land#1", event.Landing{Target: "refs/heads/main", Old: oid("a"), New: oid("b"), Tree: oid("3"), Strategy: "squash", Head: oid("c"), With: []string{"t-2"}})
	return j
}

func TestStatement(t *testing.T) {
	j := full(t)
	s := j.only()
	text, err := s.Text()
	if err != nil {
		t.Fatal(err)
	}
	back, err := Parse(text)
	if err != nil || len(Differences(s, back)) > 0 || back.Commit() != oid("b") || back.Tree() != oid("3") {
		t.Errorf("%v, %v\n%s", err, back, text)
	}
	l := s.Predicate
	if len(l.Checks) != 2 || l.Checks[0].Step != "land#1" || l.Checks[0].ExitCode != 0 || !l.Checks[0].Required || l.Checks[1].Required {
		t.Errorf("checks: %+v", l.Checks)
	}
	if len(l.Reviews) != 1 || l.Reviews[0] != (Review{"ada", "quality/review", "pass", oid("2")}) {
		t.Errorf("reviews: %+v", l.Reviews)
	}
	if want := (Approval{Required: true, By: "eve", At: time.Unix(7, 0).UTC(), Tree: oid("2")}); l.Approval != want {
		t.Errorf("approval: %+v", l.Approval)
	}
	if strings.Contains(text, "s3cret") || !strings.Contains(text, `"make ***"`) {
		t.Errorf("a secret: %s", text)
	}
	j.add(event.CheckEnded, "later#1", event.Receipt{Command: "check b", Tree: oid("3"), LogPart: event.LogPart{Sum: sum("1")}})
	if again := j.only(); len(Differences(s, again)) > 0 {
		t.Errorf("later events change it: %v", Differences(s, again))
	}
}

// Each landing of a session has its own statement, with its own approval.
func TestLandings(t *testing.T) {
	j := full(t)
	j.add(event.LandDone, "land#2", event.Landing{Target: "refs/heads/main", Old: oid("b"), New: oid("d"), Tree: oid("4"), Strategy: "merge"})
	j.add(event.LandDone, "land#3", event.Landing{Target: "refs/heads/main", Old: oid("d"), New: oid("d"), Tree: oid("4"), Strategy: "merge"})
	all := j.record().Statements()
	if len(all) != 2 || all[1].Commit() != oid("d") || all[1].Predicate.Approval.Required || !all[0].Predicate.Approval.Required {
		t.Errorf("%+v", all)
	}
}

// The check of a stack of changes counts, although a larger stack failed after it. New settings discard earlier checks and
// approvals.
func TestChecksThatCount(t *testing.T) {
	j := &journal{t: t}
	j.add(event.CheckEnded, "land#1", event.Receipt{Command: "check a", Tree: oid("5"), LogPart: event.LogPart{Sum: sum("1")}})
	j.add(event.CheckEnded, "land#1", event.Receipt{Command: "check a", Tree: oid("6"), ExitCode: 1, LogPart: event.LogPart{Sum: sum("2")}})
	landing := event.Landing{Target: "refs/heads/main", Old: oid("a"), New: oid("b"), Tree: oid("3"), Strategy: "squash", Head: oid("c")}
	j.add(event.LandDone, "land#1", landing)
	if c := j.only().Predicate.Checks; len(c) != 1 || c[0].Tree != oid("5") {
		t.Errorf("%+v", c)
	}
	j = full(t)
	j.events = j.events[:len(j.events)-1]
	j.add(event.SessionResumed, "", event.Resumed{Settings: []string{"checks"}})
	j.add(event.LandDone, "land#1", landing)
	if l := j.only().Predicate; len(l.Checks) != 0 || l.Approval.Required {
		t.Errorf("%+v", l)
	}
}

// A change of each field is refused, or differs from the journal.
func TestTampered(t *testing.T) {
	s := full(t).only()
	text, err := s.Text()
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	try := func(what string, tampered any) {
		tried++
		changed := encoded(tampered)
		if _, err := Parse(changed); err == nil {
			t.Errorf("%s: accepted", what)
		}
		var form Statement
		if json.Unmarshal([]byte(changed), &form) != nil {
			return
		}
		written, err := form.Text() // as coven writes it
		if err != nil || written == text {
			return
		}
		got, err := Parse(written)
		if err == nil && len(Differences(s, got)) == 0 && got.Commit() == s.Commit() && got.Tree() == s.Tree() {
			t.Errorf("%s: accepted as coven writes it", what)
		}
	}
	var root any
	if err := json.Unmarshal([]byte(text), &root); err != nil {
		t.Fatal(err)
	}
	var walk func(at string, node any, set func(any))
	walk = func(at string, node any, set func(any)) {
		for _, other := range []any{"x", oid("7"), sum("7"), 7, nil, true, false, []any{}, map[string]any{}} {
			if encoded(other) == encoded(node) {
				continue
			}
			set(other)
			try(at+" = "+encoded(other), root)
		}
		set(node)
		switch node := node.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(node)) {
				value := node[name]
				delete(node, name)
				try(at+" without "+name, root)
				node[name] = value
				walk(at+"."+name, value, func(v any) { node[name] = v })
			}
			node["more"] = 1
			try(at+" with more", root)
			delete(node, "more")
		case []any:
			for i, value := range node {
				walk(at+"[]", value, func(v any) { node[i] = v })
			}
			set(append(slices.Clone(node), node[0]))
			try(at+" twice", root)
			set(node)
		}
	}
	walk("", root, func(v any) { root = v })
	if tried < 300 {
		t.Errorf("only %d changes", tried)
	}
	for _, cut := range []int{0, 1, len(text) / 2, len(text) - 2} {
		if _, err := Parse(text[:cut]); err == nil {
			t.Errorf("accepted %d bytes", cut)
		}
	}
	for _, more := range []string{text + "{}", strings.Replace(text, `"task"`, `"task": "x", "task"`, 1), strings.Replace(text, `"task"`, `"Task": "x", "task"`, 1), strings.Replace(text, `"exitCode": 0,`, "", 1)} {
		if _, err := Parse(more); err == nil {
			t.Errorf("accepted: %s", more)
		}
	}
}

func encoded(value any) string {
	text, _ := json.Marshal(value) // of constants
	return string(text)
}

// A statement with a wrong value is refused, with a reason of its own, also if it is written as coven writes it.
func TestForm(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(s *Statement)
	}{
		{`has the type "x" instead of`, func(s *Statement) { s.Type = "x" }},
		{`has the predicate type "x"; this coven knows`, func(s *Statement) { s.PredicateType = "x" }},
		{"must be about a commit and its tree, in this order", func(s *Statement) { slices.Reverse(s.Subject) }},
		{"must be about a commit and its tree, in this order", func(s *Statement) { s.Subject = append(s.Subject, s.Subject[0]) }},
		{"must be about a commit and its tree, in this order", func(s *Statement) { s.Subject[0].Name = "x" }},
		{"must be about a commit and its tree, in this order", func(s *Statement) { s.Subject[1].Name = "x" }},
		{"must be about a commit and its tree, in this order", func(s *Statement) { s.Subject[0].Digest.Tree = oid("7") }},
		{"must be about a commit and its tree, in this order", func(s *Statement) { s.Subject[1].Digest.Commit = oid("7") }},
		{`the subject gitCommit "x"`, func(s *Statement) { s.Subject[0].Digest.Commit = "x" }},
		{`the subject gitTree "x"`, func(s *Statement) { s.Subject[1].Digest.Tree = "x" }},
		{"an approval that was not required", func(s *Statement) { s.Predicate.Approval.Required = false }},
		{"an approval without a person or a time", func(s *Statement) { s.Predicate.Approval.By = "" }},
		{"an approval without a person or a time", func(s *Statement) { s.Predicate.Approval.At = time.Time{} }},
		{"has no task", func(s *Statement) { s.Predicate.Task = "" }},
		{"has no session", func(s *Statement) { s.Predicate.Session = "" }},
		{"has no target", func(s *Statement) { s.Predicate.Target = "" }},
		{"has no strategy", func(s *Statement) { s.Predicate.Strategy = "" }},
		{"has no command of a check", func(s *Statement) { s.Predicate.Checks[1].Command = "" }},
		{"has no command of a check", func(s *Statement) { s.Predicate.Checks[0].Command = "" }},
		{"has no verdict", func(s *Statement) {
			s.Predicate.Reviews = append([]Review{{Reviewer: "x", Tree: oid("1")}}, s.Predicate.Reviews...)
		}},
		{"has no reviewer", func(s *Statement) { s.Predicate.Reviews[0].Reviewer = "" }},
		{"has no verdict", func(s *Statement) { s.Predicate.Reviews[0].Verdict = "" }},
		{`the oldTip "x", which is no object ID`, func(s *Statement) { s.Predicate.Old = "x" }},
		{`the newTip "x"`, func(s *Statement) { s.Predicate.Head = "x" }},
		{`the tree of check check a "x"`, func(s *Statement) { s.Predicate.Checks[0].Tree = "x" }},
		{`the tree of the review by ada "x"`, func(s *Statement) { s.Predicate.Reviews[0].Tree = "x" }},
		{"a hash of check make *** that is no sha256", func(s *Statement) { s.Predicate.Checks[1].Log = sum("7")[1:] }},
		{"a hash of check check a that is no sha256", func(s *Statement) { s.Predicate.Checks[0].ReadOutside.SHA256 = "x" }},
		{"fields are missing, or not as coven writes them", func(s *Statement) { s.Predicate.Checks[0].Command = "x\xff" }},
	} {
		s := full(t).only()
		c.change(&s)
		text, err := s.Text()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.want, err)
		}
	}
	text, _ := full(t).only().Text()
	for want, pair := range map[string][2]string{
		`unknown field "more"`:      {`"task"`, `"more": 1, "task"`},
		"fields are missing":        {`"exitCode": 0,`, ""},
		"or not as coven":           {`"exitCode": 0`, `"exitCode": null`},
		`"exitCode" occurs twice`:   {`"exitCode": 0`, `"exitCode": 0, "exitCode": 0`},
		"not as coven writes them":  {`"task": "t-1"`, `"task": "t\u002d1"`},
		"cannot unmarshal string":   {`"exitCode": 0`, `"exitCode": "0"`},
		"is not valid: not a JSON ": {`"exitCode": 0`, `"exitCode": 00`},
	} {
		changed := strings.Replace(text, pair[0], pair[1], 1)
		if _, err := Parse(changed); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// Differences names each difference between two statements, including those in lists and in fields that only one of them has.
func TestDifferences(t *testing.T) {
	for want, change := range map[string]func(l *Landing){
		"":                             func(*Landing) {},
		"task":                         func(l *Landing) { l.Task = "x" },
		"newTip":                       func(l *Landing) { l.Head = "" },
		"approval.by approval.tree":    func(l *Landing) { l.Approval.By, l.Approval.Tree = "x", "" },
		"checks":                       func(l *Landing) { l.Checks = append(l.Checks, l.Checks[0]) },
		"reviews":                      func(l *Landing) { l.Reviews = l.Reviews[:0] },
		"checks[0].exitCode":           func(l *Landing) { l.Checks[0].ExitCode = 1 },
		"checks[0].reusedFrom":         func(l *Landing) { l.Checks[0].Reused = "x" },
		"checks[1].settings":           func(l *Landing) { l.Checks[1].Settings = "" },
		"checks[0].readOutside":        func(l *Landing) { l.Checks[0].ReadOutside = nil },
		"checks[0].readOutside.sha256": func(l *Landing) { l.Checks[0].ReadOutside.SHA256 = "x" },
		"checkedWith[0] setup":         func(l *Landing) { l.With, l.Setup = []string{"x"}, nil },
	} {
		one, two := full(t).only(), full(t).only()
		change(&two.Predicate)
		for _, got := range [][]string{Differences(one, two), Differences(two, one)} {
			if strings.Join(got, " ") != want {
				t.Errorf("%q instead of %q", got, want)
			}
		}
	}
}

// The last run of a command on the landed tree counts, for each settings; a resumed session keeps its checks and approvals; a person who
// asks for changes approves nothing; and each step has its reviews.
func TestRunsThatCount(t *testing.T) {
	j := &journal{t: t}
	check := func(path string, r event.Receipt, digit string) {
		r.Command, r.Tree, r.LogPart = "check a", oid("3"), event.LogPart{Sum: sum(digit)}
		j.add(event.CheckEnded, path, r)
	}
	check("test#1", event.Receipt{ExitCode: 1}, "1")
	check("land#1", event.Receipt{}, "2")
	check("make#1", event.Receipt{Settings: sum("5")}, "3")
	j.review("style/review#1", "ada", "fail", oid("3"))
	j.review("law/review#1", "ada", "pass", oid("3"))
	j.add(event.ReviewAnswered, "land#1", event.MergeDecision{Tree: oid("3"), By: "ada"})
	j.add(event.SessionResumed, "", event.Resumed{})
	j.add(event.LandDone, "land#1", event.Landing{Target: "refs/heads/main", Old: oid("a"), New: oid("b"), Tree: oid("3"), Strategy: "squash"})
	p := j.only().Predicate
	if len(p.Checks) != 2 || p.Checks[0].Log != sum("2") || !p.Checks[0].Required || p.Checks[1].Log != sum("3") || p.Checks[1].Required {
		t.Errorf("checks: %+v", p.Checks)
	}
	if len(p.Reviews) != 2 || p.Reviews[0].Verdict != "fail" || p.Approval.Required {
		t.Errorf("reviews: %+v, approval: %+v", p.Reviews, p.Approval)
	}
}
