// Package chat is coven's own agent loop. It asks a model plugin for the turns of a conversation,
// runs the tools that the model calls, and sends the model their results, until a turn calls no tool.
//
// Rules:
//   - A message is stored before coven acts on it. After a crash the conversation continues
//     after its last message. Calls without a stored result may have run; the model gets a message about this.
//   - A call runs only if its arguments match the schema of its tool and the gate allows it.
//   - Calls start in the order of the model's turn, and the model receives the results in this order.
//     Adjacent read-only calls run concurrently.
//   - A request that fails with a transient error is retried a few times. An answer counts only
//     when it is complete: no call of a broken answer runs.
//   - The result of a tool, including an error, goes to the model. Only coven's own failures, limits,
//     and the end of the context end the conversation early.
package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/process/clock"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/provider"
)

// DefaultMaxTurns is the maximum number of turns of an agent whose job sets no limit.
const DefaultMaxTurns = 50

// Loop runs conversations with a model.
type Loop struct {
	Model model.Model
	Store Store
	// Cost returns the cost of an answer in US dollars. It is used if the plugin does not report
	// the cost. It returns 0 if the cost is unknown. May be nil.
	Cost func(id string, used provider.Usage) float64
	// Pause waits before a failed request is retried. If it is nil, a timer is used.
	Pause func(ctx context.Context, d time.Duration) error
	// Window returns the context window of a model in tokens. Older messages are summarized before a request
	// exceeds three quarters of it. If Window is nil or returns 0, nothing is summarized.
	Window func(id string) int
	// Todos returns the agent's todo list, or "". May be nil.
	Todos func() string
	// Remembered receives the working memory at the start of the run, after each turn with calls, and after
	// messages are summarized. May be nil.
	Remembered func(Memory) error
	// Hidden removes secrets from text that is stored in part. May be nil.
	Hidden func(text string) string
}

// Store stores conversations.
type Store interface {
	// Load returns the messages of a conversation, oldest first. An unknown conversation has none.
	Load(conversation string) ([]Message, error)
	// Append adds a message. It is durable when Append returns.
	Append(conversation string, m Message) error
}

// Message is a stored message.
type Message struct {
	ID string // a UUID
	model.Message
	Used provider.Usage // by the request that it answers; zero if unknown
}

// errIdle is the cause when the model was silent for longer than Job.Idle.
var errIdle = errors.New("the model sent nothing")

// failure is an error that ends a conversation early.
type failure struct {
	kind event.ErrorType
	text string
}

func (f *failure) Error() string { return f.text }

func failed(kind event.ErrorType, format string, args ...any) error {
	return &failure{kind, oneline.Of(fmt.Sprintf(format, args...))}
}

// Run runs an agent in a conversation until it ends. It ignores the fields of the job that concern an agent
// CLI, and calls Job.Offered for the tools at each turn. If Job.Resume is set and the conversation does not
// exist, Report.Started is false. Run returns an error only if ctx was cancelled.
func (l Loop) Run(ctx context.Context, job driver.Job) (driver.Report, error) {
	c := &conversation{
		Loop: l, job: job, out: transcript{job.Transcript}, circle: driver.NewLoopDetector(job.SameCall), used: event.Usage{Model: job.Model},
	}
	if l.Window != nil {
		c.window = l.Window(job.Model)
	}
	err := c.converse(ctx)
	c.report.Used = c.used
	if stop := context.Cause(ctx); err != nil && stop != nil {
		return c.report, stop
	}
	early := (*failure)(nil)
	switch {
	case errors.As(err, &early):
		c.report.Kind, c.report.Error = early.kind, early.text
	case err != nil:
		c.report.Kind, c.report.Error = driver.Internal, oneline.Of(err.Error())
	}
	return c.report, nil
}

// conversation is one run of an agent in a conversation.
type conversation struct {
	Loop
	job      driver.Job
	out      transcript
	messages []Message
	circle   *driver.LoopDetector
	used     event.Usage
	spent    error   // not nil if no further turn is allowed
	window   int     // context window of the model in tokens; 0 if unlimited
	scale    float64 // correction factor of token estimates; 0 if unknown
	report   driver.Report
	mu       sync.Mutex // held while a call is recorded
}

