package fakeapi

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
)

// errCut drops the connection in the middle of an answer.
var errCut = errors.New("scripted cut")

// newID returns an ID that is unique across servers, because conversations outlive servers.
func newID(prefix string) string {
	var random [12]byte
	_, _ = rand.Read(random[:]) // never fails: it would crash instead
	return prefix + "_" + hex.EncodeToString(random[:])
}

// opening returns the message object at the start of a stream.
func opening(model string, turn Turn) object {
	return object{
		"id": newID("msg"), "type": "message", "role": "assistant", "model": model,
		"content": []object{}, "stop_reason": nil, "stop_sequence": nil,
		"usage": turn.wireUsage(0),
	}
}

// whole returns the response to a request without streaming.
func whole(model string, turn Turn) object {
	message := opening(model, turn)
	content := []object{}
	if turn.Thinking != "" {
		content = append(content, object{"type": "thinking", "thinking": turn.Thinking, "signature": signature(turn.Thinking)})
	}
	for _, chunk := range turn.pieces() {
		if last := len(content) - 1; chunk.Join && last >= 0 {
			content[last]["text"] = content[last]["text"].(string) + chunk.Text
			continue
		}
		content = append(content, object{"type": "text", "text": chunk.Text})
	}
	for _, tool := range turn.Tools {
		content = append(content, object{"type": "tool_use", "id": newID("toolu"), "name": tool.Name, "input": tool.Input})
	}
	message["content"], message["stop_reason"] = content, turn.stopReason()
	message["usage"] = turn.wireUsage(turn.usage().Output)
	return message
}

// signature returns the signature of thinking. It is the same for the same text.
func signature(thinking string) string { return hex.EncodeToString([]byte("signed " + thinking)) }

func (t Turn) stopReason() string {
	switch {
	case t.StopReason != "":
		return t.StopReason
	case len(t.Tools) > 0:
		return "tool_use"
	default:
		return "end_turn"
	}
}

func (t Turn) usage() Usage {
	if t.Usage == (Usage{}) {
		return Usage{Input: 10, Output: 5}
	}
	return t.Usage
}

func (t Turn) wireUsage(output int) object {
	return object{
		"input_tokens": t.usage().Input, "output_tokens": output,
		"cache_creation_input_tokens": t.usage().CacheWrite, "cache_read_input_tokens": t.usage().CacheRead,
	}
}

// errorBody returns the API's error object for a status.
func errorBody(status int, text string) object {
	kinds := map[int]string{
		400: "invalid_request_error", 401: "authentication_error", 403: "permission_error",
		404: "not_found_error", 429: "rate_limit_error", 529: "overloaded_error",
	}
	kind := kinds[status]
	if kind == "" {
		kind = "api_error"
	}
	return object{"type": "error", "error": object{"type": kind, "message": text}}
}
