package fakeclaude

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// prompt is one message from standard input.
type prompt struct {
	line   string // unchanged
	uuid   string // of the message; may be empty
	blocks []object
	err    error // the line is invalid; nothing follows
}

// readInput reads standard input to its end in the background, and calls came for each
// message.
func readInput(came func()) <-chan prompt {
	prompts := make(chan prompt, 64)
	go func() {
		defer close(prompts)
		reader := bufio.NewReader(os.Stdin)
		for {
			line, err := reader.ReadString('\n')
			if one, isMessage := parsePrompt(line); isMessage {
				prompts <- one
				came()
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					prompts <- prompt{err: fmt.Errorf("read input: %w", err)}
				}
				return
			}
		}
	}()
	return prompts
}

// endLine ends the last text with a newline.
func (p prompt) endLine() {
	if last := len(p.blocks) - 1; last >= 0 && p.blocks[last]["type"] == "text" {
		p.blocks[last] = textBlock(text(p.blocks[last], "text") + "\n")
	}
}

// parsePrompt returns false for a line without a message, such as an empty line.
func parsePrompt(line string) (prompt, bool) {
	if line == "" || line == "\n" {
		return prompt{}, false
	}
	var wire struct {
		Type    string `json:"type"`
		UUID    string `json:"uuid"`
		Message struct {
			Content json.RawMessage `json:"content"`
		} `json:"message"`
	}
	if err := json.Unmarshal([]byte(line), &wire); err != nil {
		return prompt{line: line, err: fmt.Errorf("Error parsing streaming input line: %s: %w", line, err)}, true
	}
	if wire.Type != "user" {
		return prompt{}, false
	}
	var text string
	if json.Unmarshal(wire.Message.Content, &text) == nil {
		return prompt{line: line, uuid: wire.UUID, blocks: []object{textBlock(text)}}, true
	}
	var blocks []object
	if err := json.Unmarshal(wire.Message.Content, &blocks); err != nil {
		return prompt{line: line, err: fmt.Errorf("Error parsing streaming input line: %s: %w", line, err)}, true
	}
	return prompt{line: line, uuid: wire.UUID, blocks: blocks}, true
}
