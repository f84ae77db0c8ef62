package fakebd

import (
	"encoding/json"
	"fmt"
	"io"
)

// print writes a result in JSON, in the form that the environment selects: objects get a
// schema_version, and BD_JSON_ENVELOPE=1 wraps everything in an envelope.
func (r *run) print(answer any) int {
	if object, ok := answer.(map[string]any); ok && !r.enveloped() {
		object["schema_version"] = 1
	}
	r.encode(r.out, answer)
	return 0
}

func (r *run) enveloped() bool { return r.env("BD_JSON_ENVELOPE") == "1" }

func (r *run) encode(w io.Writer, answer any) {
	if r.enveloped() {
		answer = map[string]any{"data": answer, "schema_version": 1}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(answer); err != nil {
		r.warn("Error: encoding JSON: %v\n", err)
	}
}

func (r *run) json() bool { return r.flags.has("json") || r.env("BD_JSON") == "1" }

// say prints text on standard output, and warn on standard error. Errors are ignored.
func (r *run) say(format string, args ...any) int {
	_, _ = fmt.Fprintf(r.out, format, args...)
	return 0
}

func (r *run) warn(format string, args ...any) { _, _ = fmt.Fprintf(r.errs, format, args...) }

// failStdout fails with an error on standard output if JSON was requested.
func (r *run) failStdout(format string, args ...any) int {
	return r.fail(r.out, fmt.Sprintf(format, args...))
}

// failStderr fails with an error in JSON on standard error if JSON was requested.
func (r *run) failStderr(format string, args ...any) int {
	return r.fail(r.errs, fmt.Sprintf(format, args...))
}

func (r *run) fail(w io.Writer, text string) int {
	if !r.json() {
		return r.complain(text)
	}
	object := map[string]any{"error": text}
	if !r.enveloped() {
		object["schema_version"] = 1
	}
	r.encode(w, object)
	return 1
}

// complain fails with text on standard error.
func (r *run) complain(text string) int {
	r.warn("Error: %s\n", text)
	return 1
}

// counted is an issue as list, ready and export print it.
type counted struct {
	issue
	DependencyCount int    `json:"dependency_count"`
	DependentCount  int    `json:"dependent_count"`
	CommentCount    int    `json:"comment_count"`
	Parent          string `json:"parent,omitempty"`
}

// whole is an issue as show prints it.
type whole struct {
	issue
	Dependencies    []related `json:"dependencies,omitempty"` // replaces the dependencies of issue
	Parent          string    `json:"parent,omitempty"`
	DependentCount  int       `json:"dependent_count"`
	DependencyCount int       `json:"dependency_count"`
	CommentCount    int       `json:"comment_count"`
}

type related struct {
	issue
	DependencyType string `json:"dependency_type"`
}

// alone returns an issue without the parts from other tables.
func (i *issue) alone() issue {
	one := *i
	one.Dependencies, one.Comments = nil, nil
	return one
}

func (i *issue) parent() string {
	for _, e := range i.Dependencies {
		if e.Type == "parent-child" {
			return e.DependsOn
		}
	}
	return ""
}

func (d *database) counted(i *issue) counted {
	c := counted{issue: *i, CommentCount: len(i.Comments), Parent: i.parent()}
	c.Comments = nil
	c.DependencyCount = blocking(i.Dependencies)
	for _, other := range d.Issues {
		for _, e := range other.Dependencies {
			if e.DependsOn == i.ID && e.Type == "blocks" {
				c.DependentCount++
			}
		}
	}
	return c
}

func blocking(edges []edge) int {
	n := 0
	for _, e := range edges {
		if e.Type == "blocks" {
			n++
		}
	}
	return n
}

func (d *database) whole(i *issue) whole {
	c := d.counted(i)
	w := whole{issue: i.alone(), Parent: c.Parent, CommentCount: c.CommentCount, DependencyCount: len(i.Dependencies)}
	for _, e := range i.Dependencies {
		if on := d.get(e.DependsOn); on != nil {
			w.Dependencies = append(w.Dependencies, related{on.alone(), e.Type})
		}
	}
	for _, other := range d.Issues {
		for _, e := range other.Dependencies {
			if e.DependsOn == i.ID {
				w.DependentCount++
			}
		}
	}
	return w
}
