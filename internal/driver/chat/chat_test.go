package chat_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/driver/chat"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/gate"
	"github.com/coven-run/coven/internal/tool"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/provider"
)

// turns is a model that plays turns and records the requests.
type turns struct {
	all      []func(ctx context.Context, emit func(model.Event) error) error
	requests []model.Request
}

func (m *turns) Turn(ctx context.Context, request model.Request, emit func(model.Event) error) error {
	m.requests = append(m.requests, request)
	if len(m.requests) > len(m.all) {
		return errors.New("no more turns")
	}
	return m.all[len(m.requests)-1](ctx, emit)
}

// says plays events, followed by an End if they contain none.
func says(events ...model.Event) func(context.Context, func(model.Event) error) error {
	return func(_ context.Context, emit func(model.Event) error) error {
		reason := model.Done
		for _, e := range events {
			if err := emit(e); err != nil {
				return err
			}
			switch e.(type) {
			case provider.ToolCall:
				reason = model.ForTools
			case model.End:
				return nil
			}
		}
		return emit(model.End{Reason: reason, Usage: provider.Usage{InputTokens: 10, OutputTokens: 1}})
	}
}

func calls(names ...string) func(context.Context, func(model.Event) error) error {
	var events []model.Event
	for i, name := range names {
		events = append(events, provider.ToolCall{ID: fmt.Sprint(i), Name: name, Input: json.RawMessage(`{}`)})
	}
	return says(events...)
}

// memory is a Store in memory.
type memory struct {
	messages map[string][]chat.Message
	broken   error
}

func (s *memory) Load(id string) ([]chat.Message, error) {
	return slices.Clone(s.messages[id]), s.broken
}

func (s *memory) Append(id string, m chat.Message) error {
	if s.broken == nil {
		s.messages[id] = append(s.messages[id], m)
	}
	return s.broken
}

// doorkeeper is a gate that refuses some tools.
type doorkeeper struct {
	mu      sync.Mutex
	refuses string
	asked   []string
	ended   int
}

func (g *doorkeeper) Decide(_ context.Context, c gate.Call) gate.Verdict {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = append(g.asked, c.Tool)
	return gate.Verdict{Allow: c.Tool != g.refuses, Message: "coven refused " + c.Tool}
}
func (g *doorkeeper) Decided(string) bool { return true }
func (g *doorkeeper) Refused(string) bool { return false }
func (g *doorkeeper) Ended(string)        { g.mu.Lock(); defer g.mu.Unlock(); g.ended++ }

// bench runs the loop with fakes.
type bench struct {
	model turns
	store memory
	gate  doorkeeper
	mu    sync.Mutex
	log   strings.Builder
	said  []string // event types
	job   driver.Job
	waits []time.Duration
}

