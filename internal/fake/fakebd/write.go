package fakebd

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

var (
	statuses = []string{"open", "in_progress", "blocked", "deferred", "closed", "pinned", "hooked"}
	types    = []string{"task", "bug", "feature", "chore", "epic", "decision", "spike", "story", "milestone"}
)

// create adds an issue. Unlike the other commands, it prints times with full precision.
func (r *run) create() int {
	i, err := r.newIssue()
	if err != nil {
		return r.failStderr("%v", err)
	}
	exact := i.alone()
	i.CreatedAt, i.UpdatedAt = second(i.CreatedAt), second(i.UpdatedAt)
	r.db.Issues = append(r.db.Issues, i)
	r.db.changed = true
	r.wire(i)
	if r.flags.has("silent") {
		return r.say("%s\n", i.ID)
	}
	data, err := json.Marshal(exact)
	answer := map[string]any{}
	if err == nil {
		err = json.Unmarshal(data, &answer)
	}
	if err != nil {
		return r.complain(err.Error())
	}
	return r.print(answer)
}

func (r *run) newIssue() (*issue, error) {
	f := r.flags
	title, err := titleOf(f)
	if err != nil {
		return nil, err
	}
	i := &issue{
		ID: f.value("id"), Title: title, Description: f.value("description"), Design: f.value("design"), Acceptance: f.value("acceptance"),
		Notes: f.value("notes"), Status: "open", Priority: 2, Type: "task", Assignee: f.value("assignee"),
		Owner: r.env("GIT_AUTHOR_EMAIL"), CreatedAt: r.now().UTC(), CreatedBy: r.actor(), ExternalRef: f.value("external-ref"),
	}
	i.UpdatedAt = i.CreatedAt
	if i.ID == "" {
		i.ID = r.db.newID()
	}
	if i.Labels, err = list(f.value("labels")); err != nil {
		return nil, err
	}
	slices.Sort(i.Labels)
	if f.has("priority") {
		if i.Priority, err = priority(f.value("priority")); err != nil {
			return nil, err
		}
	}
	if f.has("estimate") {
		minutes, err := strconv.Atoi(f.value("estimate"))
		if err != nil {
			return nil, err
		}
		i.Estimate = &minutes
	}
	if f.has("metadata") {
		i.Metadata = json.RawMessage(f.value("metadata"))
	}
	if f.has("type") {
		i.Type = f.value("type")
	}
	if !slices.Contains(types, i.Type) {
		return nil, fmt.Errorf("validation failed for issue : invalid issue type: %s", i.Type)
	}
	return i, nil
}

func titleOf(f flags) (string, error) {
	if f.has("title") {
		return f.value("title"), nil
	}
	if len(f.args) == 0 {
		return "", errors.New("title required (or use --file to create from markdown)")
	}
	if strings.HasPrefix(f.args[0], "-") {
		return "", fmt.Errorf("title %q looks like a flag (starts with '-')", f.args[0])
	}
	return f.args[0], nil
}

func list(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	return csv.NewReader(strings.NewReader(text)).Read()
}

func priority(text string) (int, error) {
	n, err := strconv.Atoi(strings.TrimPrefix(text, "P"))
	if err != nil || n < 0 || n > 4 {
		return 0, fmt.Errorf("invalid priority %q (expected 0-4 or P0-P4, not words like high/medium/low)", text)
	}
	return n, nil
}

// wire adds the dependencies in the flags of create to a new issue. As in bd,
// an invalid dependency is only a warning.
func (r *run) wire(i *issue) {
	ids, _ := list(r.flags.value("deps"))
	for _, id := range ids {
		on := r.db.get(id)
		if on == nil {
			r.warn("Warning: failed to add dependency %s -> %s: no such issue\n", i.ID, id)
			continue
		}
		r.connect(i, on, "blocks")
	}
	if parent := r.db.get(r.flags.value("parent")); parent != nil {
		r.connect(i, parent, "parent-child")
	}
}

