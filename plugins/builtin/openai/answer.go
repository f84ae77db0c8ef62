package openai

import (
	"encoding/json"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/respjson"

	"github.com/coven-run/coven/plugins/builtin/endpoint"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/provider"
)

// answer turns the chunks of a stream into the events of a turn.
type answer struct {
	emit    func(model.Event) error
	calls   []*call
	reason  string // why the answer ended; empty: it has not
	refused bool
	usage   sdk.CompletionUsage
	said    int // bytes, for an estimate
}

// call is a call whose arguments arrive.
type call struct {
	index     int64
	id, name  string
	arguments strings.Builder
}

func (a *answer) take(chunk sdk.ChatCompletionChunk) error {
	if chunk.Usage.TotalTokens > 0 || chunk.Usage.PromptTokens > 0 {
		a.usage = chunk.Usage
	}
	for _, choice := range chunk.Choices {
		if choice.Index != 0 {
			continue
		}
		if err := a.delta(choice.Delta); err != nil {
			return err
		}
		if choice.FinishReason != "" {
			a.reason = choice.FinishReason
		}
	}
	return nil
}

func (a *answer) delta(d sdk.ChatCompletionChunkChoiceDelta) error {
	if thought := reasoning(d.JSON.ExtraFields); thought != "" {
		a.said += len(thought)
		if err := a.emit(model.Reasoning{Text: thought}); err != nil {
			return err
		}
	}
	a.refused = a.refused || d.Refusal != ""
	for _, text := range []string{d.Content, d.Refusal} {
		if text == "" {
			continue
		}
		a.said += len(text)
		if err := a.emit(model.Text{Text: text}); err != nil {
			return err
		}
	}
	for _, part := range d.ToolCalls {
		c := a.callOf(part)
		c.name += part.Function.Name
		c.arguments.WriteString(part.Function.Arguments)
		a.said += len(part.Function.Name) + len(part.Function.Arguments)
	}
	return nil
}

// reasoning returns the reasoning in a delta: a field of compatible servers, under one of two names.
func reasoning(fields map[string]respjson.Field) (text string) {
	for _, name := range []string{"reasoning_content", "reasoning"} {
		if field, ok := fields[name]; ok && json.Unmarshal([]byte(field.Raw()), &text) == nil && text != "" {
			return text
		}
	}
	return ""
}

// callOf returns the call that a delta belongs to. Some servers give all calls the same index, each
// with an ID of its own.
func (a *answer) callOf(part sdk.ChatCompletionChunkChoiceDeltaToolCall) *call {
	for i := len(a.calls) - 1; i >= 0; i-- {
		c := a.calls[i]
		if c.index == part.Index && (part.ID == "" || c.id == "" || c.id == part.ID) {
			if c.id == "" {
				c.id = part.ID
			}
			return c
		}
	}
	c := &call{index: part.Index, id: part.ID}
	a.calls = append(a.calls, c)
	return c
}

// finish emits the calls, which are complete now, and the end. An answer that was cut off at its
// length limit has no complete calls.
func (a *answer) finish(request model.Request) error {
	end := a.end()
	if end.Usage == (provider.Usage{}) {
		end.Usage = a.estimate(request)
	}
	if end.Reason == model.ForTools {
		for _, c := range a.calls {
			id := c.id
			if id == "" {
				id = "call"
			}
			if err := a.emit(provider.ToolCall{ID: id, Name: c.name, Input: endpoint.Arguments(c.arguments.String())}); err != nil {
				return err
			}
		}
	}
	return a.emit(end)
}

func (a *answer) end() model.End {
	end := model.End{Reason: model.Done, Usage: a.used()}
	switch {
	case a.reason == "length":
		end.Reason = model.Length
	case a.reason == "content_filter", a.refused:
		end.Reason = model.Refusal
	case len(a.calls) > 0: // not every server says tool_calls
		end.Reason = model.ForTools
	}
	return end
}

// used returns the usage that the server reported. It counts tokens of its cache as input, too.
func (a *answer) used() provider.Usage {
	u := a.usage
	read, written := u.PromptTokensDetails.CachedTokens, u.PromptTokensDetails.CacheWriteTokens
	return provider.Usage{
		InputTokens: max(u.PromptTokens-read-written, 0), OutputTokens: u.CompletionTokens, CacheReadTokens: read, CacheWriteTokens: written,
	}
}

// bytesPerToken is a rule of thumb.
const bytesPerToken = 4

// estimate returns the usage of an answer if the server does not report it, so that budgets hold.
func (a *answer) estimate(r model.Request) provider.Usage {
	sent := len(r.System)
	for _, t := range r.Tools {
		sent += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	for _, m := range r.Messages {
		for _, part := range m.Parts {
			switch p := part.(type) {
			case model.Text:
				sent += len(p.Text)
			case provider.ToolCall:
				sent += len(p.Name) + len(p.Input)
			case provider.ToolResult:
				sent += len(p.Text)
			}
		}
	}
	return provider.Usage{InputTokens: int64(sent / bytesPerToken), OutputTokens: int64(a.said / bytesPerToken)}
}

// windowOf returns the context window that a server reports beside a model's ID, or 0: vLLM and
// some hosts do, under these names.
func windowOf(m sdk.Model) (window int) {
	for _, name := range []string{"max_model_len", "context_window", "context_length"} {
		if field, ok := m.JSON.ExtraFields[name]; ok && json.Unmarshal([]byte(field.Raw()), &window) == nil && window > 0 {
			return window
		}
	}
	return 0
}
