package session

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/process/failpoint"
)

// Part is a part of the conversation and a line of messages.jsonl.
type Part struct {
	V     int             `json:"v"`
	Time  time.Time       `json:"time"`
	Path  string          `json:"path"` // of the step
	Type  string          `json:"type"` // text, reasoning, tool_call, tool_result, snapshot, summary
	Text  string          `json:"text,omitempty"`
	ID    string          `json:"id,omitempty"` // of the tool call, or of the last message that a summary replaces
	Tool  string          `json:"tool,omitempty"`
	Input json.RawMessage `json:"input,omitempty"`
	Error bool            `json:"error,omitempty"`

	Snapshot *event.Snapshot `json:"snapshot,omitempty"` // before the tool call
	File     *FileState      `json:"file,omitempty"`     // the file in the tool call, as in the snapshot

	// Fields for messages of coven's own loop:
	Conversation string `json:"conversation,omitempty"`
	Message      string `json:"message,omitempty"` // its ID
	Role         string `json:"role,omitempty"`    // user, assistant
	Signature    string `json:"signature,omitempty"`
	Last         bool   `json:"last,omitempty"`     // the last part of the message
	Messages     int    `json:"messages,omitempty"` // number of messages that a summary replaces
	Memory       string `json:"memory,omitempty"`   // part of the working memory that follows a summary
	Usage        *Used  `json:"usage,omitempty"`    // of the request that the message answers; set on its last part
	ForkedFrom   string `json:"forked_from,omitempty"`
}

// Used is the token usage of one request, as reported by the model API.
type Used struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read,omitempty"`
	CacheWrite int64 `json:"cache_write,omitempty"`
}

// FileState is the state of a file in a snapshot.
type FileState struct {
	Path  string `json:"path"`           // relative to the worktree
	State string `json:"state"`          // tracked, untracked, ignored (not in the snapshot), absent
	Oid   string `json:"oid,omitempty"`  // of its blob in git
	Mode  string `json:"mode,omitempty"` // 100644, 100755 or 120000
}

// Message is a message of a conversation in coven's own loop.
type Message struct {
	ID    string
	Role  string // user, assistant
	Parts []Part
	Usage *Used // of the request that it answers; nil if unknown
}

// Limits of messages.jsonl, in bytes.
const (
	maxSaid         = 1 << 20   // of the text, and of the input, of a part of an agent CLI
	maxMessage      = 80 << 20  // of a line; longer ones are skipped
	maxMessages     = 512 << 20 // of the file
	maxConversation = 64 << 20  // of the file when a part of an agent CLI is appended
)

// Say appends a part of the conversation to messages.jsonl. The conversation of an agent CLI
// is only for people and later readers, so it is not synced to disk, long parts are shortened, and nothing is
// appended to a file that is too long.
func (s *Session) Say(p Part) error {
	if info, err := os.Lstat(filepath.Join(s.Dir, messagesFile)); err == nil && info.Size() > maxConversation && p.Snapshot == nil {
		return nil
	}
	if len(p.Text) > maxSaid {
		p.Text = shortened(p.Text)
	}
	if len(p.Input) > maxSaid {
		p.Input, _ = json.Marshal(shortened(string(p.Input))) // strings can be encoded
	}
	return s.say(false, p)
}

// shortened returns the beginning of a text that is too long.
func shortened(text string) string {
	return fmt.Sprintf("%s… (%d bytes in total)", strings.ToValidUTF8(text[:maxSaid], ""), len(text))
}

// Record appends a message of a conversation. It is durable when Record returns: after an
// interruption the conversation continues after its last message.
func (s *Session) Record(path, conversation string, m Message) error {
	parts := slices.Clone(m.Parts)
	if len(parts) == 0 { // a model may return an empty answer
		parts = []Part{{Type: "text"}}
	}
	for i := range parts {
		parts[i].Path, parts[i].Conversation, parts[i].Message, parts[i].Role = path, conversation, m.ID, m.Role
		parts[i].Last = i == len(parts)-1
	}
	parts[len(parts)-1].Usage = m.Usage
	return s.say(true, parts...)
}

