package anthropic

import (
	"encoding/json"
	"strings"

	"github.com/coven-run/coven/plugins/builtin/endpoint"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/provider"
)

// event is an event of a stream. The type determines which fields are set.
type event struct {
	Type         string                `json:"type"`
	Message      struct{ Usage usage } `json:"message"`
	ContentBlock piece                 `json:"content_block"`
	Delta        piece                 `json:"delta"`
	Usage        usage                 `json:"usage"`
}

type usage struct {
	Input      endpoint.Number `json:"input_tokens"`
	Output     endpoint.Number `json:"output_tokens"`
	CacheRead  endpoint.Number `json:"cache_read_input_tokens"`
	CacheWrite endpoint.Number `json:"cache_creation_input_tokens"`
}

// piece is the beginning of a block, or an addition to a block or to the whole answer.
type piece struct {
	Type        string          `json:"type"`
	Text        string          `json:"text"`
	Thinking    string          `json:"thinking"`
	Signature   string          `json:"signature"`
	Data        string          `json:"data"`
	ID          string          `json:"id"`
	Name        string          `json:"name"`
	Input       json.RawMessage `json:"input"`
	PartialJSON string          `json:"partial_json"`
	StopReason  string          `json:"stop_reason"`
}

// answer converts the events of a stream to those of a turn.
type answer struct {
	emit    func(model.Event) error
	call    *provider.ToolCall // the call whose input is being received
	input   strings.Builder
	reason  string
	usage   provider.Usage
	stopped bool // the answer is complete
}

func (a *answer) take(e event) error {
	switch e.Type {
	case "message_start":
		a.count(e.Message.Usage)
	case "content_block_start":
		return a.start(e.ContentBlock)
	case "content_block_delta":
		return a.delta(e.Delta)
	case "content_block_stop":
		return a.stop()
	case "message_delta":
		a.reason = e.Delta.StopReason
		a.count(e.Usage)
	case "message_stop":
		a.stopped = true
	}
	return nil
}

// count keeps the largest numbers, because each report is about the whole answer, and some omit numbers.
func (a *answer) count(u usage) {
	a.usage = provider.Usage{
		InputTokens: max(a.usage.InputTokens, int64(u.Input)), OutputTokens: max(a.usage.OutputTokens, int64(u.Output)),
		CacheReadTokens: max(a.usage.CacheReadTokens, int64(u.CacheRead)), CacheWriteTokens: max(a.usage.CacheWriteTokens, int64(u.CacheWrite)),
	}
}

func (a *answer) start(block piece) error {
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
		a.call = &provider.ToolCall{ID: block.ID, Name: block.Name, Input: block.Input}
	}
	return nil
}

func (a *answer) delta(d piece) error {
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

// stop ends a block and emits its call, which is complete now. Some servers send a call's input at once, at
// the beginning of the block.
func (a *answer) stop() error {
	if a.call == nil {
		return nil
	}
	call := *a.call
	if input := string(call.Input); a.input.Len() > 0 || input == "" || input == "null" {
		call.Input = endpoint.Arguments(a.input.String())
	}
	a.call = nil
	return a.emit(call)
}

func (a *answer) end() model.End {
	reasons := map[string]model.Reason{
		"tool_use": model.ForTools, "max_tokens": model.Length, "refusal": model.Refusal,
		"model_context_window_exceeded": model.Length,
	}
	reason, ok := reasons[a.reason]
	if !ok {
		reason = model.Done
	}
	return model.End{Reason: reason, Usage: a.usage}
}
