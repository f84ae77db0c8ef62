package session

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/process/failpoint"
)

// inboxDir is the directory of requests to running sessions, relative to the project.
// It has a directory for each session with one file per request. The
// process that runs the session reads them.
const inboxDir = ".coven/run/inbox"

// maxRequest limits the size of a request in bytes.
const maxRequest = 8 << 20

// Kinds of requests.
const (
	KindMessage = "message" // for the running agent
	KindCancel  = "cancel"  // stop the session
	KindAnswer  = "answer"  // to a question about a tool call
)

// Request is a person's request to a session that runs in another process.
type Request struct {
	Kind string    `json:"kind"`
	ID   string    `json:"id"` // a UUID, set by Ask, or the commit of a mail
	Text string    `json:"text,omitempty"`
	By   string    `json:"by"`
	Time time.Time `json:"time"`

	Answer *event.ApprovalAnswer `json:"answer,omitempty"` // its By and Request are ignored

	file string
}

// Ask writes a request to the inbox of a session and returns its file name. A message with the ID of an earlier one has no effect.
func Ask(root, id string, r Request) (name string, err error) {
	dir := filepath.Join(root, inboxDir, id)
	if err := makeDir(root, filepath.Join(inboxDir, id)); err != nil {
		return "", fmt.Errorf("send a request to session %s: %w", id, err)
	}
	r.ID = cmp.Or(r.ID, uuid.NewString())
	data, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("send a request to session %s: %w", id, err)
	}
	// Names sort in the order of the requests.
	name = filepath.Join(dir, fmt.Sprintf("%020d-%s.json", r.Time.UnixNano(), r.ID))
	failpoint.Point("inbox.ask.before")
	if err := regularfile.Replace(name, append(data, '\n'), fileMode); err != nil {
		return "", fmt.Errorf("send a request to session %s: %w", id, err)
	}
	failpoint.Point("inbox.ask.after")
	return name, nil
}

// Pending reports whether a request is still in the inbox.
func Pending(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// Withdraw removes a request. It returns false if the request has already been accepted.
func Withdraw(name string) bool { return os.Remove(name) == nil }

// Requests returns the requests to the session, oldest first. It removes unreadable
// files.
func (s *Session) Requests() ([]Request, error) {
	dir := s.inbox()
	if err := regularfile.Directory(filepath.Dir(filepath.Dir(filepath.Dir(s.Dir))), filepath.Join(inboxDir, s.ID)); err != nil {
		return nil, fmt.Errorf("read the inbox: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the inbox: %w", err)
	}
	var found []Request
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		r := Request{file: filepath.Join(dir, e.Name())}
		data, err := regularfile.ReadIn(dir, e.Name(), maxRequest)
		if errors.Is(err, fs.ErrNotExist) {
			continue // withdrawn
		}
		if err != nil || json.Unmarshal(data, &r) != nil {
			_ = os.Remove(r.file)
			continue
		}
		found = append(found, r)
	}
	slices.SortFunc(found, func(a, b Request) int { return strings.Compare(a.file, b.file) })
	return found, nil
}

// Take removes an accepted request. It returns false if the sender has withdrawn it.
func (s *Session) Take(r Request) bool {
	failpoint.Point("inbox.take.before")
	taken := os.Remove(r.file) == nil
	failpoint.Point("inbox.take.after")
	return taken
}

// inbox returns the directory of requests to the session.
func (s *Session) inbox() string {
	return filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(s.Dir))), inboxDir, s.ID)
}

// emptyInbox removes the session's inbox if it is empty, so that
// ended sessions leave no directory behind.
func (s *Session) emptyInbox() { _ = os.Remove(s.inbox()) }

// IsRequest reports whether name, returned by Ask, belongs to the request with the ID.
func IsRequest(name, id string) bool {
	return id != "" && strings.HasSuffix(name, "-"+id+".json")
}
