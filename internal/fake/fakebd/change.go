package fakebd

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// update changes issues independently. It reports errors on
// standard error, and the exit code is 1 if no issue was changed.
func (r *run) update() int {
	f := r.flags
	if f.has("status") && !slices.Contains(statuses, f.value("status")) {
		return r.failStdout("invalid status %q (built-in: open, in_progress, blocked, deferred, closed, pinned, hooked; "+
			"or configure custom statuses via 'bd config set status.custom')", f.value("status"))
	}
	if f.has("notes") && f.has("append-notes") {
		return r.failStdout("cannot specify both --notes and --append-notes")
	}
	changed := []issue{}
	for _, id := range f.args {
		i, err := r.db.resolve(id)
		if err != nil {
			r.warn("Error resolving %s: %v\n", id, err)
			continue
		}
		if i.Template {
			r.warn("cannot modify template %s: templates are read-only\n", id)
			continue
		}
		if f.has("claim") {
			if err := r.claim(i); err != nil {
				r.warn("Error claiming %s: %v\n", id, err)
				continue
			}
		}
		if err := r.apply(i); err != nil {
			r.warn("Error updating %s: %v\n", id, err)
			continue
		}
		changed = append(changed, i.alone())
	}
	if len(changed) == 0 {
		return 1
	}
	return r.print(changed)
}

// claim assigns an issue to the actor if it is open and not assigned to another.
func (r *run) claim(i *issue) error {
	actor := r.actor()
	switch {
	case i.Status == "open" && (i.Assignee == "" || i.Assignee == actor):
		i.Status, i.Assignee = "in_progress", actor
		r.touch(i)
		r.started(i)
		return nil
	case i.Status == "in_progress" && i.Assignee == actor:
		return nil
	case i.Assignee != "" && i.Assignee != actor:
		return fmt.Errorf("issue already claimed by %s", i.Assignee)
	}
	return fmt.Errorf("issue not claimable: status %s", i.Status)
}

func (r *run) started(i *issue) {
	if i.StartedAt == nil {
		at := i.UpdatedAt
		i.StartedAt = &at
	}
}

// apply sets the fields that the flags name.
func (r *run) apply(i *issue) error {
	f := r.flags
	touched := false
	for name, to := range map[string]*string{"status": &i.Status, "assignee": &i.Assignee, "notes": &i.Notes, "title": &i.Title} {
		if f.has(name) {
			*to, touched = f.value(name), true
		}
	}
	if f.has("append-notes") {
		i.Notes, touched = strings.TrimPrefix(i.Notes+"\n"+f.value("append-notes"), "\n"), true
	}
	if f.has("priority") {
		n, err := priority(f.value("priority"))
		if err != nil {
			return err
		}
		i.Priority, touched = n, true
	}
	if touched {
		r.touch(i)
	}
	if f.has("status") {
		r.moved(i)
	}
	return nil
}

// moved updates the times of an issue after a change of its status.
func (r *run) moved(i *issue) {
	switch {
	case i.Status == "closed" && i.ClosedAt == nil:
		at := i.UpdatedAt
		i.ClosedAt = &at
	case i.Status != "closed":
		i.ClosedAt, i.CloseReason = nil, ""
	}
	if i.Status == "in_progress" {
		r.started(i)
	}
}

// close closes issues. Closing an issue again replaces its reason.
func (r *run) close() int {
	reason := r.flags.value("reason")
	if reason == "" {
		reason = "Closed"
	}
	var found []*issue
	for _, id := range r.flags.args {
		i, err := r.db.resolve(id)
		if err != nil {
			return r.failStdout("resolving ID %s: %v", id, err)
		}
		found = append(found, i)
	}
	closed := []issue{}
	for _, i := range found {
		if why := r.unclosable(i); why != "" {
			r.warn("%s\n", why)
			continue
		}
		i.Status, i.CloseReason = "closed", reason
		r.touch(i)
		at := i.UpdatedAt
		i.ClosedAt = &at
		closed = append(closed, i.alone())
	}
	if len(closed) == 0 {
		return 1
	}
	return r.print(closed)
}

func (r *run) unclosable(i *issue) string {
	if i.Template {
		return fmt.Sprintf("cannot modify template %s: templates are read-only", i.ID)
	}
	if r.flags.has("force") {
		return ""
	}
	if i.Status == "pinned" {
		return fmt.Sprintf("cannot modify pinned issue %s (use --force to override)", i.ID)
	}
	open := 0
	for _, other := range r.db.Issues {
		if other.parent() == i.ID && other.Status != "closed" {
			open++
		}
	}
	if i.Type == "epic" && open > 0 {
		return fmt.Sprintf("cannot close epic %s: %d open child issue(s); close children first or use --force to override", i.ID, open)
	}
	if ids := r.db.blockers(i); len(ids) > 0 {
		return fmt.Sprintf("cannot close %s: blocked by open issues %v (use --force to override)", i.ID, ids)
	}
	return ""
}

func (r *run) reopen() int {
	opened := []issue{}
	for _, id := range r.flags.args {
		i, err := r.db.resolve(id)
		if err != nil {
			r.warn("Error resolving %s: %v\n", id, err)
			continue
		}
		i.Status = "open"
		r.touch(i)
		r.moved(i)
		opened = append(opened, i.alone())
	}
	if len(opened) == 0 {
		return 1
	}
	return r.print(opened)
}

// init creates a database in the current directory or in $BEADS_DIR.
func (r *run) init() int {
	at := filepath.Join(r.dir, ".beads")
	if set := r.env("BEADS_DIR"); set != "" {
		at = set
	}
	prefix := r.flags.value("prefix")
	if prefix == "" {
		prefix = filepath.Base(filepath.Dir(at))
	}
	if _, err := os.Stat(filepath.Join(at, stateDir)); err == nil {
		return r.complain("this workspace is already initialized")
	}
	if err := setUp(at, prefix, r.flags.has("from-jsonl")); err != nil {
		return r.complain(err.Error())
	}
	return 0
}

// setUp creates the files of bd init: metadata that names a Dolt database, and
// the database itself.
func setUp(at, prefix string, fromJSONL bool) error {
	project := uuid.NewString()
	metadata, err := json.MarshalIndent(map[string]string{
		"database": "dolt", "backend": "dolt", "dolt_mode": "embedded", "dolt_database": prefix, "project_id": project,
	}, "", "  ")
	if err != nil {
		return err
	}
	db := &database{Prefix: prefix, Project: project, path: filepath.Join(at, stateDir, "state.json")}
	if fromJSONL {
		data, err := os.ReadFile(filepath.Join(at, "issues.jsonl"))
		if err != nil {
			return err
		}
		if err := db.take(data); err != nil {
			return err
		}
	}
	for _, i := range db.Issues {
		i.CreatedAt, i.UpdatedAt = i.CreatedAt.Truncate(time.Second), i.UpdatedAt.Truncate(time.Second)
	}
	if err := os.MkdirAll(filepath.Join(at, stateDir), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(at, "metadata.json"), metadata, 0o644); err != nil {
		return err
	}
	return db.save()
}
