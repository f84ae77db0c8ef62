package fakeapi

import (
	"context"
	"encoding/json"
	"fmt"
)

// responses returns the dialect of the OpenAI Responses API.
func responses() dialect {
	return dialect{decode: (*Request).decodeResponses, whole: response, stream: streamResponse, fault: openAIError}
}

// wireResponses is the part of a Responses request that the fake reads.
type wireResponses struct {
	Model        string          `json:"model"`
	Stream       bool            `json:"stream"`
	Instructions string          `json:"instructions"`
	Input        json.RawMessage `json:"input"` // a string or items
	Tools        []wireTool      `json:"tools"`
}

// wireTool is a tool or a namespace with tools.
type wireTool struct {
	Type  string     `json:"type"`
	Name  string     `json:"name"`
	Tools []wireTool `json:"tools"`
}

// item is one item of a conversation.
type item struct {
	Type      string          `json:"type"` // empty means message
	Role      string          `json:"role"`
	Content   []itemPart      `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"` // function_call
	Input     string          `json:"input"`     // custom_tool_call
	Output    json.RawMessage `json:"output"`    // a string or parts
	Tools     []wireTool      `json:"tools"`     // additional_tools
}

type itemPart struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// decodeResponses converts a request to the form of the Messages API. Consecutive
// items of the model become one answer.
func (r *Request) decodeResponses(body []byte) error {
	var wire wireResponses
	if err := json.Unmarshal(body, &wire); err != nil {
		return fmt.Errorf("decode request: %w", err)
	}
	r.Model, r.Stream, r.System = wire.Model, wire.Stream, wire.Instructions
	r.offer(wire.Tools)
	var text string
	if json.Unmarshal(wire.Input, &text) == nil {
		r.add("user", Block{Type: "text", Text: text})
		return nil
	}
	var items []item
	if err := json.Unmarshal(wire.Input, &items); err != nil {
		return fmt.Errorf("decode input: %w", err)
	}
	for _, i := range items {
		r.take(i)
	}
	return nil
}

func (r *Request) offer(tools []wireTool) {
	for _, tool := range tools {
		if tool.Type == "namespace" {
			r.offer(tool.Tools)
			continue
		}
		r.Tools = append(r.Tools, tool.Name)
	}
}

func (r *Request) take(i item) {
	switch i.Type {
	case "function_call":
		r.add("assistant", Block{Type: "tool_use", ID: i.CallID, Name: i.Name, Input: rawOrString(i.Arguments)})
	case "custom_tool_call":
		r.add("assistant", Block{Type: "tool_use", ID: i.CallID, Name: i.Name, Input: json.RawMessage(encode(i.Input))})
	case "function_call_output", "custom_tool_call_output":
		r.add("user", Block{Type: "tool_result", ToolUseID: i.CallID, Result: outputText(i.Output)})
	case "additional_tools":
		r.offer(i.Tools)
	case "message", "":
		for _, part := range i.Content {
			if i.Role == "system" || i.Role == "developer" {
				r.System = joined(r.System, part.Text)
				continue
			}
			r.add(i.Role, Block{Type: "text", Text: part.Text})
		}
	}
}

// add appends a block to the last message if it has this role, or else to a new message.
func (r *Request) add(role string, block Block) {
	if last := len(r.Messages) - 1; last >= 0 && r.Messages[last].Role == role {
		r.Messages[last].Content = append(r.Messages[last].Content, block)
		return
	}
	r.Messages = append(r.Messages, Message{Role: role, Content: []Block{block}})
}

func outputText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var parts []itemPart
	if json.Unmarshal(raw, &parts) != nil {
		return string(raw)
	}
	for _, part := range parts {
		text = joined(text, part.Text)
	}
	return text
}

// response returns the response to a request without streaming.
func response(model string, turn Turn) object {
	output := []object{}
	for _, text := range turn.texts() {
		output = append(output, messageItem(newID("msg"), text))
	}
	for _, tool := range turn.Tools {
		output = append(output, callItem(newID("call"), tool))
	}
	return responseObject(newID("resp"), model, "completed", output, turn.responseUsage())
}

