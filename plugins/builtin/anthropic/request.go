package anthropic

import (
	"encoding/json"
	"slices"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/coven-run/coven/plugins/builtin/endpoint"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/provider"
)

// The API needs a limit for each answer, in tokens. If the request has none, it is as much as the
// model allows, up to maxTokens, which leaves room in its context. The limit of an unknown model is
// newTokens if Anthropic serves it, and otherwise otherTokens: a server refuses what exceeds its context.
const (
	maxTokens   = 64_000
	newTokens   = 32_000
	otherTokens = model.DefaultWindow / 4
)

// redacted begins the signature of thinking that the API encrypted.
const redacted = "redacted:"

// params returns the request for a turn.
func params(c endpoint.Connection, r model.Request) sdk.MessageNewParams {
	id := c.ModelID(r.Model)
	p := sdk.MessageNewParams{Model: id, MaxTokens: int64(r.MaxTokens), Messages: messages(r.Messages), Tools: tools(r.Tools)}
	if r.MaxTokens <= 0 {
		p.MaxTokens = limitOf(c, id)
	}
	if strings.TrimSpace(r.System) != "" {
		p.System = []sdk.TextBlockParam{{Text: r.System, CacheControl: sdk.NewCacheControlEphemeralParam()}}
	}
	if c.Adaptive(id) {
		p.Thinking = sdk.ThinkingConfigParamUnion{OfAdaptive: &sdk.ThinkingConfigAdaptiveParam{Display: sdk.ThinkingConfigAdaptiveDisplaySummarized}}
	}
	cache(p)
	return p
}

func limitOf(c endpoint.Connection, id string) int64 {
	switch most := c.MaxOutput(id); {
	case most > 0:
		return int64(min(most, maxTokens))
	case c.IsStandard(c.Getenv):
		return newTokens
	}
	return otherTokens
}

// cache marks where the next request will begin to differ: behind the tools, and behind the last
// two messages of the user. The mark behind the last but one is where this request finds what the
// one before it stored, also after a turn of many calls.
func cache(p sdk.MessageNewParams) {
	if last := len(p.Tools) - 1; last >= 0 {
		p.Tools[last].OfTool.CacheControl = sdk.NewCacheControlEphemeralParam()
	}
	marked := 0
	for _, m := range slices.Backward(p.Messages) {
		if m.Role != sdk.MessageParamRoleUser || marked == 2 {
			continue
		}
		if control := m.Content[len(m.Content)-1].GetCacheControl(); control != nil {
			*control = sdk.NewCacheControlEphemeralParam()
			marked++
		}
	}
}

func messages(all []model.Message) (converted []sdk.MessageParam) {
	for _, m := range all {
		var results, content []sdk.ContentBlockParamUnion
		for _, part := range m.Parts {
			if result, ok := part.(provider.ToolResult); ok {
				results = append(results, toolResult(result))
			} else if block, ok := block(part); ok {
				content = append(content, block)
			}
		}
		content = append(results, content...) // the API wants results first
		if len(content) > 0 {
			converted = append(converted, sdk.MessageParam{Role: sdk.MessageParamRole(m.Role), Content: content})
		}
	}
	return converted
}

// block returns a part of a message, unless the API does not accept it: an empty text, or
// thinking that is not signed, which is another server's.
func block(part model.Part) (sdk.ContentBlockParamUnion, bool) {
	switch p := part.(type) {
	case model.Text:
		return sdk.NewTextBlock(p.Text), strings.TrimSpace(p.Text) != ""
	case model.Reasoning:
		if data, ok := strings.CutPrefix(p.Signature, redacted); ok {
			return sdk.NewRedactedThinkingBlock(data), true
		}
		return sdk.NewThinkingBlock(p.Signature, p.Text), p.Signature != ""
	case provider.ToolCall:
		return sdk.NewToolUseBlock(p.ID, endpoint.Object(p.Input), p.Name), true
	}
	return sdk.ContentBlockParamUnion{}, false
}

func toolResult(r provider.ToolResult) sdk.ContentBlockParamUnion {
	block := sdk.NewToolResultBlock(r.ID, r.Text, r.IsError)
	if strings.TrimSpace(r.Text) == "" {
		block.OfToolResult.Content = nil // an empty text is refused
	}
	return block
}

func tools(all []model.Tool) (converted []sdk.ToolUnionParam) {
	for _, t := range all {
		schema := t.Schema
		if len(schema) == 0 {
			schema = json.RawMessage(`{"type":"object"}`)
		}
		tool := sdk.ToolParam{Name: t.Name, InputSchema: param.Override[sdk.ToolInputSchemaParam](schema)}
		if t.Description != "" {
			tool.Description = sdk.String(t.Description)
		}
		converted = append(converted, sdk.ToolUnionParam{OfTool: &tool})
	}
	return converted
}
