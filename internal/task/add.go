package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/text/didyoumean"
	"github.com/coven-run/coven/internal/text/jsonline"
)

// Add adds a task and returns it with its new ID. It fails with ErrInvalid if the task
// is not acceptable, with ErrNotFound if a task in After does not exist, and with a
// *CycleError if the task could never become ready.
func (f *File) Add(ctx context.Context, n New) (Task, error) {
	if err := n.check(); err != nil {
		return Task{}, err
	}
	// Create the directory before locking it.
	if err := os.MkdirAll(filepath.Dir(f.path), 0o755); err != nil {
		return Task{}, fmt.Errorf("write tasks: %w", err)
	}
	var added Task
	err := f.update(ctx, func(d *document) error {
		if err := errors.Join(d.checkType(n.Type), f.checkAfter(d, n.After)); err != nil {
			return err
		}
		id, err := newID(d, f.path)
		if err != nil {
			return err
		}
		line, err := n.line(id, stamp(f.now()), d.typed)
		if err == nil {
			err = checkLine(line)
		}
		if err != nil {
			return err
		}
		err = d.add(line)
		added = d.tasks[id]
		return err
	})
	if err != nil {
		return Task{}, err
	}
	return added, nil
}

func (n New) check() error { return checkFields(n.Title, n.Priority, n.Labels, n.size()) }

// checkFields returns an error if a task cannot have these fields. size is that of its texts in bytes.
func checkFields(title string, priority int, labels []string, size int) error {
	switch {
	case strings.TrimSpace(title) == "":
		return fmt.Errorf("%w: the title is empty", ErrInvalid)
	case priority < 0 || priority > 4:
		return fmt.Errorf("%w: priority %d is not between 0 (most urgent) and 4", ErrInvalid, priority)
	case slices.Contains(labels, ""):
		return fmt.Errorf("%w: a label is empty", ErrInvalid)
	case size > MaxText:
		return tooMuchText(size)
	}
	return nil
}

func tooMuchText(size int) error {
	return fmt.Errorf("%w: the text has %d bytes; the maximum is %d", ErrInvalid, size, MaxText)
}

// checkLine returns an error if a task's JSON line is too long to be read.
func checkLine(line []byte) error {
	if len(line) >= MaxText { // the line ending counts, too
		return tooMuchText(len(line))
	}
	return nil
}

// Types returns the types of tasks that coven adds. Other types that a file already contains are
// allowed, too. A program has its own rules.
func Types() []string { return []string{"task", "bug", "feature", "chore", "epic"} }

// checkType returns an error unless the type of a new task is one of Types or the
// type of another task in the file.
func (d *document) checkType(name string) error {
	if name == "" || slices.Contains(Types(), name) {
		return nil
	}
	for _, t := range d.tasks {
		if t.Type == name {
			return nil
		}
	}
	return fmt.Errorf("%w: type %q is not one of %s%s", ErrInvalid, name, strings.Join(Types(), ", "), didyoumean.Aside(name, Types()))
}

func (f *File) checkAfter(d *document, after []string) error {
	for _, id := range after {
		if _, err := d.get(id); err != nil {
			return err
		}
	}
	if ids := f.graph(d).cycle(after); ids != nil {
		return &CycleError{IDs: ids}
	}
	return nil
}

// edge is a dependency in the format of beads.
type edge struct {
	IssueID     string `json:"issue_id"`
	DependsOnID string `json:"depends_on_id"`
	Type        string `json:"type"`
	CreatedAt   string `json:"created_at"`
	CreatedBy   string `json:"created_by"`
	Metadata    string `json:"metadata"`
}

// record is a new line, with members in the order of bd export.
type record struct {
	Kind         string   `json:"_type,omitempty"`
	ID           string   `json:"id"`
	Title        string   `json:"title"`
	Description  string   `json:"description,omitempty"`
	Acceptance   string   `json:"acceptance_criteria,omitempty"`
	Status       string   `json:"status"`
	Priority     int      `json:"priority"`
	Type         string   `json:"issue_type"`
	CreatedAt    string   `json:"created_at"`
	CreatedBy    string   `json:"created_by"`
	UpdatedAt    string   `json:"updated_at"`
	Labels       []string `json:"labels,omitempty"`
	Dependencies []edge   `json:"dependencies,omitempty"`
}

// author is the author of tasks and dependencies that coven adds.
const author = "coven"

func (n New) line(id, now string, typed bool) ([]byte, error) {
	r := record{
		ID: id, Title: n.Title, Description: n.Description, Acceptance: checklist(n.Acceptance), Status: StatusOpen,
		Priority: n.Priority, Type: n.Type, CreatedAt: now, CreatedBy: author, UpdatedAt: now, Labels: unique(n.Labels),
	}
	if typed {
		r.Kind = "issue"
	}
	r.Type = cmp.Or(r.Type, "task")
	for _, on := range unique(n.After) {
		r.Dependencies = append(r.Dependencies, edge{id, on, "blocks", now, author, "{}"})
	}
	return jsonline.Encode(r)
}

// checklist formats criteria as a Markdown task list.
func checklist(criteria []string) string {
	items := make([]string, len(criteria))
	for i, c := range criteria {
		items[i] = "- [ ] " + strings.ReplaceAll(c, "\n", "\n  ")
	}
	return strings.Join(items, "\n")
}