func (r *run) connect(i, on *issue, kind string) {
	i.Dependencies = append(i.Dependencies, edge{i.ID, on.ID, kind, second(r.now()), r.actor(), "{}"})
	r.db.changed = true
}

// depend makes one issue depend on another.
func (r *run) depend() int {
	if len(r.flags.args) != 2 {
		return r.usage("dep add", fmt.Errorf("requires 2 arg(s), only received %d", len(r.flags.args)))
	}
	i, err := r.db.resolve(r.flags.args[0])
	if err != nil {
		return r.failStdout("resolving ID %s: %v", r.flags.args[0], err)
	}
	kind := "blocks"
	if r.flags.has("type") {
		kind = r.flags.value("type")
	}
	if elsewhere := r.flags.args[1]; strings.HasPrefix(elsewhere, "external:") { // no issue of this database
		r.connect(i, &issue{ID: elsewhere}, kind)
		return r.print(map[string]any{"issue_id": i.ID, "depends_on_id": elsewhere, "type": kind, "status": "added"})
	}
	on, err := r.db.resolve(r.flags.args[1])
	if err != nil {
		return r.failStdout("resolving dependency ID %s: %v", r.flags.args[1], err)
	}
	switch {
	case i == on:
		return r.failStdout("cannot add self-dependency: %s cannot depend on itself", i.ID)
	case r.db.reaches(on, i, nil):
		return r.failStdout("adding dependency would create a cycle")
	}
	if !slices.ContainsFunc(i.Dependencies, func(e edge) bool { return e.DependsOn == on.ID }) {
		r.connect(i, on, kind)
	}
	return r.print(map[string]any{"issue_id": i.ID, "depends_on_id": on.ID, "type": kind, "status": "added"})
}

func (d *database) reaches(from, to *issue, seen []string) bool {
	if from == nil || slices.Contains(seen, from.ID) {
		return false
	}
	if from == to {
		return true
	}
	for _, e := range from.Dependencies {
		if d.reaches(d.get(e.DependsOn), to, append(seen, from.ID)) {
			return true
		}
	}
	return false
}

func (r *run) comment() int {
	if len(r.flags.args) < 2 {
		return r.usage("comment", fmt.Errorf("requires at least 2 arg(s)"))
	}
	i, err := r.db.resolve(r.flags.args[0])
	if err != nil {
		return r.failStdout("resolving %s: %v", r.flags.args[0], err)
	}
	id := uuid.NewString()
	c := remark{json.RawMessage(strconv.Quote(id)), i.ID, r.actor(), strings.Join(r.flags.args[1:], " "), r.now().UTC()}
	i.Comments = append(i.Comments, c)
	r.touch(i)
	return r.print(map[string]any{"id": id, "issue_id": i.ID, "author": c.Author, "text": c.Text, "created_at": c.CreatedAt})
}

// importFile imports the issues of JSONL files.
func (r *run) importFile() int {
	for _, path := range r.flags.args {
		data, err := os.ReadFile(path)
		if err == nil {
			err = r.db.take(data)
		}
		if err != nil {
			return r.complain(err.Error())
		}
	}
	return 0
}

// take adds the issues in JSONL. It ignores tombstones and lines of another _type.
func (d *database) take(data []byte) error {
	for n, line := range strings.Split(string(data), "\n") {
		var one struct {
			Kind string `json:"_type"`
			issue
		}
		if strings.TrimSpace(line) == "" {
			continue
		}
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			return fmt.Errorf("line %d: %w", n+1, err)
		}
		if one.Kind != "" && one.Kind != "issue" || one.Status == "tombstone" {
			continue
		}
		i := one.issue
		d.Issues = append(slices.DeleteFunc(d.Issues, func(was *issue) bool { return was.ID == i.ID }), &i)
		d.changed = true
	}
	return nil
}
