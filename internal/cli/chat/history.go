package chat

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/project"
)

// history holds the messages that the user wrote in the chats of a repository. Because it is only a
// convenience, errors of its file are ignored.
type history struct {
	messages []string // oldest first
	dir      string   // empty if the history is not stored
	name     string
	hidden   func(string) string
}

// Limits of a history.
const (
	maxHistory     = 200     // messages
	maxHistoryFile = 4 << 20 // bytes
)

// openHistory reads the history of a repository.
func openHistory(a *cli.App, p *project.Project) *history {
	sum := sha256.Sum256([]byte(p.Repo.Root))
	h := &history{hidden: p.Hidden, name: hex.EncodeToString(sum[:8]) + ".jsonl"}
	state := a.StateDir()
	if state == "" {
		return h
	}
	dir := filepath.Join(state, "chat")
	if os.MkdirAll(dir, 0o700) != nil {
		return h
	}
	h.dir = dir
	data, err := regularfile.ReadIn(dir, h.name, maxHistoryFile)
	if errors.As(err, new(*regularfile.SizeError)) {
		_ = os.Remove(filepath.Join(dir, h.name)) // start again
	}
	if err != nil {
		return h
	}
	for line := range strings.Lines(string(data)) {
		var text string
		if json.Unmarshal([]byte(line), &text) == nil && text != "" {
			h.messages = append(h.messages, text)
		}
	}
	if len(h.messages) > 2*maxHistory {
		h.messages = h.messages[len(h.messages)-maxHistory:]
		h.write(os.O_TRUNC, h.messages...)
	}
	return h
}

// add adds a message, unless it repeats the last one.
func (h *history) add(text string) {
	text = h.hidden(text)
	if n := len(h.messages); n > 0 && h.messages[n-1] == text {
		return
	}
	h.messages = append(h.messages, text)
	h.write(os.O_APPEND, text)
}

// write writes messages to the file, in one write.
func (h *history) write(how int, messages ...string) {
	if h.dir == "" {
		return
	}
	f, err := regularfile.OpenFileIn(h.dir, h.name, os.O_WRONLY|os.O_CREATE|how, 0o600)
	if err != nil {
		return
	}
	defer f.Close() //nolint:errcheck // see history
	var lines []byte
	for _, text := range messages {
		if line, err := json.Marshal(text); err == nil {
			lines = append(append(lines, line...), '\n')
		}
	}
	_, _ = f.Write(lines) // see history
}
