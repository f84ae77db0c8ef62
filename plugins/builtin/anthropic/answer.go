package anthropic

import (
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"github.com/coven-run/coven/plugins/builtin/endpoint"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/provider"
)

// answer turns the events of a stream into those of a turn.
type answer struct {
	emit    func(model.Event) error
	call    *provider.ToolCall // whose input arrives
	input   strings.Builder
	reason  sdk.StopReason
	usage   provider.Usage
	stopped bool // the answer is complete
}

func (a *answer) take(e sdk.MessageStreamEventUnion) error {
	switch e.Type {
	case "message_start":
		u := e.Message.Usage
		a.count(u.InputTokens, u.OutputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens)
	case "content_block_start":
		return a.start(e.ContentBlock)
	case "content_block_delta":
		return a.delta(e.Delta)
	case "content_block_stop":
		return a.stop()
	case "message_delta":
		a.reason = e.Delta.StopReason
		u := e.Usage
		a.count(u.InputTokens, u.OutputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens)
	case "message_stop":
		a.stopped = true
	}
	return nil
}

// count keeps the largest numbers: each report is about the whole answer, and some leave numbers out.
func (a *answer) count(input, output, read, written int64) {
	a.usage = provider.Usage{
		InputTokens: max(a.usage.InputTokens, input), OutputTokens: max(a.usage.OutputTokens, output),
		CacheReadTokens: max(a.usage.CacheReadTokens, read), CacheWriteTokens: max(a.usage.CacheWriteTokens, written),
	}
}

func (a *answer) start(block sdk.ContentBlockStartEventContentBlockUnion) error {
	a.call = nil
	a.input.Reset()
	switch block.Type {
	case "text":
		return a.text(block.Text)
	case "thinking":
		return a.thinking(block.Thinking, block.Signature)
	case "redacted_thinking":
		return a.emit(model.Reasoning{Signature: redacted + block.Data})
	case "tool_use":
		a.call = &provider.ToolCall{ID: block.ID, Name: block.Name}
	}
	return nil
}

func (a *answer) delta(d sdk.MessageStreamEventUnionDelta) error {
	switch d.Type {
	case "text_delta":
		return a.text(d.Text)
	case "thinking_delta":
		return a.thinking(d.Thinking, "")
	case "signature_delta":
		return a.thinking("", d.Signature)
	case "input_json_delta":
		a.input.WriteString(d.PartialJSON)
	}
	return nil
}

func (a *answer) text(text string) error {
	if text == "" {
		return nil
	}
	return a.emit(model.Text{Text: text})
}

func (a *answer) thinking(text, signature string) error {
	if text == "" && signature == "" {
		return nil
	}
	return a.emit(model.Reasoning{Text: text, Signature: signature})
}

// stop ends a block. Only now a call is complete.
func (a *answer) stop() error {
	if a.call == nil {
		return nil
	}
	call := *a.call
	call.Input = endpoint.Arguments(a.input.String())
	a.call = nil
	return a.emit(call)
}

func (a *answer) end() model.End {
	reasons := map[sdk.StopReason]model.Reason{
		sdk.StopReasonToolUse: model.ForTools, sdk.StopReasonMaxTokens: model.Length, sdk.StopReasonRefusal: model.Refusal,
		"model_context_window_exceeded": model.Length,
	}
	reason, ok := reasons[a.reason]
	if !ok {
		reason = model.Done
	}
	return model.End{Reason: reason, Usage: a.usage}
}
