package fakeapi

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// chat returns the dialect of the OpenAI Chat Completions API.
func chat() dialect {
	return dialect{decode: (*Request).decodeChat, whole: completion, stream: streamChat, fault: openAIError}
}

// wireChat is the part of a Chat Completions request that the fake reads.
type wireChat struct {
	Model    string        `json:"model"`
	Stream   bool          `json:"stream"`
	Messages []chatMessage `json:"messages"`
	Options  struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Tools []struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tools"`
}

type chatMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"` // a string or parts; null with tool calls
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// decodeChat converts a request to the form of the Messages API.
func (r *Request) decodeChat(body []byte) error {
	var wire wireChat
	if err := json.Unmarshal(body, &wire); err != nil {
		return fmt.Errorf("decode request: %w", err)
	}
	r.Model, r.Stream, r.asksUsage = wire.Model, wire.Stream, wire.Options.IncludeUsage
	for _, message := range wire.Messages {
		switch message.Role {
		case "system", "developer":
			r.System = joined(r.System, textOf(decodeBlocks(message.Content)))
		case "tool":
			r.Messages = append(r.Messages, Message{Role: "user", Content: []Block{{
				Type: "tool_result", ToolUseID: message.ToolCallID, Result: textOf(decodeBlocks(message.Content)),
			}}})
		default:
			r.Messages = append(r.Messages, Message{Role: message.Role, Content: message.blocks()})
		}
	}
	for _, tool := range wire.Tools {
		r.Tools = append(r.Tools, tool.Function.Name)
	}
	return nil
}

func (m chatMessage) blocks() []Block {
	var blocks []Block
	if len(m.Content) > 0 && string(m.Content) != "null" {
		blocks = decodeBlocks(m.Content)
	}
	for _, call := range m.ToolCalls {
		blocks = append(blocks, Block{Type: "tool_use", ID: call.ID, Name: call.Function.Name, Input: rawOrString(call.Function.Arguments)})
	}
	return blocks
}

// rawOrString returns a text as JSON: unchanged if it is valid JSON, otherwise as a string.
func rawOrString(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return json.RawMessage(encode(text))
}

func joined(before, more string) string {
	if before == "" {
		return more
	}
	return before + "\n" + more
}

// completion returns the response to a request without streaming.
func completion(model string, turn Turn) object {
	var text strings.Builder
	for _, piece := range turn.pieces() {
		text.WriteString(piece.Text)
	}
	message := object{"role": "assistant", "content": text.String()}
	if len(turn.Tools) > 0 {
		calls := []object{}
		for i, tool := range turn.Tools {
			calls = append(calls, chatCall(i, newID("call"), tool))
		}
		message["tool_calls"] = calls
	}
	answer := chatPiece("chat.completion", newID("chatcmpl"), model)
	answer["choices"] = []object{{"index": 0, "message": message, "finish_reason": turn.finishReason()}}
	answer["usage"] = turn.chatUsage()
	return answer
}

// streamChat writes the answer as chunks. It joins all texts, because the API has no blocks.
func streamChat(ctx context.Context, out *stream, model string, turn Turn) error {
	id := newID("chatcmpl")
	send := func(delta object, finish any) error {
		piece := chatPiece("chat.completion.chunk", id, model)
		piece["choices"] = []object{{"index": 0, "delta": delta, "finish_reason": finish}}
		return out.data(encode(piece))
	}
	if err := send(object{"role": "assistant", "content": ""}, nil); err != nil {
		return err
	}
	if turn.Thinking != "" {
		if err := send(object{"reasoning_content": turn.Thinking}, nil); err != nil {
			return err
		}
	}
	for _, piece := range turn.pieces() {
		if err := out.holds.wait(ctx, piece.Hold); err != nil {
			return err
		}
		if err := send(object{"content": piece.Text}, nil); err != nil {
			return err
		}
	}
	if turn.Break != "" {
		return out.data(encode(object{"error": object{"type": turn.Break, "message": "scripted error"}}))
	}
	for i, tool := range turn.Tools {
		if err := streamCall(send, i, tool, turn.Cut && i == len(turn.Tools)-1); err != nil {
			return err
		}
	}
	if turn.Cut {
		return errCut
	}
	if err := send(object{}, turn.finishReason()); err != nil {
		return err
	}
	if turn.tellsUsage {
		last := chatPiece("chat.completion.chunk", id, model)
		last["choices"], last["usage"] = []object{}, turn.chatUsage()
		if err := out.data(encode(last)); err != nil {
			return err
		}
	}
	return out.data("[DONE]")
}

// streamCall sends one call. It splits the arguments, as the real API may do.
func streamCall(send func(object, any) error, index int, tool Tool, cut bool) error {
	call := chatCall(index, newID("call"), tool)
	function := call["function"].(object)
	arguments := function["arguments"].(string)
	half := len(arguments) / 2
	function["arguments"] = arguments[:half]
	if err := send(object{"tool_calls": []object{call}}, nil); err != nil {
		return err
	}
	if cut {
		return errCut
	}
	rest := object{"index": index, "function": object{"arguments": arguments[half:]}}
	return send(object{"tool_calls": []object{rest}}, nil)
}

func chatPiece(kind, id, model string) object {
	return object{"id": id, "object": kind, "created": 1, "model": model}
}

func chatCall(index int, id string, tool Tool) object {
	return object{"index": index, "id": id, "type": "function", "function": object{"name": tool.Name, "arguments": encode(tool.Input)}}
}

// finishReason returns the stop reason in OpenAI's terms.
func (t Turn) finishReason() string {
	words := map[string]string{"tool_use": "tool_calls", "end_turn": "stop", "max_tokens": "length"}
	if word := words[t.stopReason()]; word != "" {
		return word
	}
	return t.stopReason()
}

func (t Turn) chatUsage() object {
	used := t.usage()
	prompt := used.Input + used.CacheRead + used.CacheWrite
	return object{
		"prompt_tokens": prompt, "completion_tokens": used.Output, "total_tokens": prompt + used.Output,
		"prompt_tokens_details": object{"cached_tokens": used.CacheRead, "cache_write_tokens": used.CacheWrite},
	}
}

// openAIError returns the error object of both OpenAI APIs.
func openAIError(status int, text string) object {
	kinds := map[int]string{400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 429: "rate_limit_exceeded"}
	kind := kinds[status]
	if kind == "" {
		kind = "server_error"
	}
	return object{"error": object{"message": text, "type": kind, "code": kind, "param": nil}}
}
