package chat

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/gate"
	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/internal/text/didyoumean"
	"github.com/coven-run/coven/internal/tool"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/provider"
)

// perform runs the calls of a turn and adds their results to the conversation.
func (c *conversation) perform(ctx context.Context, calls []provider.ToolCall) error {
	failpoint.Point("chat.answered")
	results := make([]provider.ToolResult, len(calls))
	errs := make([]error, len(calls))
	for i := 0; i < len(calls) && ctx.Err() == nil && errors.Join(errs...) == nil; {
		together := c.concurrent(calls[i:])
		var all sync.WaitGroup
		for n := i; n < i+together; n++ {
			begun := make(chan struct{})
			once := sync.OnceFunc(func() { close(begun) })
			all.Go(func() {
				defer once()
				results[n], errs[n] = c.call(tool.WithBegun(ctx, once), calls[n])
			})
			<-begun
		}
		all.Wait()
		i += together
	}
	failpoint.Point("chat.called")
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if ctx.Err() != nil { // the results come from cancelled calls
		return context.Cause(ctx)
	}
	var parts []model.Part
	for _, r := range results {
		parts = append(parts, r)
	}
	if err := errors.Join(c.add(parts...), c.remember()); err != nil {
		return err
	}
	for _, r := range results {
		if err := c.publish(r); err != nil {
			return err
		}
		if loop := c.circle.Result(r); loop != nil {
			return errors.Join(c.job.Emit(event.AgentStuck, *loop), failed(driver.Stuck, "the agent repeats itself: %s", driver.LoopText(*loop, c.job.Dir)))
		}
	}
	return nil
}

// concurrent returns how many of the first calls may run concurrently.
func (c *conversation) concurrent(calls []provider.ToolCall) (n int) {
	for _, call := range calls {
		if t, ok := tool.Find(c.job.Offered(), call.Name); !ok || !t.ReadOnly {
			break
		}
		n++
	}
	return max(n, 1)
}

// call runs one call. It returns an error only if coven cannot record the call.
func (c *conversation) call(ctx context.Context, call provider.ToolCall) (provider.ToolResult, error) {
	asked := gate.Call{ID: call.ID, Tool: call.Name, Input: call.Input}
	c.mu.Lock()
	c.circle.Call(call)
	err := errors.Join(c.publish(call), c.job.Emit(event.AgentTool, event.Tool{ID: call.ID, Name: call.Name, Summary: gate.Summary(asked, c.job.Dir)}))
	c.mu.Unlock()
	if err != nil {
		return provider.ToolResult{}, err
	}
	text, err := c.run(ctx, asked)
	if err != nil { // it is a result for the model
		result := provider.ToolResult{ID: call.ID, Text: err.Error(), IsError: true}
		if errors.As(err, new(refusal)) || strings.HasSuffix(call.Name, tool.SpawnAgent.Name) {
			return result, nil
		}
		return result, c.job.Emit(event.AgentToolFailed, driver.ToolFailure(result))
	}
	return provider.ToolResult{ID: call.ID, Text: text}, nil
}

// refusal is the message of the gate about a call that it refused.
type refusal string

// Error implements error.
func (r refusal) Error() string { return string(r) }

// run runs a call if the gate allows it. The text and the error are both for the model.
func (c *conversation) run(ctx context.Context, call gate.Call) (text string, err error) {
	t, ok := tool.Find(c.job.Offered(), call.Tool)
	if !ok {
		return "", fmt.Errorf("agent '%s' has no tool '%s'%s", c.job.Agent, call.Tool, didyoumean.Aside(call.Tool, c.tools()))
	}
	call.Tool = t.Name // the model may have used the tool's ID
	if err := t.Check(call.Input); err != nil {
		return "", err
	}
	verdict := c.job.Gate.Decide(ctx, call)
	if !verdict.Allow {
		return "", refusal(verdict.Message)
	}
	if verdict.Input != nil {
		call.Input = verdict.Input
		defer func() {
			note := fmt.Sprintf("(The parameters were modified by the user: %s)\n", verdict.Input)
			if text = note + text; err != nil {
				err = fmt.Errorf("%s%w", note, err)
			}
		}()
	}
	defer c.job.Gate.Ended(call.ID)
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("coven failed while %s ran: %v", call.Tool, p)
			_ = c.job.Emit(event.Warning, event.Text{Text: fmt.Sprintf("%v\n%s", err, debug.Stack())}) // the call failed either way
		}
	}()
	return t.Call(ctx, call.Input)
}
