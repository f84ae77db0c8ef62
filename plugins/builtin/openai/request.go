package openai

import (
	"encoding/json"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/shared"

	"github.com/coven-run/coven/plugins/builtin/endpoint"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/provider"
)

// params returns the request for a turn.
//
// The limit of an answer has two names. OpenAI's newer models refuse max_tokens, and some other
// servers do not know max_completion_tokens, so the server decides.
func params(c endpoint.Connection, r model.Request) sdk.ChatCompletionNewParams {
	p := sdk.ChatCompletionNewParams{
		Model: c.ModelID(r.Model), Messages: messages(r), Tools: tools(r.Tools),
		StreamOptions: sdk.ChatCompletionStreamOptionsParam{IncludeUsage: sdk.Bool(true)},
	}
	switch {
	case r.MaxTokens <= 0:
	case c.IsStandard(c.Getenv):
		p.MaxCompletionTokens = sdk.Int(int64(r.MaxTokens))
	default:
		p.MaxTokens = sdk.Int(int64(r.MaxTokens))
	}
	return p
}

func messages(r model.Request) (converted []sdk.ChatCompletionMessageParamUnion) {
	if r.System != "" {
		converted = append(converted, sdk.SystemMessage(r.System))
	}
	for _, m := range r.Messages {
		if m.Role == model.Assistant {
			converted = append(converted, assistant(m)...)
		} else {
			converted = append(converted, user(m)...)
		}
	}
	return converted
}

// user returns the results of calls, each a message of its own, and then the text.
func user(m model.Message) (converted []sdk.ChatCompletionMessageParamUnion) {
	var texts []string
	for _, part := range m.Parts {
		switch p := part.(type) {
		case model.Text:
			texts = appendText(texts, p)
		case provider.ToolResult:
			converted = append(converted, sdk.ToolMessage(p.Text, callID(p.ID)))
		}
	}
	if len(texts) > 0 {
		converted = append(converted, sdk.UserMessage(strings.Join(texts, "\n\n")))
	}
	return converted
}

// maxID is the longest ID of a call that OpenAI takes back. That of another server may be longer.
const maxID = 40

// callID returns the end of a long ID, where coven makes it unique.
func callID(id string) string { return id[max(len(id)-maxID, 0):] }

func appendText(texts []string, t model.Text) []string {
	if t.Text == "" {
		return texts
	}
	return append(texts, t.Text)
}

// assistant returns an answer without its reasoning, which this API does not take back.
func assistant(m model.Message) []sdk.ChatCompletionMessageParamUnion {
	var texts []string
	message := sdk.ChatCompletionAssistantMessageParam{}
	for _, part := range m.Parts {
		switch p := part.(type) {
		case model.Text:
			texts = appendText(texts, p)
		case provider.ToolCall:
			call := sdk.ChatCompletionMessageFunctionToolCallParam{ID: callID(p.ID)}
			call.Function.Name, call.Function.Arguments = p.Name, string(endpoint.Object(p.Input))
			message.ToolCalls = append(message.ToolCalls, sdk.ChatCompletionMessageToolCallUnionParam{OfFunction: &call})
		}
	}
	if len(texts) > 0 {
		message.Content.OfString = sdk.String(strings.Join(texts, "\n\n"))
	}
	if len(texts) == 0 && len(message.ToolCalls) == 0 {
		return nil
	}
	return []sdk.ChatCompletionMessageParamUnion{{OfAssistant: &message}}
}

func tools(all []model.Tool) (converted []sdk.ChatCompletionToolUnionParam) {
	for _, t := range all {
		function := shared.FunctionDefinitionParam{Name: t.Name}
		if t.Description != "" {
			function.Description = sdk.String(t.Description)
		}
		_ = json.Unmarshal(t.Schema, &function.Parameters) // without a schema, the function has no parameters
		if function.Parameters["type"] == "object" && function.Parameters["properties"] == nil {
			function.Parameters["properties"] = map[string]any{} // OpenAI wants them
		}
		converted = append(converted, sdk.ChatCompletionFunctionTool(function))
	}
	return converted
}
