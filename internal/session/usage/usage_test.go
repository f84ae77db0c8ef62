package usage

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/event"
)

// line is one event: the second, the type, the path, and the data.
type line struct {
	at   int
	what event.Type
	path string
	data any
}

func story(t *testing.T, lines []line) []event.Event {
	t.Helper()
	var events []event.Event
	for i, l := range lines {
		raw, err := json.Marshal(l.data)
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, event.Event{
			Seq: int64(i + 1), Time: time.Unix(int64(1000+l.at), 0), Type: l.what, Path: l.path, Data: raw,
		})
	}
	return events
}

func used(usd float64, wall time.Duration) map[string]any {
	return map[string]any{"used": budget.Amount{USD: usd, Wall: wall}}
}

func TestLedger(t *testing.T) {
	events := story(t, []line{
		{0, event.SessionStarted, "", nil},
		{1, event.StepStarted, "a#1", nil},
		{5, event.StepCompleted, "a#1", used(1, 4*time.Second)},
		{5, event.StepStarted, "l[1]/b#1", nil},
		{6, event.AgentStarted, "l[1]/b#1", nil},
		{8, event.AgentUsage, "l[1]/b#1", event.Usage{Input: 1_000_000, Model: "sonnet", Turns: 1}},
		{9, event.AgentUsage, "l[1]/b#1", event.Usage{Input: 2_000_000, Model: "sonnet", Turns: 2}},
		// kill -9: the next process continues a hundred seconds later.
		{109, event.SessionResumed, "", event.Resumed{}},
		{110, event.AgentStarted, "l[1]/b#1", nil},
		{112, event.AgentUsage, "l[1]/b#1", event.Usage{Output: 1_000_000, Model: "other", Turns: 1, Cost: 0.5}},
		{113, event.SessionWaiting, "", event.Waiting{Reason: "budget"}},
	})
	l := New(budget.Prices{Models: []budget.Price{{Model: "sonnet", Input: 3, Output: 15}}})
	var charged []Charge
	l.Charged(func(c Charge) { charged = append(charged, c) })
	checkSum := func() {
		t.Helper()
		sum := 0.0
		for _, c := range charged {
			sum += c.USD
		}
		if want := l.Within("").USD; math.Abs(sum-want) > 1e-9 {
			t.Errorf("charged %v of %v: %+v", sum, want, charged)
		}
	}
	l.Read(events[:4])
	l.Read(events)
	l.Read(events) // reading the same events again changes nothing
	checkSum()
	if len(charged) != 4 || charged[2].USD != 3 || charged[2].Tokens.Input != 1_000_000 || charged[3].Agent != "build" || charged[3].Model != "other" {
		t.Errorf("charges: %+v", charged)
	}
	cut := budget.Amount{USD: 6.5, Tokens: 3_000_000, Turns: 3, Wall: 8 * time.Second}
	if got := l.Cut("l[1]/b#1"); got != cut {
		t.Errorf("cut off: %+v", got)
	}
	if got := l.Cut("a#1"); got != (budget.Amount{}) {
		t.Errorf("a leaf with a result: %+v", got)
	}
	for scope, want := range map[string]budget.Amount{
		"": cut.Add(budget.Amount{USD: 1, Wall: 4 * time.Second}), "a": {USD: 1, Wall: 4 * time.Second}, "l": cut, "l[1]/b": cut, "l[1]/bb": {}, "x": {},
	} {
		if got := l.Within(scope); got != want {
			t.Errorf("within %q: %+v", scope, got)
		}
	}
	// The result contains the whole usage of a leaf. A leaf that a person has run again counts too.
	more := append(events, story(t, []line{
		{200, event.SessionResumed, "", event.Resumed{}},
		{201, event.StepCompleted, "l[1]/b#1", used(7, 9*time.Second)},
		{300, event.SessionResumed, "", event.Resumed{Retry: "l[1]/b#1"}},
		{301, event.StepStarted, "l[1]/b#1", nil},
		{302, event.StepCompleted, "l[1]/b#1", used(2, time.Second)},
		{303, event.StepStarted, "c#1", nil},
		{304, event.AgentUsage, "c#1", event.Usage{Input: 1_000_000, Model: "sonnet"}},
		{400, event.SessionResumed, "", event.Resumed{Retry: "a#1", From: true}},
		{401, event.StepStarted, "a#1", nil}, // c will never have a result
	})...)
	for i := range more {
		more[i].Seq = int64(i + 1)
	}
	l.Read(more)
	checkSum()
	if got := l.Within("l"); got != (budget.Amount{USD: 9, Wall: 10 * time.Second}) {
		t.Errorf("run twice: %+v", got)
	}
	if got := l.Within("c"); got.USD != 3 || got.Wall != time.Second {
		t.Errorf("given up: %+v", got)
	}
}

// The time in which a leaf waited for a limit is not working time, even if coven was
// killed during or after the wait.
func TestLimit(t *testing.T) {
	l := New(budget.DefaultPrices())
	l.Read(story(t, []line{
		{0, event.StepStarted, "a#1", nil},
		{1, event.AgentStarted, "a#1", nil},
		{10, event.LimitMet, "a#1", event.Limit{}},
		{5000, event.LimitMet, "a#1", event.Limit{}}, // the limit lasted longer
		{9000, event.LimitOver, "a#1", nil},
		{9002, event.LimitMet, "a#1", event.Limit{}},
		{9900, event.SessionResumed, "", event.Resumed{}}, // killed while it waited
		{9900, event.LimitMet, "a#1", event.Limit{}},
		{19000, event.LimitOver, "a#1", nil},
		{19003, event.AgentStarted, "a#1", nil}, // killed while it worked
		{20000, event.SessionResumed, "", event.Resumed{}},
	}))
	if got := l.Cut("a#1").Wall; got != 15*time.Second {
		t.Errorf("at work for %s", got)
	}
}