func responseObject(id, model, status string, output []object, usage any) object {
	return object{"id": id, "object": "response", "created_at": 1, "model": model, "status": status, "output": output, "usage": usage}
}

// streamResponse writes the answer as server-sent events: the items that codex
// reads, with their start, deltas and end.
func streamResponse(ctx context.Context, out *stream, model string, turn Turn) error {
	id := newID("resp")
	if err := out.send("response.created", object{"response": responseObject(id, model, "in_progress", []object{}, nil)}); err != nil {
		return err
	}
	output, err := out.items(ctx, turn)
	if err != nil {
		return err
	}
	return out.send("response.completed", object{"response": responseObject(id, model, "completed", output, turn.responseUsage())})
}

// items sends the texts and calls of a turn.
func (s *stream) items(ctx context.Context, turn Turn) ([]object, error) {
	var output []object
	for _, chunks := range turn.messages() {
		done, err := s.message(ctx, len(output), chunks)
		if err != nil {
			return nil, err
		}
		output = append(output, done)
	}
	if turn.Cut {
		return nil, errCut
	}
	for _, tool := range turn.Tools {
		call := callItem(newID("call"), tool)
		for _, event := range []string{"response.output_item.added", "response.output_item.done"} {
			if err := s.send(event, object{"output_index": len(output), "item": call}); err != nil {
				return nil, err
			}
		}
		output = append(output, call)
	}
	return output, nil
}

// message sends one message, as deltas and as a whole.
func (s *stream) message(ctx context.Context, index int, chunks []Chunk) (object, error) {
	id, text := newID("msg"), ""
	begun := messageItem(id, "")
	begun["content"], begun["status"] = []object{}, "in_progress"
	for i, chunk := range chunks {
		if err := s.holds.wait(ctx, chunk.Hold); err != nil {
			return nil, err
		}
		if i == 0 {
			if err := s.send("response.output_item.added", object{"output_index": index, "item": begun}); err != nil {
				return nil, err
			}
		}
		text += chunk.Text
		delta := object{"item_id": id, "output_index": index, "content_index": 0, "delta": chunk.Text}
		if err := s.send("response.output_text.delta", delta); err != nil {
			return nil, err
		}
	}
	whole := messageItem(id, text)
	return whole, s.send("response.output_item.done", object{"output_index": index, "item": whole})
}

// messages groups the pieces of the turn's text by message.
func (t Turn) messages() [][]Chunk {
	var all [][]Chunk
	for _, piece := range t.pieces() {
		if last := len(all) - 1; piece.Join && last >= 0 {
			all[last] = append(all[last], piece)
			continue
		}
		all = append(all, []Chunk{piece})
	}
	return all
}

// texts returns the complete texts of the turn's messages.
func (t Turn) texts() []string {
	var texts []string
	for _, chunks := range t.messages() {
		text := ""
		for _, chunk := range chunks {
			text += chunk.Text
		}
		texts = append(texts, text)
	}
	return texts
}

func messageItem(id, text string) object {
	return object{
		"type": "message", "id": id, "role": "assistant", "status": "completed",
		"content": []object{{"type": "output_text", "text": text, "annotations": []object{}}},
	}
}

// callItem returns a call of a function, or of a tool whose input is plain text.
func callItem(id string, tool Tool) object {
	if source, custom := tool.Input[customInput].(string); custom {
		return object{"type": "custom_tool_call", "id": newID("ctc"), "call_id": id, "name": tool.Name, "input": source, "status": "completed"}
	}
	return object{"type": "function_call", "id": newID("fc"), "call_id": id, "name": tool.Name, "arguments": encode(tool.Input), "status": "completed"}
}

func (t Turn) responseUsage() object {
	used := t.usage()
	return object{
		"input_tokens": used.Input, "input_tokens_details": object{"cached_tokens": 0},
		"output_tokens": used.Output, "output_tokens_details": object{"reasoning_tokens": 0},
		"total_tokens": used.Input + used.Output,
	}
}
