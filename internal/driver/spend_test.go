package driver_test

import (
	"bytes"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/fake/fakeapi"
	"github.com/coven-run/coven/plugins/provider"
)

// asked returns the number of turns requested from the model.
func (w *world) asked() int {
	n := 0
	for _, request := range w.api.Requests() {
		if request.Kind == fakeapi.KindTurn {
			n++
		}
	}
	return n
}

// The usage so far is exact at the end of each answer and after the result. The record of the run
// contains no partial messages.
func TestUsage(t *testing.T) {
	both(t, `
conversations:
- turns:
  - {chunks: [{text: one}, {text: two}], tools: [{name: Bash, input: {command: touch made}}], usage: {input: 100, output: 7}}
  - {text: second, usage: {input: 200, output: 8}}
`, func(t *testing.T, w *world) {
		var record bytes.Buffer
		w.job.Transcript = &record
		w.start()
		w.succeeded("second")
		got := emitted[event.Usage](w, event.AgentUsage)
		for i := range got {
			if !strings.HasPrefix(got[i].Model, "claude-sonnet-") {
				t.Errorf("used of model %q", got[i].Model)
			}
			got[i].Cost, got[i].Model = 0, "" // these depend on the CLI
		}
		want := []event.Usage{{Input: 100, Output: 7, Turns: 1}, {Input: 300, Output: 15, Turns: 2}, {Input: 300, Output: 15, Turns: 2}}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("used so far:\n%+v, want\n%+v", got, want)
		}
		if used := w.report.Result.Usage; used.InputTokens != 300 || used.OutputTokens != 15 {
			t.Errorf("used %+v", used)
		}
		if strings.Contains(record.String(), "stream_event") || !strings.Contains(record.String(), `"type":"result"`) {
			t.Errorf("the record:\n%s", record.String())
		}
		report, complete, err := driver.Recall(t.Context(), w.job.Provider, &record)
		if err != nil || !complete || report.Text != "second" {
			t.Errorf("recalled %+v, %v, %v", report, complete, err)
		}
	})
}

const fiveTurns = `
conversations:
- turns:
  - {tools: [{name: Bash, input: {command: "echo 1 >> made"}}], usage: {input: 100, output: 7}}
  - {tools: [{name: Bash, input: {command: "echo 2 >> made; sleep 600"}}], usage: {input: 200, output: 8}}
  - {tools: [{name: Bash, input: {command: "echo 3 >> made"}}]}
  - {tools: [{name: Bash, input: {command: "echo 4 >> made"}}]}
  - {text: done}
`

// An agent that has spent its budget is stopped before it requests another turn.
func TestBudget(t *testing.T) {
	both(t, fiveTurns, func(t *testing.T, w *world) {
		w.job.Spend = func(used event.Usage) error {
			if used.Input+used.Output > 200 {
				return errors.New("200 tokens are spent")
			}
			return nil
		}
		w.start()
		report := w.end()
		if report.Kind != driver.Budget || report.Error != "200 tokens are spent" || w.asked() != 2 {
			t.Errorf("%s: %s, after %d turns", report.Kind, report.Error, w.asked())
		}
		if used := report.Used; used.Input != 300 || used.Output != 15 || used.Turns != 2 {
			t.Errorf("used %+v", used)
		}
	})
}

// An agent that needs more than its turns is stopped before it requests another one. An agent that
// ends with its last turn is not stopped.
func TestMaxTurns(t *testing.T) {
	both(t, fiveTurns, func(t *testing.T, w *world) {
		w.job.MaxTurns = 2
		w.start()
		report := w.end()
		if report.Kind != driver.Turns || report.Error != "it is not done after 2 turns of the model, its max_turns" || w.asked() != 2 {
			t.Errorf("%s: %s, after %d turns", report.Kind, report.Error, w.asked())
		}
	})
	const two = `
conversations:
- turns: [{tools: [{name: Bash, input: {command: touch made}}]}, {text: done}]
`
	both(t, two, func(_ *testing.T, w *world) {
		w.job.MaxTurns = 2
		w.start()
		w.succeeded("done")
	})
}

// If the last answer of an agent exceeds the budget, its work is kept, but the next message
// of a person is refused.
func TestBudgetIsSpentWithTheLastAnswer(t *testing.T) {
	const answers = `
conversations:
- turns: [{text: first}, {tools: [{name: Bash, input: {command: touch made}}]}, {text: third}]
`
	spent := func(event.Usage) error { return errors.New("all is spent") }
	both(t, answers, func(_ *testing.T, w *world) {
		w.job.Spend = spent
		w.start()
		w.succeeded("first")
	})
	both(t, strings.Replace(answers, "{text: first}", "{text: first, hold: model}", 1), func(t *testing.T, w *world) {
		w.job.Spend = spent
		w.start()
		w.held("model")
		w.say("", "and then?")
		w.reached(2)
		w.api.Release("model")
		if report := w.end(); report.Kind != driver.Budget || w.asked() > 2 {
			t.Errorf("%s: %s, after %d turns", report.Kind, report.Error, w.asked())
		}
	})
}

// Refusals of the API are reported separately from the agent's text, and the observer decides
// whether the CLI may wait.
func TestLimit(t *testing.T) {
	const long = `
conversations:
- turns:
  - {text: "API Error: 429 rate limit, resets at 5pm", tools: [{name: Bash, input: {command: "echo 429 rate_limit"}}]}
  - {fail: [{status: 429, retry_after: 600s}], text: never}
`
	told := func(w *world, stop bool) *[]provider.Limit {
		limits := &[]provider.Limit{}
		w.job.Limit = func(l provider.Limit) bool {
			*limits = append(*limits, l)
			return stop
		}
		return limits
	}
	both(t, long, func(t *testing.T, w *world) {
		limits := told(w, true)
		w.start()
		report := w.end()
		if report.Kind != driver.Limit || !limitedOnce(*limits, 10*time.Minute) || report.Limit != (*limits)[0] || w.asked() != 2 {
			t.Errorf("%s: %s, limits %+v, after %d turns", report.Kind, report.Error, *limits, w.asked())
		}
		if report.Used.Turns != 1 || report.Used.Output != 5 {
			t.Errorf("used %+v", report.Used)
		}
	})
	both(t, strings.Replace(long, "600s", "1s", 1), func(t *testing.T, w *world) {
		limits := told(w, false)
		w.start()
		w.succeeded("never")
		if !limitedOnce(*limits, time.Second) {
			t.Errorf("limits %+v", *limits)
		}
	})
}

// limitedOnce reports whether there is one limit with the requested wait, or slightly longer as the
// CLI adds to it.
func limitedOnce(limits []provider.Limit, asked time.Duration) bool {
	if len(limits) != 1 {
		return false
	}
	wait := limits[0].After
	return wait >= asked && wait <= asked*3/2 && limits[0] == provider.Limit{After: wait, Again: wait, Reason: "rate_limit", Status: http.StatusTooManyRequests}
}
