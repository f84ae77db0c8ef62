package task

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/text/jsonline"
)

// decoder decodes the members of one line. err is the error about the first member with a wrong
// type.
type decoder struct {
	line  []byte
	found []jsonline.Member
	err   *jsonline.SyntaxError
}

func newDecoder(line []byte) (*decoder, error) {
	found, err := jsonline.Members(line)
	if err != nil {
		return nil, err
	}
	return &decoder{line: line, found: found}, nil
}

// last returns the last member with a name.
func (d *decoder) last(name string) (jsonline.Member, bool) {
	for i := len(d.found) - 1; i >= 0; i-- {
		if d.found[i].Name == name {
			return d.found[i], true
		}
	}
	return jsonline.Member{}, false
}

// raw returns the value of a member, or nil if it is absent or null.
func (d *decoder) raw(name string) []byte {
	m, ok := d.last(name)
	if !ok || string(d.line[m.Value:m.End]) == "null" {
		return nil
	}
	return d.line[m.Value:m.End]
}

func (d *decoder) fail(name, want string) {
	if d.err == nil {
		m, _ := d.last(name)
		d.err = &jsonline.SyntaxError{Offset: m.Value, Reason: name + " is not " + want}
	}
}

// into decodes a member if it is present.
func (d *decoder) into(name, want string, to any) {
	raw := d.raw(name)
	if raw != nil && json.Unmarshal(raw, to) != nil {
		d.fail(name, want)
	}
}

func (d *decoder) text(name, absent string) string {
	raw := d.raw(name)
	if raw == nil {
		return absent
	}
	s, err := jsonline.Unquote(raw)
	if err != nil {
		d.fail(name, "a string")
	}
	return cmp.Or(s, absent)
}

// flag decodes a boolean, which SQLite stores as a number.
func (d *decoder) flag(name string) bool {
	switch string(d.raw(name)) {
	case "", "false", "0":
		return false
	case "true", "1":
		return true
	}
	d.fail(name, "true or false")
	return false
}

// moment decodes a time. An invalid time is an error only if decisions depend on it.
func (d *decoder) moment(name string, decides bool) time.Time {
	text := d.text(name, "")
	if text == "" {
		return time.Time{}
	}
	t, ok := parseTime(text)
	if !ok && decides {
		d.fail(name, "a time such as 2026-01-31T12:00:00Z")
	}
	return t
}

func parseTime(text string) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", time.DateTime, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}

func (d *decoder) metadata() map[string]any {
	raw := d.raw("metadata")
	if len(raw) == 0 || raw[0] != '{' {
		return nil // old exports contain a string
	}
	numbers := json.NewDecoder(bytes.NewReader(raw))
	numbers.UseNumber()
	var m map[string]any
	if numbers.Decode(&m) != nil {
		d.fail("metadata", "an object")
	}
	return m
}

func (d *decoder) comments() []Comment {
	var all []struct {
		Author  string `json:"author"`
		Text    string `json:"text"`
		Created string `json:"created_at"`
	}
	d.into("comments", "a list of comments", &all)
	var comments []Comment
	for _, c := range all {
		at, _ := parseTime(c.Created)
		comments = append(comments, Comment{Author: c.Author, Text: c.Text, CreatedAt: at})
	}
	return comments
}

// dependencies decodes both formats: edges, and the complete issues that bd show prints.
func (d *decoder) dependencies() []Dependency {
	var all []struct {
		ID        string `json:"id"`
		DependsOn string `json:"depends_on_id"`
		Type      string `json:"type"`
		FullType  string `json:"dependency_type"`

		Metadata json.RawMessage `json:"metadata"`
	}
	d.into("dependencies", "a list of dependencies", &all)
	var found []Dependency
	for _, one := range all {
		dep := Dependency{ID: one.DependsOn, Type: one.Type}
		if dep.ID == "" {
			dep = Dependency{ID: one.ID, Type: one.FullType}
		}
		if dep.ID == "" {
			d.fail("dependencies", "a list of objects with depends_on_id")
		}
		if dep.Type = cmp.Or(strings.ReplaceAll(dep.Type, "_", "-"), "blocks"); dep.Type == waitsFor {
			dep.gate = gateOf(one.Metadata)
		}
		found = append(found, dep)
	}
	return found
}

// gateOf decodes the metadata of a dependency, which is an object or its text.
func gateOf(metadata json.RawMessage) gate {
	var text string
	if json.Unmarshal(metadata, &text) == nil {
		metadata = json.RawMessage(text)
	}
	var m struct {
		Gate       string `json:"gate"`
		AlsoBlocks any    `json:"also_blocks"`
	}
	_ = json.Unmarshal(metadata, &m) // other metadata says nothing about it
	return gate{m.Gate == "any-children", m.AlsoBlocks == true || m.AlsoBlocks == "true" || m.AlsoBlocks == 1.0}
}

// task decodes all parts of a task that coven uses.
func (d *decoder) task() (Task, error) {
	t := Task{
		ID: d.text("id", ""), Title: d.text("title", ""), Description: d.text("description", ""),
		Acceptance: d.text("acceptance_criteria", ""), Design: d.text("design", ""), Notes: d.text("notes", ""),
		Status: d.text("status", StatusOpen), Type: d.text("issue_type", "task"), Priority: defaultPriority,
		Assignee: d.text("assignee", ""), Parent: d.text("parent", ""), ExternalRef: d.text("external_ref", ""),
		DependsOn: d.dependencies(), CloseReason: d.text("close_reason", ""), Metadata: d.metadata(), Comments: d.comments(),
		CreatedAt: d.moment("created_at", false), UpdatedAt: d.moment("updated_at", false), StartedAt: d.moment("started_at", false),
		ClosedAt: d.moment("closed_at", false), DeferUntil: d.moment("defer_until", true),
	}
	d.into("priority", "a whole number", &t.Priority)
	d.into("labels", "a list of strings", &t.Labels)
	if count := d.raw("dependency_count"); count != nil {
		_ = json.Unmarshal(count, &t.depends) // only programs write it
	}
	t.aside = d.flag("pinned") || d.flag("is_template") || d.flag("ephemeral")
	for _, dep := range t.DependsOn {
		if dep.Type == parentChild && t.Parent == "" {
			t.Parent = dep.ID
		}
	}
	if t.ID == "" {
		d.fail("id", "there: a task needs one")
	}
	if d.err != nil {
		return Task{}, d.err
	}
	if t.isLarge() {
		return tooLarge(t.ID, t.Status), nil
	}
	return t, nil
}
