package fakebd

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func (r *run) version() int {
	if !r.json() {
		return r.say("bd version %s (dev)\n", r.bdVersion())
	}
	return r.print(map[string]any{"branch": "main", "build": "dev", "version": r.bdVersion()})
}

func (r *run) where() int {
	stored := "embeddeddolt"
	if r.mode() == "proxied-server" && !r.older() {
		stored = "dolt"
	}
	return r.print(map[string]any{"path": r.beads, "database_path": filepath.Join(r.beads, stored), "prefix": r.db.Prefix})
}

func (r *run) context() int {
	top := checkout(r.dir)
	return r.print(map[string]any{
		"backend": "dolt", "bd_version": r.bdVersion(), "beads_dir": r.beads, "cwd_repo_root": top, "database": r.db.Prefix,
		"dolt_mode": r.mode(), "is_redirected": false, "is_worktree": mainCheckout(top) != top,
		"project_id": r.db.Project, "repo_root": mainCheckout(top), "role": "maintainer",
	})
}

// list prints the issues that are not closed, or all issues. It omits templates.
func (r *run) list() int {
	wanted := strings.Split(r.flags.value("status"), ",")
	found := []counted{}
	for _, i := range r.db.sorted() {
		switch {
		case i.Template,
			r.flags.has("status") && !slices.Contains(wanted, i.Status),
			!r.flags.has("status") && !r.flags.has("all") && i.Status == "closed",
			r.flags.has("type") && i.Type != r.flags.value("type"),
			r.flags.has("assignee") && i.Assignee != r.flags.value("assignee"):
			continue
		}
		found = append(found, r.db.counted(i))
	}
	if limit, err := r.limit(50); err != nil {
		return r.usage("list", err)
	} else if limit > 0 && len(found) > limit {
		found = found[:limit]
		r.warn("Showing %d issues (limit reached); use --limit 0 for all\n", limit)
	}
	return r.print(found)
}

func (r *run) limit(usual int) (int, error) {
	if !r.flags.has("limit") {
		return usual, nil
	}
	n, err := strconv.Atoi(r.flags.value("limit"))
	if err != nil {
		return 0, fmt.Errorf("invalid argument %q for \"-n, --limit\" flag: %w", r.flags.value("limit"), err)
	}
	return n, nil
}

func (r *run) show() int {
	ids := r.flags.args
	if id := r.flags.value("id"); id != "" {
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return r.failStdout("at least one issue ID is required (use positional args, --id flag, or --current)")
	}
	found := []whole{}
	for _, id := range ids {
		i, err := r.db.resolve(id)
		if err != nil {
			r.warn("Error fetching %s: %v\n", id, err)
			continue
		}
		found = append(found, r.db.whole(i))
	}
	if len(found) == 0 {
		return r.failStdout("no issues found matching the provided IDs")
	}
	return r.print(found)
}

func (r *run) comments() int {
	if len(r.flags.args) != 1 {
		return r.usage("comments", fmt.Errorf("requires an issue ID"))
	}
	i, err := r.db.resolve(r.flags.args[0])
	if err != nil {
		return r.failStdout("resolving %s: %v", r.flags.args[0], err)
	}
	found := []remark{}
	for _, c := range i.Comments {
		c.CreatedAt = second(c.CreatedAt)
		found = append(found, c)
	}
	return r.print(found)
}

// export prints a line for each issue.
func (r *run) export() int {
	e := json.NewEncoder(r.out)
	for _, i := range r.db.sorted() {
		line := struct {
			Kind string `json:"_type"`
			counted
		}{"issue", r.db.counted(i)}
		line.Comments = i.Comments
		if err := e.Encode(line); err != nil {
			return r.complain(err.Error())
		}
	}
	return 0
}

// ready prints the issues that are not blocked, or claims the first of them.
func (r *run) ready() int {
	var found []*issue
	for _, i := range r.db.sorted() {
		if r.isReady(i) {
			found = append(found, i)
		}
	}
	if r.flags.has("claim") {
		return r.claimFirst(found)
	}
	limit, err := r.limit(100)
	if err != nil {
		return r.usage("ready", err)
	}
	all := len(found)
	if limit > 0 && all > limit {
		found = found[:limit]
	}
	answer := []counted{}
	for _, i := range found {
		answer = append(answer, r.db.counted(i))
	}
	code := r.print(answer)
	if len(found) < all {
		r.warn("Showing %d of %d ready issues. Use --limit 0 for all, or --limit N to raise the cap.\n", len(found), all)
	}
	return code
}

func (r *run) claimFirst(found []*issue) int {
	answer := []counted{}
	for _, i := range found {
		if r.claim(i) == nil {
			answer = append(answer, r.db.counted(i))
			break
		}
	}
	return r.print(answer)
}

// isReady implements bd's rule. Epics, templates and assigned issues are ready too,
// unless they are filtered. So is an issue that waits for a deferred issue only through
// its parent's parent.
func (r *run) isReady(i *issue) bool {
	excluded := strings.Split("merge-request,gate,molecule,message,agent,role,rig,"+r.flags.value("exclude-type"), ",")
	switch {
	case i.Status != "open", i.Pinned, i.Ephemeral, slices.Contains(excluded, i.Type), r.later(i), r.db.blocked(i, nil),
		(r.flags.has("unassigned") || r.flags.has("claim")) && i.Assignee != "",
		r.flags.has("assignee") && i.Assignee != r.flags.value("assignee"):
		return false
	}
	for _, e := range i.Dependencies {
		if p := r.db.get(e.DependsOn); e.Type == "parent-child" && p != nil && r.later(p) {
			return false
		}
	}
	return true
}

func (r *run) later(i *issue) bool { return i.DeferUntil != nil && i.DeferUntil.After(r.now()) }

// over reports whether an issue no longer blocks others.
func (i *issue) over() bool { return i.Status == "closed" || i.Status == "pinned" }

// blocked reports whether an open issue blocks this issue or its parent.
func (d *database) blocked(i *issue, seen []string) bool {
	if i.over() || slices.Contains(seen, i.ID) {
		return false
	}
	seen = append(seen, i.ID)
	for _, e := range i.Dependencies {
		on := d.get(e.DependsOn)
		if on == nil {
			continue
		}
		switch e.Type {
		case "blocks", "conditional-blocks":
			if !on.over() {
				return true
			}
		case "parent-child":
			if d.blocked(on, seen) {
				return true
			}
		case "waits-for":
			if d.gated(on) {
				return true
			}
		}
	}
	return false
}

// gated reports whether an issue has children that are not done: a waits-for dependency
// waits for them.
func (d *database) gated(on *issue) bool {
	for _, i := range d.Issues {
		if i.parent() == on.ID && !i.over() {
			return true
		}
	}
	return false
}

// blockers returns the open issues that bd lists when it refuses to close an issue.
func (d *database) blockers(i *issue) []string {
	var ids []string
	for _, e := range i.Dependencies {
		if on := d.get(e.DependsOn); e.Type == "blocks" && on != nil && !on.over() {
			ids = append(ids, on.ID)
		}
	}
	return ids
}
