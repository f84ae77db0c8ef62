package fakeclaude

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// message is one message of the conversation, in the API's form.
type message struct {
	Role    string   `json:"role"`
	Content []object `json:"content"`
}

// transcript is the conversation. It is stored in a file so that it can be resumed.
type transcript struct {
	file     *os.File
	messages []message
}

// entry is one line of the file: one content block, unchanged.
type entry struct {
	Type    string  `json:"type"`
	Message message `json:"message"`
}

// errNoConversation is the real CLI's error if there is no conversation to resume.
type errNoConversation struct{ id string }

func (e errNoConversation) Error() string {
	return "No conversation found with session ID: " + e.id
}

var notSlug = lazyregexp.New(`[^A-Za-z0-9]`)

// transcriptPath returns the path of the transcript, which is the same as in the real CLI.
func transcriptPath(home, cwd, id string) string {
	config := os.Getenv("CLAUDE_CONFIG_DIR")
	if config == "" {
		config = filepath.Join(home, ".claude")
	}
	return filepath.Join(config, "projects", notSlug.ReplaceAllString(cwd, "-"), id+".jsonl")
}

// newTranscript begins a conversation. Its ID must be unused.
func newTranscript(path, id string) (*transcript, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("create transcript: %w", err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("Error: Session ID %s is already in use.", id) //nolint:staticcheck,revive // the real CLI's words
	}
	if err != nil {
		return nil, fmt.Errorf("create transcript: %w", err)
	}
	return &transcript{file: file}, nil
}

// resumeTranscript resumes a conversation, which may have been interrupted anywhere. A
// tool call without a result gets a result that states that, and an unanswered
// question gets the same message as in the real CLI.
func resumeTranscript(path, id string) (*transcript, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoConversation{id}
	}
	if err != nil {
		return nil, fmt.Errorf("resume: %w", err)
	}
	t := &transcript{file: file}
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 1<<30)
	for scanner.Scan() {
		var line entry
		if json.Unmarshal(scanner.Bytes(), &line) == nil && line.Message.Role != "" { // ignore an incomplete last line
			t.join(line.Message)
		}
	}
	if err := scanner.Err(); err != nil {
		return nil, errors.Join(fmt.Errorf("resume: %w", err), file.Close())
	}
	return t, t.repair()
}

func (t *transcript) repair() error {
	for _, id := range unanswered(t.messages) {
		cutOff := object{"type": "tool_result", "tool_use_id": id, "is_error": true, "content": "[Tool use interrupted]"}
		if err := t.add("user", cutOff); err != nil {
			return err
		}
	}
	if len(t.messages) == 0 || t.messages[len(t.messages)-1].Role == "assistant" {
		return nil
	}
	return t.add("assistant", textBlock("No response requested."))
}

// unanswered returns the IDs of the tool calls without a result.
func unanswered(messages []message) []any {
	var open []any
	for _, m := range messages {
		for _, block := range m.Content {
			switch block["type"] {
			case "tool_use":
				open = append(open, block["id"])
			case "tool_result":
				open = slices.DeleteFunc(open, func(id any) bool { return id == block["tool_use_id"] })
			}
		}
	}
	return open
}

// add appends a block to the conversation and to the file.
func (t *transcript) add(role string, block object) error {
	m := message{role, []object{block}}
	if _, err := t.file.WriteString(encode(entry{role, m}) + "\n"); err != nil {
		return fmt.Errorf("write transcript: %w", err)
	}
	t.join(m)
	return nil
}

// came records, as the real CLI does, that a message has arrived. The message is not in the
// conversation yet.
func (t *transcript) came() {
	_, _ = t.file.WriteString(encode(object{"type": "queue-operation", "operation": "enqueue"}) + "\n") // not needed to resume
}

// join appends blocks to the last message if it has the same role, or else as a new message.
func (t *transcript) join(m message) {
	if last := len(t.messages) - 1; last >= 0 && t.messages[last].Role == m.Role {
		t.messages[last].Content = append(t.messages[last].Content, m.Content...)
		return
	}
	t.messages = append(t.messages, m)
}

func (t *transcript) close() error { return t.file.Close() }

func textBlock(text string) object { return object{"type": "text", "text": text} }
