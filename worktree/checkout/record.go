package checkout

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/text/shellword"
)

// A record describes a move. It is written before the first effect of the move and removed at its end.
type record struct {
	Checkout string   `json:"checkout"`
	From     string   `json:"from"`
	To       string   `json:"to"`
	Ref      string   `json:"ref"`
	Task     string   `json:"task,omitempty"`
	Token    string   `json:"token"`
	Stage    string   `json:"stage,omitempty"` // directory of staged and displaced files
	Index    node     `json:"index"`           // the merged index
	Steps    []step   `json:"steps,omitempty"`
	Changes  []change `json:"changes,omitempty"`
	Dirs     []name   `json:"dirs,omitempty"` // directories to create for additions
}

// A step exchanges, adds or removes one path.
type step struct {
	Path name        `json:"path"`
	Have fingerprint `json:"have,omitempty"` // empty if the path is added
	Want fingerprint `json:"want,omitempty"` // empty if the path is removed
	Node node        `json:"node"`           // of the staged file
}

// A change is an index entry before and after the move.
type change struct {
	Path name   `json:"path"`
	Old  string `json:"old,omitempty"` // "MODE OID", or empty
	New  string `json:"new,omitempty"`
}

// A name is a path. It need not be valid UTF-8.
type name string

// MarshalText escapes bytes that JSON cannot represent.
func (n name) MarshalText() ([]byte, error) { return []byte(url.PathEscape(string(n))), nil }

// UnmarshalText decodes the output of MarshalText.
func (n *name) UnmarshalText(text []byte) error {
	path, err := url.PathUnescape(string(text))
	*n = name(path)
	return err
}

func (c *Checkout) recordPath() string { return c.State + ".json" }

// save writes the record durably.
func (m *Move) save() error {
	raw, err := json.Marshal(m.rec)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(m.c.State), 0o755)
	}
	if err == nil {
		err = regularfile.Replace(m.c.recordPath(), raw, 0o644)
	}
	if err != nil {
		return fmt.Errorf("record the update of %s: %w", m.c.top(), err)
	}
	return nil
}

// A Left describes an interrupted move.
type Left struct {
	Ref      string // the branch
	Task     string
	From, To string
}

// Left returns the interrupted move of this checkout, or nil.
func (c *Checkout) Left() (*Move, *Left, error) {
	raw, err := os.ReadFile(c.recordPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	m := &Move{c: c}
	if err == nil {
		err = json.Unmarshal(raw, &m.rec)
	}
	if err == nil && (m.rec.Token == "" || m.rec.Ref == "") {
		err = errors.New("it has no token or no branch")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("checkout %s: the record of a landing cannot be read: %w; next: rm %s", c.top(), err, shellword.Quote(c.recordPath()))
	}
	return m, &Left{Ref: m.rec.Ref, Task: m.rec.Task, From: m.rec.From, To: m.rec.To}, nil
}
