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

// update changes issues independently. It reports errors on standard error. The exit code is 1 if one failed; in older
// versions, if all did.
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
	var failed []failure
	for _, id := range f.args {
		i, line, why := r.updateOne(id)
		if why != nil {
			r.warn("%s\n", line)
			failed = append(failed, failure{id, why.Error()})
			continue
		}
		changed = append(changed, i.alone())
	}
	if len(changed) > 0 {
		r.print(changed)
	}
	if len(changed) == 0 || len(failed) > 0 && !r.older() {
		return r.report(failed, "update")
	}
	return 0
}

// updateOne changes one issue, or returns the line for people and the reason in the report.
func (r *run) updateOne(id string) (changed *issue, line string, why error) {
	i, err := r.db.resolve(id)
	if err != nil {
		return nil, fmt.Sprintf("Error resolving %s: %v", id, err), fmt.Errorf("resolving issue: %w", err)
	}
	refuse := func(err error) (*issue, string, error) { return nil, err.Error(), err }
	switch {
	case i.Template:
		return refuse(fmt.Errorf("cannot modify template %s: templates are read-only", id))
	case r.flags.has("claim"):
		if err := r.claim(i); err != nil {
			return nil, fmt.Sprintf("Error claiming %s: %v", id, err), fmt.Errorf("claiming issue: %w", err)
		}
	case r.flags.has("assignee") && r.takes(i, r.flags.value("assignee")):
		return refuse(fmt.Errorf("cannot reassign %s: held by %q (in_progress); coordinate with the holder (bd mail %s) — "+
			"pass --force only if their claim is abandoned (crashed agent, expired lease), or use bd reclaim", id, i.Assignee, i.Assignee))
	}
	if err := r.apply(i); err != nil {
		return nil, fmt.Sprintf("Error updating %s: %v", id, err), fmt.Errorf("updating: %w", err)
	}
	return i, "", nil
}

// takes reports whether a new assignee would take an issue from another actor who works on it. Older versions allow that.
func (r *run) takes(i *issue, assignee string) bool {
	return !r.older() && !r.flags.has("force") && i.Status == "in_progress" && !slices.Contains([]string{"", assignee, r.actor()}, i.Assignee)
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
	for name, to := range map[string]*string{
		"status": &i.Status, "assignee": &i.Assignee, "notes": &i.Notes, "title": &i.Title, "description": &i.Description,
		"design": &i.Design, "acceptance": &i.Acceptance,
	} {
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
	if f.has("add-label") || f.has("remove-label") {
		if err := r.relabel(i); err != nil {
			return err
		}
		touched = true
	}
	if touched {
		r.touch(i)
	}
	if f.has("status") {
		r.moved(i)
	}
	return nil
}

// relabel adds and removes the labels that the flags name.
func (r *run) relabel(i *issue) error {
	added, err := list(r.flags.value("add-label"))
	if err != nil {
		return err
	}
	removed, err := list(r.flags.value("remove-label"))
	if err != nil {
		return err
	}
	labels := slices.DeleteFunc(append(i.Labels, added...), func(l string) bool { return slices.Contains(removed, l) })
	slices.Sort(labels)
	i.Labels = slices.Compact(labels)
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
	var failed []failure
	for _, i := range found {
		if why := r.unclosable(i); why != "" {
			r.warn("%s\n", why)
			failed = append(failed, failure{i.ID, strings.TrimSuffix(why, " (use --force to override)")})
			continue
		}
		i.Status, i.CloseReason = "closed", reason
		r.touch(i)
		at := i.UpdatedAt
		i.ClosedAt = &at
		closed = append(closed, i.alone())
	}
	if len(closed) > 0 {
		r.print(closed)
	}
	if len(closed) == 0 || len(failed) > 0 && !r.older() {
		return r.report(failed, "close")
	}
	return 0
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
	if !r.older() && i.Status != "closed" && i.Assignee != "" && i.Assignee != r.actor() {
		return fmt.Sprintf("cannot close %s: assignee is %q, actor is %q; reclaim or use --force to override", i.ID, i.Assignee, r.actor())
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
	if ids := r.db.blockers(i); len(ids) > 0 && !r.older() {
		return fmt.Sprintf("cannot close blocked issue: %s is blocked by %v (use --force to override)", i.ID, ids)
	} else if len(ids) > 0 {
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
	mode := "proxied-server"
	if r.older() {
		mode = "embedded"
	}
	if err := setUp(at, prefix, mode, r.flags.has("from-jsonl")); err != nil {
		return r.complain(err.Error())
	}
	return 0
}

// setUp creates the files of bd init: metadata that names a Dolt database, and
// the database itself.
func setUp(at, prefix, mode string, fromJSONL bool) error {
	project := uuid.NewString()
	metadata, err := json.MarshalIndent(map[string]string{
		"database": "dolt", "backend": "dolt", "dolt_mode": mode, "dolt_database": prefix, "project_id": project,
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