// converse runs the conversation.
func (c *conversation) converse(ctx context.Context) (err error) {
	if c.messages, err = c.Store.Load(c.job.Conversation); err != nil {
		return err
	}
	if c.job.Resume && len(c.messages) == 0 {
		return failed(driver.ProcessExit, "there is no such conversation")
	}
	c.report.Started, c.report.Conversation = true, c.job.Conversation
	if err := c.publish(provider.Started{Conversation: c.job.Conversation, Model: c.job.Model, Tools: c.tools()}); err != nil {
		return err
	}
	if err := c.answerInterrupted(); err != nil {
		return err
	}
	if err := errors.Join(c.add(c.prompt()...), c.remember()); err != nil {
		return err
	}
	most := cmp.Or(c.job.MaxTurns, DefaultMaxTurns)
	for range most {
		more, err := c.step(ctx)
		if err != nil || !more {
			return err
		}
	}
	return failed(driver.Turns, "it is not done after %s of the model, its max_turns", oneline.Count(most, "turn"))
}

// step runs one turn, and reports whether another must follow.
func (c *conversation) step(ctx context.Context) (more bool, err error) {
	if err := cmp.Or(c.receive(), c.spent); err != nil {
		return false, err
	}
	if err := c.fit(ctx); err != nil {
		return false, err
	}
	r := c.request()
	a, err := c.ask(ctx, r)
	if err != nil {
		return false, err
	}
	if a.end.Reason != model.Limited {
		c.measure(r, a.end.Usage)
	}
	if err := c.take(a); err != nil {
		return false, err
	}
	if len(a.calls) == 0 {
		before := len(c.messages)
		err := c.receive() // otherwise a later message would wait for the next agent
		return len(c.messages) > before, err
	}
	return true, c.perform(ctx, a.calls)
}

// take stores an answer, reports it and charges for it.
func (c *conversation) take(a *answer) error {
	if a.end.Reason == model.Limited {
		return c.limited(a)
	}
	c.count(a.end.Usage)
	shown := a.events(c.job.Model)
	if len(a.calls) == 0 && a.failure() == nil {
		shown = append(shown, c.result(a))
	}
	// Write the log first: after a crash, a final answer is restored from it.
	for _, e := range shown {
		if err := c.out.write(e); err != nil {
			return err
		}
	}
	if err := a.failure(); err != nil {
		return errors.Join(c.charge(a), err)
	}
	if err := c.store(Message{ID: uuid.NewString(), Message: model.Message{Role: model.Assistant, Parts: a.parts}, Used: a.end.Usage}); err != nil {
		return err
	}
	for _, e := range shown {
		if err := c.job.Say(e); err != nil {
			return err
		}
		if text, ok := e.(provider.Text); ok {
			if err := c.job.Emit(event.AgentText, event.Text{Text: text.Text}); err != nil {
				return err
			}
		}
	}
	return c.charge(a)
}

// count adds the usage of an answer.
func (c *conversation) count(u provider.Usage) {
	c.used.Input, c.used.Output = c.used.Input+u.InputTokens, c.used.Output+u.OutputTokens
	c.used.CacheRead, c.used.CacheWrite = c.used.CacheRead+u.CacheReadTokens, c.used.CacheWrite+u.CacheWriteTokens
	if u.CostUSD == 0 && c.Cost != nil {
		u.CostUSD = c.Cost(c.job.Model, u)
	}
	c.used.Cost += u.CostUSD
	c.used.Turns++
}

// charge charges for the usage so far. The last answer is accepted even if it exceeds the budget.
func (c *conversation) charge(a *answer) error {
	if err := c.job.Emit(event.AgentUsage, c.used); err != nil || c.job.Spend == nil {
		return err
	}
	if spent := c.job.Spend(c.used); spent != nil {
		c.spent = failed(driver.Budget, "%v", spent)
	}
	if len(a.calls) == 0 { // this may be the last answer
		return nil
	}
	return c.spent
}

