package chat

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/process/clock"
	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/provider"
)

// answer is one turn of the model.
type answer struct {
	parts []model.Part
	calls []provider.ToolCall // among the parts
	limit provider.Limit
	end   model.End
}

// maxTries limits the attempts to send a request that fails with a transient error. A failed attempt's
// partial answer is discarded.
const maxTries = 4

// ask sends the model a request. It retries transient errors.
func (c *conversation) ask(ctx context.Context, r model.Request) (*answer, error) {
	for try := 1; ; try++ {
		a, err := c.turn(ctx, r)
		if err == nil || !errors.Is(err, pluginerr.ErrTransient) {
			return a, err
		}
		if try == maxTries {
			return nil, c.fault("server_error", fmt.Errorf("%w (tried %d times)", err, maxTries))
		}
		if err := c.again(ctx, try, err); err != nil {
			return nil, err
		}
	}
}

// fault ends the conversation because of the account or the model, until it can be used. The reasons are those of
// driver.FaultOf.
func (c *conversation) fault(reason string, err error) error {
	if c.job.Fault != nil {
		c.job.Fault(reason, oneline.Of(err.Error()))
	}
	return failed(driver.Limit, "%v", err)
}

// again reports a failed request and waits 1, 4 or 16 seconds before the next attempt.
func (c *conversation) again(ctx context.Context, try int, failure error) error {
	text := fmt.Sprintf("%v; try %d of %d", failure, try+1, maxTries)
	if err := c.job.Emit(event.AgentRetry, event.Text{Text: oneline.Of(text)}); err != nil {
		return err
	}
	wait := c.Pause
	if wait == nil {
		wait = pause
	}
	return wait(ctx, time.Second<<(2*(try-1)))
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(clock.ToReal(d))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// turn sends one request. Its errors are *failure, pluginerr.ErrTransient, or the cause of ctx.
func (c *conversation) turn(ctx context.Context, r model.Request) (*answer, error) {
	inner, busy, done := c.idle(ctx)
	defer done()
	a := &answer{}
	err := c.Model.Turn(inner, r, func(e model.Event) error {
		busy()
		a.add(e)
		return nil
	})
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(context.Cause(inner), errIdle):
		return nil, failed(driver.Timeout, "%v for %s", errIdle, c.job.Idle)
	case errors.Is(err, pluginerr.ErrLogin):
		return nil, failed(driver.Login, "%v", err)
	case errors.Is(err, pluginerr.ErrModel):
		return nil, c.fault("model_not_found", err)
	case errors.Is(err, pluginerr.ErrAccount):
		return nil, c.fault("billing_error", err)
	case errors.Is(err, pluginerr.ErrTransient):
		return nil, err
	case errors.Is(err, pluginerr.ErrInvalid):
		c.report.Result.Status = http.StatusBadRequest
		return nil, failed(driver.Failed, "%v", err)
	case err != nil:
		return nil, failed(driver.Failed, "%v", err)
	}
	return a, nil
}

// add adds an event to the turn. It joins fragments of text.
func (a *answer) add(e model.Event) {
	last := len(a.parts) - 1
	switch e := e.(type) {
	case model.Text:
		if last >= 0 {
			if before, ok := a.parts[last].(model.Text); ok {
				a.parts[last] = model.Text{Text: before.Text + e.Text}
				return
			}
		}
		a.parts = append(a.parts, e)
	case model.Reasoning:
		if last >= 0 {
			if before, ok := a.parts[last].(model.Reasoning); ok && before.Signature == "" {
				a.parts[last] = model.Reasoning{Text: before.Text + e.Text, Signature: e.Signature}
				return
			}
		}
		a.parts = append(a.parts, e)
	case provider.ToolCall:
		e.ID = unique(e.ID)
		if len(e.Input) == 0 {
			e.Input = json.RawMessage(`{}`)
		}
		a.calls = append(a.calls, e)
		a.parts = append(a.parts, e)
	case provider.Limit:
		a.limit = e
	case model.End:
		a.end = e
	}
}

// text returns the text parts of the turn, separated by blank lines.
func (a *answer) text() string {
	var all []string
	for _, part := range a.parts {
		if t, ok := part.(model.Text); ok {
			all = append(all, t.Text)
		}
	}
	return strings.Join(all, "\n\n")
}

// failure returns an error if the turn is not a valid answer.
func (a *answer) failure() error {
	switch a.end.Reason {
	case model.Refusal:
		return failed(driver.Failed, "the model declined to answer %s", a.text())
	case model.Length:
		return failed(driver.Failed, "the answer of the model was cut off at its length limit")
	}
	return nil
}

// events converts the answer to provider events, without its calls.
func (a *answer) events(by string) (events []provider.Event) {
	for _, part := range a.parts {
		switch p := part.(type) {
		case model.Text:
			events = append(events, provider.Text{Text: p.Text})
		case model.Reasoning:
			events = append(events, provider.Reasoning{Text: p.Text})
		}
	}
	return append(events, provider.Spent{ID: rand.Text(), Model: by, Usage: a.end.Usage, Done: true, More: len(a.calls) > 0})
}

var notID = lazyregexp.New(`[^a-zA-Z0-9_-]+`)

// maxID limits the part of the model's call ID that is kept, in bytes. APIs accept 64 characters.
const maxID = 48

// unique returns a globally unique call ID derived from id. Some APIs reuse IDs.
func unique(id string) string {
	id = notID.ReplaceAllString(id, "")
	return id[:min(len(id), maxID)] + "_" + strings.ToLower(rand.Text()[:8])
}
