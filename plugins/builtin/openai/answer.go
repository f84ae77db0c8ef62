package openai

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/coven-run/coven/plugins/builtin/endpoint"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/provider"
)

// chunk is a part of an answer.
type chunk struct {
	Choices []struct {
		Index        endpoint.Number `json:"index"`
		Delta        delta           `json:"delta"`
		FinishReason string          `json:"finish_reason"`
	} `json:"choices"`
	Usage usage `json:"usage"`
}

// delta is the addition in a chunk. Compatible servers send reasoning under one of two names.
type delta struct {
	Content          anyText     `json:"content"`
	Refusal          string      `json:"refusal"`
	ReasoningContent string      `json:"reasoning_content"`
	Reasoning        string      `json:"reasoning"`
	ToolCalls        []callDelta `json:"tool_calls"`
}

type callDelta struct {
	Index    endpoint.Number `json:"index"`
	ID       anyText         `json:"id"`
	Function struct {
		Name      string  `json:"name"`
		Arguments anyText `json:"arguments"`
	} `json:"function"`
}

type usage struct {
	Prompt     endpoint.Number `json:"prompt_tokens"`
	Completion endpoint.Number `json:"completion_tokens"`
	Total      endpoint.Number `json:"total_tokens"`
	Details    struct {
		Cached     endpoint.Number `json:"cached_tokens"`
		CacheWrite endpoint.Number `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
}

// anyText is a text. Some servers send another value instead, such as an object with the arguments of a
// call. Then the text is its JSON.
type anyText string

// UnmarshalJSON implements json.Unmarshaler.
func (t *anyText) UnmarshalJSON(data []byte) error {
	if text := (*string)(t); json.Unmarshal(data, text) != nil {
		*text = string(data)
	}
	return nil
}

// answer converts the chunks of a stream to the events of a turn.
type answer struct {
	emit    func(model.Event) error
	calls   []*call
	reason  string // why the answer ended, empty until then
	refused bool
	usage   usage
	said    int // number of bytes, for an estimate
}

// call is a call whose arguments are being received.
type call struct {
	index     endpoint.Number
	id, name  string
	arguments strings.Builder
}

func (a *answer) take(c chunk) error {
	if c.Usage.Total > 0 || c.Usage.Prompt > 0 {
		a.usage = c.Usage
	}
	for _, choice := range c.Choices {
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

func (a *answer) delta(d delta) error {
	if thought := cmp.Or(d.ReasoningContent, d.Reasoning); thought != "" {
		a.said += len(thought)
		if err := a.emit(model.Reasoning{Text: thought}); err != nil {
			return err
		}
	}
	a.refused = a.refused || d.Refusal != ""
	for _, text := range []string{string(d.Content), d.Refusal} {
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
		c.arguments.WriteString(string(part.Function.Arguments))
		a.said += len(part.Function.Name) + len(part.Function.Arguments)
	}
	return nil
}

// callOf returns the call that a delta belongs to. Some servers give all calls the same index, but
// different IDs.
func (a *answer) callOf(part callDelta) *call {
	id := string(part.ID)
	for _, c := range slices.Backward(a.calls) {
		if c.index == part.Index && (id == "" || c.id == "" || c.id == id) {
			c.id = cmp.Or(c.id, id)
			return c
		}
	}
	c := &call{index: part.Index, id: id}
	a.calls = append(a.calls, c)
	return c
}

// finish emits the calls, which are complete now, and the end. An answer that was cut off at its length
// limit has no complete calls.
func (a *answer) finish(request model.Request) error {
	end := a.end()
	if end.Usage == (provider.Usage{}) {
		end.Usage = a.estimate(request)
	}
	if end.Reason == model.ForTools {
		for _, c := range a.calls {
			if err := a.emit(provider.ToolCall{ID: cmp.Or(c.id, "call"), Name: c.name, Input: endpoint.Arguments(c.arguments.String())}); err != nil {
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
	case len(a.calls) > 0: // not every server reports tool_calls
		end.Reason = model.ForTools
	}
	return end
}

// used returns the usage reported by the server, which includes cached tokens in its input tokens.
func (a *answer) used() provider.Usage {
	read, written := int64(a.usage.Details.Cached), int64(a.usage.Details.CacheWrite)
	return provider.Usage{
		InputTokens: max(int64(a.usage.Prompt)-read-written, 0), OutputTokens: int64(a.usage.Completion), CacheReadTokens: read, CacheWriteTokens: written,
	}
}

// bytesPerToken is a rule of thumb.
const bytesPerToken = 4

// estimate estimates the usage of an answer if the server does not report it, so that budgets still work.
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
