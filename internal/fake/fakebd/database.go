package fakebd

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// stateDir is the directory of the fake's files below .beads.
const stateDir = "fakebd"

// database is the complete state of a repository.
type database struct {
	Prefix  string   `json:"prefix"`
	Project string   `json:"project"`
	Issues  []*issue `json:"issues"`

	path    string
	changed bool
}

// issue is a task. Its fields are in the order in which bd prints them.
type issue struct {
	ID           string          `json:"id"`
	Title        string          `json:"title"`
	Description  string          `json:"description,omitempty"`
	Design       string          `json:"design,omitempty"`
	Acceptance   string          `json:"acceptance_criteria,omitempty"`
	Notes        string          `json:"notes,omitempty"`
	Status       string          `json:"status,omitempty"`
	Priority     int             `json:"priority"`
	Type         string          `json:"issue_type,omitempty"`
	Assignee     string          `json:"assignee,omitempty"`
	Owner        string          `json:"owner,omitempty"`
	Estimate     *int            `json:"estimated_minutes,omitempty"`
	CreatedAt    time.Time       `json:"created_at"`
	CreatedBy    string          `json:"created_by,omitempty"`
	UpdatedAt    time.Time       `json:"updated_at"`
	StartedAt    *time.Time      `json:"started_at,omitempty"`
	ClosedAt     *time.Time      `json:"closed_at,omitempty"`
	CloseReason  string          `json:"close_reason,omitempty"`
	DeferUntil   *time.Time      `json:"defer_until,omitempty"`
	ExternalRef  string          `json:"external_ref,omitempty"`
	Metadata     json.RawMessage `json:"metadata,omitempty"`
	Labels       []string        `json:"labels,omitempty"`
	Dependencies []edge          `json:"dependencies,omitempty"`
	Comments     []remark        `json:"comments,omitempty"`
	Ephemeral    bool            `json:"ephemeral,omitempty"`
	Pinned       bool            `json:"pinned,omitempty"`
	Template     bool            `json:"is_template,omitempty"`
}

type edge struct {
	IssueID   string    `json:"issue_id"`
	DependsOn string    `json:"depends_on_id"`
	Type      string    `json:"type"`
	CreatedAt time.Time `json:"created_at"`
	CreatedBy string    `json:"created_by,omitempty"`
	Metadata  string    `json:"metadata,omitempty"`
}

type remark struct {
	ID        json.RawMessage `json:"id"` // a number in old files
	IssueID   string          `json:"issue_id"`
	Author    string          `json:"author"`
	Text      string          `json:"text"`
	CreatedAt time.Time       `json:"created_at"`
}

// open reads the database and locks it until unlock is called.
func (r *run) open() (unlock func(), err error) {
	if r.beads == "" {
		return nil, errors.New("no .beads")
	}
	unlock, err = lock(filepath.Join(r.beads, stateDir, "lock"))
	if err != nil {
		return nil, err
	}
	path := r.state()
	data, err := os.ReadFile(path)
	r.db = &database{path: path}
	if err == nil {
		err = json.Unmarshal(data, r.db)
	} else if filepath.Base(path) == phantom {
		err = os.MkdirAll(filepath.Join(r.beads, "embeddeddolt", "beads", ".dolt"), 0o755)
	}
	if err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// lock waits for a lock file in an existing directory.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil // closing releases the lock
}

func (d *database) save() error {
	data, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("save the database: %w", err)
	}
	next := d.path + ".next"
	if err := os.WriteFile(next, data, 0o644); err != nil {
		return fmt.Errorf("save the database: %w", err)
	}
	return os.Rename(next, d.path)
}

func (d *database) get(id string) *issue {
	for _, i := range d.Issues {
		if i.ID == id {
			return i
		}
	}
	return nil
}

// resolve finds an issue by its ID or, as bd does, by a prefix of the part after the
// database's prefix.
func (d *database) resolve(id string) (*issue, error) {
	if i := d.get(id); i != nil {
		return i, nil
	}
	part := strings.TrimPrefix(id, d.Prefix+"-")
	var found []*issue
	for _, i := range d.Issues {
		if part != "" && strings.HasPrefix(strings.TrimPrefix(i.ID, d.Prefix+"-"), part) {
			found = append(found, i)
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("no issue found matching %q", id)
	case 1:
		return found[0], nil
	}
	return nil, fmt.Errorf("ambiguous ID %q matches %d issues", id, len(found))
}

func (d *database) newID() string {
	for {
		id := d.Prefix + "-" + strings.ToLower(rand.Text())[:3]
		if d.get(id) == nil {
			return id
		}
	}
}

// sorted returns the issues in bd's order: by priority, newest first.
func (d *database) sorted() []*issue {
	all := slices.Clone(d.Issues)
	slices.SortStableFunc(all, func(a, b *issue) int {
		if a.Priority != b.Priority {
			return a.Priority - b.Priority
		}
		if c := b.CreatedAt.Compare(a.CreatedAt); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return all
}

// second returns a time with the precision of the database.
func second(t time.Time) time.Time { return t.UTC().Round(time.Second) }

// touch marks an issue as changed now.
func (r *run) touch(i *issue) {
	i.UpdatedAt = second(r.now())
	r.db.changed = true
}
