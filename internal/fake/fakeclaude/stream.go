package fakeclaude

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// streamReader reads one answer from server-sent events.
type streamReader struct {
	show    func(block, message object) error
	piece   func(event json.RawMessage) // may be nil
	message object                      // from message_start
	block   object                      // the open block
	input   strings.Builder
	answer  answer
	shown   bool  // at least one block was complete
	failed  error // an error from show
}

// streamEvent is an event of any type.
type streamEvent struct {
	Type    string `json:"type"`
	Message object `json:"message"`
	Block   object `json:"content_block"`
	Delta   struct {
		Type       string `json:"type"`
		Text       string `json:"text"`
		JSON       string `json:"partial_json"`
		StopReason string `json:"stop_reason"`
	} `json:"delta"`
	Usage usage `json:"usage"`
}

// read reads the events. It returns nil once the answer is complete.
func (s *streamReader) read(body io.Reader) error {
	scanner := bufio.NewScanner(body)
	scanner.Buffer(nil, 1<<30)
	for scanner.Scan() {
		data, isData := strings.CutPrefix(scanner.Text(), "data: ")
		if !isData {
			continue
		}
		var event streamEvent
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			return fmt.Errorf("decode stream: %w", err)
		}
		if err := s.event(event); err != nil {
			return err
		}
		if s.piece != nil {
			s.piece(json.RawMessage(data))
		}
		if event.Type == "message_stop" {
			return nil
		}
	}
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("read stream: %w", err)
	}
	return io.ErrUnexpectedEOF
}

func (s *streamReader) event(event streamEvent) error {
	switch event.Type {
	case "message_start":
		s.start(event.Message)
	case "content_block_start":
		s.block = event.Block
		s.input.Reset()
	case "content_block_delta":
		s.delta(event)
	case "content_block_stop":
		return s.finishBlock()
	case "message_delta":
		s.answer.stopReason = event.Delta.StopReason
		s.answer.usage.Output = event.Usage.Output
	}
	return nil
}

func (s *streamReader) start(opening object) {
	s.message = opening
	if used, isObject := opening["usage"].(object); isObject {
		tokens, _ := used["input_tokens"].(float64)
		s.answer.usage.Input = int(tokens)
	}
}

func (s *streamReader) delta(event streamEvent) {
	switch event.Delta.Type {
	case "text_delta":
		text, _ := s.block["text"].(string)
		s.block["text"] = text + event.Delta.Text
	case "input_json_delta":
		s.input.WriteString(event.Delta.JSON)
	}
}

func (s *streamReader) finishBlock() error {
	switch s.block["type"] {
	case "text":
		s.answer.text, _ = s.block["text"].(string)
	case "tool_use":
		input := object{}
		if s.input.Len() > 0 {
			if err := json.Unmarshal([]byte(s.input.String()), &input); err != nil {
				return fmt.Errorf("decode tool input: %w", err)
			}
		}
		withDefaults(s.block["name"], input)
		s.block["input"] = input
		s.answer.calls = append(s.answer.calls, newCall(s.block))
	}
	s.shown = true
	s.failed = s.show(s.block, s.message)
	return s.failed
}
