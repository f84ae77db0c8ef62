package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"
	"github.com/google/uuid"

	"github.com/coven-run/coven/internal/failpoint"
	"github.com/coven-run/coven/internal/regularfile"
)

// inboxDir is where requests to running sessions are put, below a project's
// root: one directory for each session, one file for each request. Whoever runs
// the session looks there.
const inboxDir = ".coven/run/inbox"

// maxRequest is how many bytes a request may have.
const maxRequest = 8 << 20

// The kinds of requests.
const (
	KindMessage = "message" // for the running agent
	KindCancel  = "cancel"  // stop
)

// Request is what a person asks of a session that another process runs.
type Request struct {
	Kind string    `json:"kind"`
	ID   string    `json:"id"` // a UUID; Ask makes it
	Text string    `json:"text,omitempty"`
	By   string    `json:"by"`
	Time time.Time `json:"time"`

	file string
}

// Ask puts a request where the process that runs the session finds it. The name
// says afterwards whether it was taken: see Asked.
func Ask(root, id string, r Request) (name string, err error) {
	dir := filepath.Join(root, inboxDir, id)
	if err := makeDir(root, filepath.Join(inboxDir, id)); err != nil {
		return "", fmt.Errorf("ask session %s: %w", id, err)
	}
	r.ID = uuid.NewString()
	data, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("ask session %s: %w", id, err)
	}
	// Names sort as the requests were made.
	name = filepath.Join(dir, fmt.Sprintf("%020d-%s.json", r.Time.UnixNano(), r.ID))
	failpoint.Point("inbox.ask.before")
	if err := renameio.WriteFile(name, append(data, '\n'), fileMode); err != nil {
		return "", fmt.Errorf("ask session %s: %w", id, err)
	}
	failpoint.Point("inbox.ask.after")
	return name, nil
}

// Asked reports whether a request is still in the inbox.
func Asked(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// Withdraw takes a request back. It is false when it was taken meanwhile.
func Withdraw(name string) bool { return os.Remove(name) == nil }

// Requests returns what people ask of the session, the oldest first. What
// cannot be read is removed.
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

// Take removes a request that was done. It is false when its sender has
// withdrawn it.
func (s *Session) Take(r Request) bool {
	failpoint.Point("inbox.take.before")
	taken := os.Remove(r.file) == nil
	failpoint.Point("inbox.take.after")
	return taken
}

// inbox is the directory of the session's requests.
func (s *Session) inbox() string {
	return filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(s.Dir))), inboxDir, s.ID)
}

// emptyInbox removes the directory of a session's requests when nothing is in
// it, so that none are left of sessions that are over.
func (s *Session) emptyInbox() { _ = os.Remove(s.inbox()) }
