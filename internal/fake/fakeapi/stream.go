package fakeapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// object is one JSON object on the wire.
type object = map[string]any

// stream writes one answer as server-sent events.
type stream struct {
	writer  http.ResponseWriter
	flusher *http.ResponseController
	holds   *holds
	index   int  // of the open block, or of the next one
	open    bool // a text block is open
}

// play sends the turn. The error means that the client disconnected or the server was
// closed.
func (s *stream) play(ctx context.Context, message object, turn Turn) error {
	if err := s.send("message_start", object{"message": message}); err != nil {
		return err
	}
	if err := s.thinking(turn.Thinking); err != nil {
		return err
	}
	for _, chunk := range turn.pieces() {
		if err := s.text(ctx, chunk); err != nil {
			return err
		}
	}
	if turn.Cut && len(turn.Tools) == 0 {
		return errCut
	}
	if turn.Break != "" {
		return s.send("error", object{"error": object{"type": turn.Break, "message": "scripted error"}})
	}
	if err := s.closeText(); err != nil {
		return err
	}
	for i, tool := range turn.Tools {
		cut := turn.Cut && i == len(turn.Tools)-1
		if err := s.tool(newID("toolu"), tool, cut); err != nil {
			return err
		}
	}
	return s.finish(turn)
}

func (s *stream) thinking(text string) error {
	if text == "" {
		return nil
	}
	return errors.Join(
		s.start(object{"type": "thinking", "thinking": "", "signature": ""}),
		s.delta(object{"type": "thinking_delta", "thinking": text}),
		s.delta(object{"type": "signature_delta", "signature": signature(text)}),
		s.stop(),
	)
}

// pieces returns all text of the turn in order.
func (t Turn) pieces() []Chunk {
	if t.Text == "" {
		return t.Chunks
	}
	return append([]Chunk{{Text: t.Text}}, t.Chunks...)
}

func (s *stream) text(ctx context.Context, chunk Chunk) error {
	if !chunk.Join {
		if err := s.closeText(); err != nil {
			return err
		}
	}
	if err := s.holds.wait(ctx, chunk.Hold); err != nil {
		return err
	}
	if !s.open {
		s.open = true
		if err := s.start(object{"type": "text", "text": ""}); err != nil {
			return err
		}
	}
	return s.delta(object{"type": "text_delta", "text": chunk.Text})
}

func (s *stream) closeText() error {
	if !s.open {
		return nil
	}
	s.open = false
	return s.stop()
}

// tool sends one call. It splits the input into two deltas, as the real API may do.
func (s *stream) tool(id string, tool Tool, cut bool) error {
	input := encode(tool.Input)
	if err := s.start(object{"type": "tool_use", "id": id, "name": tool.Name, "input": object{}}); err != nil {
		return err
	}
	half := len(input) / 2
	if err := s.delta(object{"type": "input_json_delta", "partial_json": input[:half]}); err != nil {
		return err
	}
	if cut {
		return errCut
	}
	if err := s.delta(object{"type": "input_json_delta", "partial_json": input[half:]}); err != nil {
		return err
	}
	return s.stop()
}

func (s *stream) finish(turn Turn) error {
	if err := s.send("message_delta", object{
		"delta": object{"stop_reason": turn.stopReason(), "stop_sequence": nil},
		"usage": object{"output_tokens": turn.usage().Output},
	}); err != nil {
		return err
	}
	return s.send("message_stop", object{})
}

func (s *stream) start(block object) error {
	return s.send("content_block_start", object{"index": s.index, "content_block": block})
}

func (s *stream) delta(delta object) error {
	return s.send("content_block_delta", object{"index": s.index, "delta": delta})
}

func (s *stream) stop() error {
	s.index++
	return s.send("content_block_stop", object{"index": s.index - 1})
}

// send writes one event and flushes it.
func (s *stream) send(event string, data object) error {
	data["type"] = event
	return s.write("event: "+event+"\n", encode(data))
}

// data writes one event without a name and flushes it.
func (s *stream) data(data string) error { return s.write("", data) }

func (s *stream) write(name, data string) error {
	if _, err := fmt.Fprintf(s.writer, "%sdata: %s\n\n", name, data); err != nil {
		return fmt.Errorf("send an event: %w", err)
	}
	if err := s.flusher.Flush(); err != nil {
		return fmt.Errorf("send an event: %w", err)
	}
	return nil
}

// encode encodes a value from YAML or literals, which cannot fail.
func encode(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("fakeapi: scenario holds what JSON cannot: %v", err))
	}
	return string(data)
}