// result records and returns the agent's result for an answer without calls.
func (c *conversation) result(a *answer) provider.Result {
	c.report.Text = a.text()
	c.report.Said = append(c.report.Said, c.report.Text)
	u := c.used
	c.report.Result = provider.Result{OK: true, Text: c.report.Text, Turns: c.used.Turns, Usage: provider.Usage{
		InputTokens: u.Input, OutputTokens: u.Output, CacheReadTokens: u.CacheRead, CacheWriteTokens: u.CacheWrite, CostUSD: u.Cost,
	}}
	return c.report.Result
}

// limited ends the run because of a rate limit.
func (c *conversation) limited(a *answer) error {
	if c.job.Limit != nil {
		c.job.Limit(a.limit)
	}
	c.report.Limit = a.limit
	return errors.Join(c.publish(a.limit), failed(driver.Limit, "the API refuses requests: %s", cmp.Or(a.limit.Reason, "rate_limit")))
}

// publish reports an event to the observer and the log.
func (c *conversation) publish(e provider.Event) error {
	return errors.Join(c.job.Say(e), c.out.write(e))
}

// add adds a message with the role user.
func (c *conversation) add(parts ...model.Part) error {
	return c.store(Message{ID: uuid.NewString(), Message: model.Message{Role: model.User, Parts: parts}})
}

// store adds a message to the conversation.
func (c *conversation) store(m Message) error {
	if err := c.Store.Append(c.job.Conversation, m); err != nil {
		return err
	}
	c.messages = append(c.messages, m)
	return nil
}

// answerInterrupted adds error results for the calls of an interrupted run whose results are unknown.
func (c *conversation) answerInterrupted() error {
	if len(c.messages) == 0 {
		return nil
	}
	var results []model.Part
	for _, part := range c.messages[len(c.messages)-1].Parts {
		if call, ok := part.(provider.ToolCall); ok {
			results = append(results, provider.ToolResult{ID: call.ID, IsError: true, Text: "coven was interrupted before the result was known, or the conversation was forked here. The call may have run: check before you repeat it."})
		}
	}
	if len(results) == 0 {
		return nil
	}
	return c.add(results...)
}

// receive accepts all messages of a person that have arrived.
func (c *conversation) receive() error {
	for {
		select {
		case m, open := <-c.job.Messages:
			if !open {
				c.job.Messages = nil
				return nil
			}
			if err := c.accept(m); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// accept adds a person's message unless it is a duplicate.
func (c *conversation) accept(m event.Message) error {
	m.ID = cmp.Or(m.ID, uuid.NewString())
	if slices.Contains(c.report.Acknowledged, m.ID) {
		return nil
	}
	if err := c.job.Emit(event.AgentMessage, m); err != nil {
		return err
	}
	if err := c.add(model.Text{Text: m.Text}); err != nil {
		return err
	}
	c.report.Acknowledged = append(c.report.Acknowledged, m.ID)
	c.circle.Forget() // the message may change the task
	return c.publish(provider.Acknowledged{ID: m.ID})
}

// request returns the request for the next turn. It merges consecutive messages with the same role. A
// summary replaces the messages before it.
func (c *conversation) request() model.Request {
	r := model.Request{Model: c.job.Model, System: c.job.System}
	summary, rest := c.current()
	if summary != nil {
		r.Messages = append(r.Messages, c.opening(summary))
	}
	for _, m := range rest {
		now := c.clipped(m.Message)
		if last := len(r.Messages) - 1; last >= 0 && r.Messages[last].Role == m.Role {
			r.Messages[last].Parts = slices.Concat(r.Messages[last].Parts, now.Parts)
			continue
		}
		r.Messages = append(r.Messages, now)
	}
	for _, t := range c.job.Offered() {
		r.Tools = append(r.Tools, model.Tool{Name: t.Name, Description: t.Description, Schema: t.Schema})
	}
	return r
}

func (c *conversation) tools() (names []string) {
	for _, t := range c.job.Offered() {
		names = append(names, t.Name)
	}
	return names
}

// idle returns a context that is cancelled when busy was not called for Job.Idle.
func (c *conversation) idle(ctx context.Context) (_ context.Context, busy, done func()) {
	if c.job.Idle <= 0 {
		return ctx, func() {}, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	last := clock.ToReal(c.job.Idle)
	timer := time.AfterFunc(last, func() { cancel(errIdle) })
	return ctx, func() { timer.Reset(last) }, func() { timer.Stop(); cancel(nil) }
}