func newBench(tools map[string]func(context.Context) (string, error), all ...func(context.Context, func(model.Event) error) error) *bench {
	b := &bench{job: driver.Job{Agent: "build"}, model: turns{all: all}, store: memory{messages: map[string][]chat.Message{}}}
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for n := range tools {
			if !yield(n) {
				return
			}
		}
	}) {
		b.job.Own = append(b.job.Own, tool.Tool{
			Kind: tool.Kind{Name: name}, Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false}`), ReadOnly: strings.HasPrefix(name, "look"),
			Call: func(ctx context.Context, _ json.RawMessage) (string, error) { return tools[name](ctx) },
		})
	}
	b.job.Conversation, b.job.Prompt, b.job.System, b.job.Model = "c", "Do it.", "You do it.", "m-1"
	b.job.Gate, b.job.Transcript = &b.gate, &b.log
	b.job.Say = func(provider.Event) error { return nil }
	b.job.Emit = func(t event.Type, _ any) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.said = append(b.said, string(t))
		return nil
	}
	return b
}

func (b *bench) run(ctx context.Context) (driver.Report, error) {
	return chat.Loop{
		Model: &b.model, Store: &b.store, Pause: func(_ context.Context, d time.Duration) error { b.waits = append(b.waits, d); return nil },
		Cost: func(id string, used provider.Usage) float64 {
			return map[string]float64{"priced": float64(used.InputTokens)}[id]
		},
	}.Run(ctx, b.job)
}

// A request with a transient error is retried, and the partial answer is discarded.
func TestTransient(t *testing.T) {
	broken := func(ctx context.Context, emit func(model.Event) error) error {
		_ = says(model.Text{Text: "half"}, model.End{})(ctx, emit)
		return fmt.Errorf("no route: %w", pluginerr.ErrTransient)
	}
	b := newBench(nil, broken, broken, says(model.Text{Text: "whole"}))
	b.job.Model = "priced"
	report, err := b.run(t.Context())
	if err != nil || report.Text != "whole" || len(b.model.requests) != 3 || len(b.model.requests[2].Messages) != 1 {
		t.Errorf("%+v %v after %d", report, err, len(b.model.requests))
	}
	if want := []time.Duration{time.Second, 4 * time.Second}; !slices.Equal(b.waits, want) || !slices.Contains(b.said, string(event.AgentRetry)) {
		t.Errorf("%v %v", b.waits, b.said)
	}
	if report.Used.Cost != 10 { // only the accepted answer counts
		t.Errorf("%+v", report.Used)
	}
	b = newBench(nil, broken, broken, broken, broken, says())
	if report, err = b.run(t.Context()); err != nil || report.Kind != driver.Limit || !strings.HasSuffix(report.Error, "(tried 4 times)") {
		t.Errorf("%+v %v", report, err)
	}
	b = newBench(nil, func(context.Context, func(model.Event) error) error {
		return fmt.Errorf("wrong key: %w", pluginerr.ErrLogin)
	})
	if report, err = b.run(t.Context()); err != nil || report.Kind != driver.Login || len(b.model.requests) != 1 {
		t.Errorf("%+v %v", report, err)
	}
}

func say(text string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return text, nil }
}

// results returns the results in the last message of a request, and checks that they match the calls
// of the preceding message, in order.
func results(t *testing.T, r model.Request) (texts []string) {
	t.Helper()
	last := r.Messages[len(r.Messages)-1]
	var asked, answered []string
	for _, p := range r.Messages[len(r.Messages)-2].Parts {
		if c, ok := p.(provider.ToolCall); ok {
			asked = append(asked, c.ID)
		}
	}
	for _, p := range last.Parts {
		if e, ok := p.(provider.ToolResult); ok {
			answered = append(answered, e.ID)
			mark := ""
			if e.IsError {
				mark = "✗ "
			}
			texts = append(texts, mark+e.Text)
		}
	}
	if !slices.Equal(asked, answered) {
		t.Errorf("the results are of %v, the calls are %v", answered, asked)
	}
	return texts
}

// T-20: Results are added to the context, and the model is called again until it returns a final text. One turn may
// have several calls. Errors of tools go back to the model.
func TestConversation(t *testing.T) {
	b := newBench(map[string]func(context.Context) (string, error){"write": say("written"), "fail": func(context.Context) (string, error) { return "", errors.New("cannot") }, "panic": func(context.Context) (string, error) { panic("no") }},
		says(model.Reasoning{Text: "well"}, model.Reasoning{Text: ", then", Signature: "s"}, model.Text{Text: "I "}, model.Text{Text: "do."}, provider.ToolCall{ID: "x y", Name: "write"}, provider.ToolCall{ID: "", Name: "fail"}, provider.ToolCall{Name: "wirte"}, provider.ToolCall{Name: "write", Input: json.RawMessage(`{"n":"a"}`)}, provider.ToolCall{Name: "panic"}),
		says(model.Text{Text: "Done."}))
	report, err := b.run(t.Context())
	if err != nil || report.Kind != driver.None || report.Text != "Done." || !slices.Equal(report.Said, []string{"Done."}) || !report.Started || report.Conversation != "c" {
		t.Fatalf("%+v %v", report, err)
	}
	if want := (event.Usage{Input: 20, Output: 2, Turns: 2, Model: "m-1"}); report.Used != want || !report.Result.OK || report.Result.Usage.InputTokens != 20 {
		t.Errorf("%+v %+v", report.Used, report.Result)
	}
	first, second := b.model.requests[0], b.model.requests[1]
	if first.System != "You do it." || first.Model != "m-1" || len(first.Tools) != 3 || !reflect.DeepEqual(first.Messages, []model.Message{{Role: model.User, Parts: []model.Part{model.Text{Text: "Do it."}}}}) {
		t.Errorf("%+v", first)
	}
	answer := second.Messages[1]
	if answer.Role != model.Assistant || answer.Parts[0] != (model.Reasoning{Text: "well, then", Signature: "s"}) || answer.Parts[1] != (model.Text{Text: "I do."}) {
		t.Errorf("%+v", answer)
	}
	got := results(t, second)
	if !slices.Equal(got, []string{"written", "✗ cannot", `✗ agent 'build' has no tool 'wirte' (did you mean "write"?)`, `✗ wrong arguments: n: type: a has type "string", want "integer"`, "✗ coven failed while panic ran: no"}) {
		t.Errorf("%q", got)
	}
	if !slices.Equal(b.gate.asked, []string{"write", "fail", "panic"}) || b.gate.ended != 3 {
		t.Errorf("%v %d", b.gate.asked, b.gate.ended)
	}
	if got := strings.Join(b.said, " "); got != "agent.text agent.usage agent.tool agent.tool agent.tool.failed agent.tool agent.tool.failed agent.tool agent.tool.failed agent.tool warning agent.tool.failed agent.text agent.usage" {
		t.Error(got)
	}
	recalled, complete, err := driver.Recall(t.Context(), chat.Log{}, strings.NewReader(b.log.String()))
	if err != nil || !complete || recalled.Text != "Done." || recalled.Conversation != "c" || recalled.Result != report.Result {
		t.Errorf("%+v %v %v", recalled, complete, err)
	}
}

// Calls start in order. Adjacent read-only calls run concurrently. Other calls wait for all calls before
// them.
func TestOrder(t *testing.T) {
	var mu sync.Mutex
	var log []string
	note := func(text string) { mu.Lock(); defer mu.Unlock(); log = append(log, text) }
	second := make(chan struct{})
	b := newBench(map[string]func(context.Context) (string, error){
		"look1": func(ctx context.Context) (string, error) {
			note("look1 begins")
			tool.Begun(ctx)
			<-second // second starts although this call is still running
			note("look1 ends")
			return "1", nil
		},
		"look2": func(context.Context) (string, error) { note("look2"); close(second); return "2", nil },
		"write": func(context.Context) (string, error) { note("write"); return "w", nil },
	}, calls("look1", "look2", "write", "write"), says(model.Text{Text: "x"}))
	if report, err := b.run(t.Context()); err != nil || report.Kind != driver.None {
		t.Fatalf("%+v %v", report, err)
	}
	if got := strings.Join(log, ", "); got != "look1 begins, look2, look1 ends, write, write" {
		t.Error(got)
	}
	if got := results(t, b.model.requests[1]); !slices.Equal(got, []string{"1", "2", "w", "w"}) {
		t.Errorf("%q", got)
	}
	ids := map[string]bool{}
	for _, p := range b.model.requests[1].Messages[1].Parts {
		ids[p.(provider.ToolCall).ID] = true
	}
	if len(ids) != 4 {
		t.Errorf("%v", ids)
	}
}

func TestRefused(t *testing.T) {
	ran := false
	b := newBench(map[string]func(context.Context) (string, error){"write": func(context.Context) (string, error) { ran = true; return "", nil }}, calls("write"), says(model.Text{Text: "x"}))
	b.gate.refuses = "write"
	report, err := b.run(t.Context())
	if err != nil || report.Kind != driver.None || ran || b.gate.ended != 0 {
		t.Errorf("%+v %v %v", report, err, ran)
	}
	if got := results(t, b.model.requests[1]); !slices.Equal(got, []string{"✗ coven refused write"}) {
		t.Errorf("%q", got)
	}
}

// Conditions that end a run early, and their reports.
func TestEnds(t *testing.T) {
	tools := map[string]func(context.Context) (string, error){"write": say("same")}
	limit := provider.Limit{Reason: "overloaded", Status: 529}
	for name, c := range map[string]struct {
		turns []func(context.Context, func(model.Event) error) error
		set   func(*bench)
		kind  event.ErrorType
		text  string
	}{
		"no such conversation": {nil, func(b *bench) { b.job.Resume = true }, driver.ProcessExit, "there is no such conversation"},
		"the API":              {nil, nil, driver.Failed, "no more turns"},
		"refusal":              {[]func(context.Context, func(model.Event) error) error{says(model.Text{Text: "No."}, model.End{Reason: model.Refusal})}, nil, driver.Failed, "the model declined to answer No."},
		"length":               {[]func(context.Context, func(model.Event) error) error{says(model.Text{Text: "and"}, model.End{Reason: model.Length})}, nil, driver.Failed, "the answer of the model was cut off at its length limit"},
		"limit":                {[]func(context.Context, func(model.Event) error) error{says(limit, model.End{Reason: model.Limited})}, nil, driver.Limit, "the API refuses requests: overloaded"},
		"turns":                {[]func(context.Context, func(model.Event) error) error{calls("write"), calls("write"), calls("write")}, func(b *bench) { b.job.MaxTurns = 2 }, driver.Turns, "it is not done after 2 turns of the model, its max_turns"},
		"turns by default":     {slices.Repeat([]func(context.Context, func(model.Event) error) error{calls("write")}, chat.DefaultMaxTurns), nil, driver.Turns, "it is not done after 50 turns of the model, its max_turns"},
		"stuck":                {[]func(context.Context, func(model.Event) error) error{calls("write"), calls("write"), calls("write")}, func(b *bench) { b.job.SameCall = 3 }, driver.Stuck, "the agent repeats itself: write: 3 times in a row with the same result: same"},
		"budget": {[]func(context.Context, func(model.Event) error) error{calls("write"), calls("write")}, func(b *bench) {
			b.job.Spend = func(u event.Usage) error {
				if u.Input > 10 {
					return errors.New("too much")
				}
				return nil
			}
		}, driver.Budget, "too much"},
		"store": {nil, func(b *bench) { b.store.broken = errors.New("disk full") }, driver.Internal, "disk full"},
		"idle":  {[]func(context.Context, func(model.Event) error) error{func(ctx context.Context, _ func(model.Event) error) error { <-ctx.Done(); return ctx.Err() }}, func(b *bench) { b.job.Idle = time.Millisecond }, driver.Timeout, "the model sent nothing for 1ms"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(tools, c.turns...)
			if c.set != nil {
				c.set(b)
			}
			report, err := b.run(t.Context())
			if err != nil || report.Kind != c.kind || report.Error != c.text {
				t.Errorf("%+v %v", report, err)
			}
			if name == "limit" && report.Limit != limit || report.Started == (name == "no such conversation" || name == "store") {
				t.Errorf("%+v", report)
			}
			if _, complete, err := driver.Recall(t.Context(), chat.Log{}, strings.NewReader(b.log.String())); complete || err != nil {
				t.Errorf("the log says that it was complete, %v", err)
			}
		})
	}
}

// The last answer counts even if it exceeds the budget.
func TestLastAnswerIsKept(t *testing.T) {
	b := newBench(nil, says(model.Text{Text: "Done."}))
	b.job.Spend = func(event.Usage) error { return errors.New("too much") }
	if report, err := b.run(t.Context()); err != nil || report.Kind != driver.None || report.Text != "Done." {
		t.Errorf("%+v %v", report, err)
	}
}

// A message that arrives after the budget is spent is not answered.
func TestMessageAfterBudget(t *testing.T) {
	messages := make(chan event.Message, 1)
	b := newBench(nil, says(model.Text{Text: "Done."}), says(model.Text{Text: "More."}))
	b.job.Messages = messages
	b.job.Spend = func(event.Usage) error {
		messages <- event.Message{Text: "One more.", By: "ann"}
		return errors.New("too much")
	}
	if report, err := b.run(t.Context()); err != nil || report.Kind != driver.Budget || len(b.model.requests) != 1 {
		t.Errorf("%+v %v", report, err)
	}
}

// After an interruption between a call and its result, the model learns that the call may have run.
func TestInterrupted(t *testing.T) {
	stop := errors.New("ctrl-c")
	ctx, cancel := context.WithCancelCause(t.Context())
	b := newBench(map[string]func(context.Context) (string, error){"write": func(context.Context) (string, error) { cancel(stop); return "half", nil }}, calls("write"), says(model.Text{Text: "Done."}))
	if report, err := b.run(ctx); !errors.Is(err, stop) || report.Used.Turns != 1 {
		t.Fatalf("%+v %v", report, err)
	}
	b.job.Resume, b.job.Prompt = true, "Go on."
	report, err := b.run(t.Context())
	if err != nil || report.Text != "Done." {
		t.Fatalf("%+v %v", report, err)
	}
	r := b.model.requests[1]
	if got := results(t, r); !slices.Equal(got, []string{"✗ coven was interrupted before the result was known, or the conversation was forked here. The call may have run: check before you repeat it."}) {
		t.Errorf("%q", got)
	}
	if last := r.Messages[len(r.Messages)-1]; len(r.Messages) != 3 || last.Parts[1] != (model.Text{Text: "Go on."}) {
		t.Errorf("%+v", r.Messages)
	}
}

// A person's messages reach the model between its turns, each exactly once.
func TestMessages(t *testing.T) {
	messages := make(chan event.Message, 9)
	b := newBench(map[string]func(context.Context) (string, error){"write": func(context.Context) (string, error) {
		messages <- event.Message{ID: "1", Text: "And this.", By: "ann"}
		messages <- event.Message{ID: "1", Text: "And this.", By: "ann"}
		return "ok", nil
	}}, calls("write"), says(model.Text{Text: "Done."}), says(model.Text{Text: "More done."}))
	b.job.Messages = messages
	done := b.job.Emit
	b.job.Emit = func(e event.Type, data any) error {
		if e == event.AgentText && len(b.model.requests) == 2 {
			messages <- event.Message{Text: "One more.", By: "ann"}
		}
		return done(e, data)
	}
	report, err := b.run(t.Context())
	if err != nil || !slices.Equal(report.Said, []string{"Done.", "More done."}) || len(report.Acknowledged) != 2 {
		t.Fatalf("%+v %v", report, err)
	}
	last := func(n int) model.Part { m := b.model.requests[n].Messages; p := m[len(m)-1].Parts; return p[len(p)-1] }
	if last(1) != (model.Text{Text: "And this."}) || last(2) != (model.Text{Text: "One more."}) {
		t.Errorf("%v %v", last(1), last(2))
	}
}

// Parsing the log returns the written events.
func TestLog(t *testing.T) {
	b := newBench(map[string]func(context.Context) (string, error){"write": say("ok")}, says(model.Reasoning{Text: "r"}, model.Text{Text: "t"}, provider.ToolCall{ID: "a", Name: "write"}), says(provider.Limit{Reason: "slow"}, model.End{Reason: model.Limited}))
	if _, err := b.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	events, err := chat.Log{}.Parse(t.Context(), []byte("noise\n{\"type\":\"new\"}\n"+b.log.String()))
	var types []string
	for _, e := range events {
		types = append(types, strings.TrimPrefix(fmt.Sprintf("%T", e), "provider."))
	}
	if got := strings.Join(types, " "); err != nil || got != "Started Reasoning Text Spent ToolCall ToolResult Limit" {
		t.Errorf("%s %v", got, err)
	}
}