// Copy appends parts of another session's conversation and keeps their times. They are durable when Copy
// returns.
func (s *Session) Copy(parts []Part) error {
	const most = 1000 // parts per write
	for all := range slices.Chunk(parts, most) {
		if err := s.say(true, all...); err != nil {
			return err
		}
		failpoint.Point("session.copied")
	}
	return nil
}

// say appends parts in one write.
func (s *Session) say(durable bool, parts ...Part) error {
	var lines []byte
	for _, p := range parts {
		if p.V = 1; p.Time.IsZero() {
			p.Time = s.now().UTC()
		}
		line, err := json.Marshal(p)
		if err != nil {
			return fmt.Errorf("encode message: %w", err)
		}
		if s.hider != nil {
			line = s.hider.JSON(line)
		}
		lines = append(append(lines, bytes.TrimSpace(line)...), '\n')
	}
	f, err := regularfile.OpenFileIn(s.Dir, messagesFile, os.O_RDWR|os.O_APPEND|os.O_CREATE, fileMode)
	if err != nil {
		return fmt.Errorf("append message: %w", err)
	}
	defer f.Close() //nolint:errcheck // the write was checked
	s.saying.Lock()
	defer s.saying.Unlock()
	if info, err := f.Stat(); err == nil && info.Size()+int64(len(lines)) > maxMessages {
		return fmt.Errorf("append message: %s would have more than %d bytes", messagesFile, maxMessages)
	}
	if !s.said && torn(f) { // by a previous process
		lines = append([]byte("\n"), lines...)
	}
	_, err = f.Write(lines)
	if err == nil && durable {
		err = f.Sync()
	}
	if s.said = err == nil; !s.said {
		return fmt.Errorf("append message: %w", err)
	}
	return nil
}

// torn reports whether a file ends with an incomplete line.
func torn(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return false
	}
	last := make([]byte, 1)
	_, err = f.ReadAt(last, info.Size()-1)
	return err == nil && last[0] != '\n'
}

// Parts reads the conversation of the session in dir. It omits lines that a crash truncated.
func Parts(dir string) ([]Part, error) {
	parts := []Part{}
	err := EachPart(dir, func(p Part) { parts = append(parts, p) })
	return parts, err
}

// EachPart calls see for each part that Parts returns.
func EachPart(dir string, see func(Part)) error {
	f, err := regularfile.OpenIn(dir, messagesFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the messages in %s: %w", filepath.Join(dir, messagesFile), err)
	}
	defer f.Close() //nolint:errcheck // read only
	in := bufio.NewReader(f)
	for {
		line, err := boundedLine(in)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read the messages in %s: %w", filepath.Join(dir, messagesFile), err)
		}
		var part Part
		if json.Unmarshal(line, &part) == nil {
			see(part)
		}
		if err != nil {
			return nil
		}
	}
}

// boundedLine reads a line. It returns nothing of one that is longer than maxMessage.
func boundedLine(in *bufio.Reader) (line []byte, err error) {
	for long := false; ; {
		part, err := in.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxMessage; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// Conversation returns the messages of a conversation that Record appended, oldest first. It omits a message
// that a crash truncated, because coven never acted on it.
func (s *Session) Conversation(id string) ([]Message, error) {
	parts, err := Parts(s.Dir)
	if err != nil {
		return nil, err
	}
	var all []Message
	var now Message
	for _, p := range parts {
		if p.Conversation != id || id == "" {
			continue
		}
		if p.Message != now.ID {
			now = Message{ID: p.Message, Role: p.Role}
		}
		now.Usage = p.Usage
		if now.Parts = append(now.Parts, p); p.Last {
			all = append(all, now)
		}
	}
	return all, nil
}

// KeepWorking replaces working.json, a view of the agent's working memory for people and other programs.
// coven does not read it.
func (s *Session) KeepWorking(memory []byte) error {
	if s.hider != nil {
		memory = s.hider.JSON(memory)
	}
	if err := regularfile.Replace(filepath.Join(s.Dir, workingFile), memory, fileMode); err != nil {
		return fmt.Errorf("write %s: %w", workingFile, err)
	}
	failpoint.Point("session.working")
	return nil
}
