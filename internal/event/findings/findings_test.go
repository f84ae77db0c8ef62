package findings_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/event/findings"
	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/reviewer"
)

// story builds the events of a session.
type story struct {
	t      *testing.T
	events []event.Event
}

func (s *story) add(kind event.Type, path string, data any) {
	text, err := json.Marshal(data)
	if err != nil {
		s.t.Fatal(err)
	}
	s.events = append(s.events, event.Event{Seq: int64(len(s.events) + 1), Type: kind, Path: path, Data: text})
}

// review adds a review at path. end is "ok", "findings" or the error type of an interrupted
// review; each opinion is "REVIEWER VERDICT SEVERITY:MESSAGE ...".
func (s *story) review(path, end string, opinions ...string) {
	s.add(event.StepStarted, path, event.StepStart{Kind: "review"})
	result := map[string]any{"ok": end == "ok"}
	if end != "ok" {
		result["error_type"] = end
	}
	var all []event.Opinion
	for _, text := range opinions {
		words := strings.Fields(text)
		o := event.Opinion{Opinion: arbiter.Opinion{Reviewer: words[0], Verdict: reviewer.Verdict(words[1])}}
		for _, w := range words[2:] {
			severity, message, _ := strings.Cut(w, ":")
			o.Findings = append(o.Findings, reviewer.Finding{Severity: reviewer.Severity(severity), File: "a.go", Line: 1, Message: message})
		}
		all = append(all, o)
	}
	result["opinions"] = all
	s.add(event.StepCompleted, path, result)
}

func (s *story) open() []event.Finding {
	var l findings.Log
	if err := l.Read(s.events); err != nil {
		s.t.Fatal(err)
	}
	return l.Open()
}

func TestOpen(t *testing.T) {
	accept := func(s *story) {
		s.add(event.ReviewAnswered, "land#1", event.MergeDecision{Patch: "p", Approved: true, By: "dana", Accepted: s.open()})
	}
	for name, test := range map[string]struct {
		tell func(s *story)
		want string
	}{
		"none": {func(s *story) { s.review("r#1", "ok", "a pass") }, ""},
		"only errors are open": {
			func(s *story) { s.review("r#1", "findings", "a fail warning:w error:e info:i") }, "e",
		},
		"the verdict does not matter": {func(s *story) { s.review("r#1", "ok", "a pass error:e") }, "e"},
		"fail names nothing":          {func(s *story) { s.review("r#1", "findings", "a fail") }, "a says fail and names no finding"},
		"fail with a warning only":    {func(s *story) { s.review("r#1", "findings", "a fail warning:w") }, ""},
		"fixed in the next round": {
			func(s *story) {
				s.review("q[1]/review#1", "findings", "a fail error:e")
				s.review("q[2]/review#1", "ok", "a pass")
			}, "",
		},
		"another in the next round": {
			func(s *story) {
				s.review("q[1]/review#1", "findings", "a fail error:e")
				s.review("q[2]/review#1", "findings", "a fail error:f")
			}, "f",
		},
		"fixed in the next attempt": {
			func(s *story) {
				s.review("o[2]/q[3]/review#1", "findings", "a fail error:e")
				s.review("o[1]/q#2[1]/review#1", "ok", "a pass")
			}, "",
		},
		"fixed in a revision": {
			func(s *story) {
				s.review("q[2]/review#1", "findings", "a fail error:e")
				s.review("revise@1/q[1]/review#1", "ok", "a pass")
			}, "",
		},
		"found in a revision": {
			func(s *story) {
				s.review("q[1]/review#1", "ok", "a pass")
				s.review("revise@1/q[1]/review#1", "findings", "a fail error:e")
				s.review("revise@12/q[1]/review#1", "findings", "a fail error:f")
			}, "f",
		},
		"another step closes nothing": {
			func(s *story) {
				s.review("r#1", "findings", "a fail error:e")
				s.review("last#1", "ok", "a pass")
			}, "e",
		},
		"each reviewer of a step counts": {
			func(s *story) { s.review("r#1", "findings", "a fail error:e", "b pass", "c fail error:f") }, "e f",
		},
		"a review that broke off closes nothing": {
			func(s *story) {
				s.review("r#1", "findings", "a fail error:e", "b fail error:f")
				s.review("r#2", "plugin", "a pass")
			}, "e f",
		},
		"a review that broke off replaces what its reviewer found": {
			func(s *story) {
				s.review("r#1", "findings", "a fail error:e", "b fail error:f")
				s.review("r#2", "timeout", "a fail error:g")
			}, "f g",
		},
		"accepted": {func(s *story) { s.review("r#1", "findings", "a fail error:e"); accept(s) }, ""},
		"found again after it was accepted": {
			func(s *story) {
				s.review("r#1", "findings", "a fail error:e")
				accept(s)
				s.review("r#1", "findings", "a fail error:e")
			}, "e",
		},
		"approved without the findings": {
			func(s *story) {
				s.review("r#1", "findings", "a fail error:e")
				s.add(event.ReviewAnswered, "land#1", event.MergeDecision{Patch: "p", Approved: true, By: "--auto-approve"})
			}, "e",
		},
		"an answer that is not an approval accepts nothing": {
			func(s *story) {
				s.review("r#1", "findings", "a fail error:e")
				s.add(event.ReviewAnswered, "land#1", event.MergeDecision{Patch: "p", Accepted: s.open()})
			}, "e",
		},
		"another reviewer's finding is not accepted": {
			func(s *story) {
				s.review("r#1", "findings", "a fail error:e")
				accept(s)
				s.review("r#2", "findings", "b fail error:e")
			}, "e",
		},
		"what other steps complete is not a review": {
			func(s *story) {
				s.add(event.StepStarted, "x#1", event.StepStart{Kind: "script"})
				s.add(event.StepCompleted, "x#1", map[string]any{"ok": true})
				s.review("r#1", "findings", "a fail error:e")
				s.add(event.StepCompleted, "x#1", map[string]any{"ok": true})
			}, "e",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &story{t: t}
			test.tell(s)
			var got []string
			for _, f := range s.open() {
				got = append(got, f.Message)
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("open: %q, not %q", got, test.want)
			}
		})
	}
}

func TestSummary(t *testing.T) {
	at := func(file string, line int, message string) event.Finding {
		return event.Finding{Step: "r", Reviewer: "a", Finding: reviewer.Finding{Severity: reviewer.Error, File: file, Line: line, Message: message}}
	}
	token := at("a.txt", 1, "leaks the token")
	for want, open := range map[string][]event.Finding{
		"": nil,
		"1 open error finding: a.txt:1 leaks the token":              {token},
		"1 open error finding: a.txt has no end":                     {at("a.txt", 0, "has\n  no end\n")},
		"1 open error finding: no tests":                             {at("", 0, "no tests")},
		"2 open error findings: a.txt:1 leaks the token, and 1 more": {token, token},
		"3 open error findings: no tests, and 2 more":                {at("", 0, "no tests"), token, token},
		"1 open error finding: " + strings.Repeat("ä", 199) + "…":    {at("", 0, strings.Repeat("ä", 300))},
	} {
		if got := findings.Summary(open); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}
