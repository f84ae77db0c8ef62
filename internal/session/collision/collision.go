// Package collision stores predicted conflicts between the changes of tasks, and with their targets.
package collision

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/file/regularfile"
)

// collisionsDir has a file for each session that was compared with others, relative to the project. It is a cache: package
// collisions writes it again while tasks run.
const collisionsDir = ".coven/run/collisions"

// maxCollisions limits the size of a file in collisionsDir, in bytes.
const maxCollisions = 4 << 20

// Collision is the predicted result of merging the changes of two tasks, or a change with its target.
type Collision struct {
	Session string    `json:"session_id,omitempty"` // of the other task
	Task    string    `json:"task,omitempty"`       // ID of the other task
	Target  string    `json:"target,omitempty"`     // full ref; empty for another task
	Files   []string  `json:"files"`                // in conflict; empty if the changes can be merged
	Seen    time.Time `json:"seen"`                 // when they were merged
}

// Compared is the result of comparing a session with the others.
type Compared struct {
	Session string      `json:"session_id"`
	Task    string      `json:"task"`
	With    []Collision `json:"with"`
}

// Write replaces the result of comparing a session with others. It removes the results of sessions for which keep is
// false.
func Write(root string, c Compared, keep func(id string) bool) error {
	err := regularfile.Directory(root, collisionsDir)
	if err == nil {
		err = os.MkdirAll(filepath.Join(root, collisionsDir), 0o700)
	}
	if err != nil {
		return fmt.Errorf("write the predicted conflicts: %w", err)
	}
	data, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("write the predicted conflicts: %w", err)
	}
	dir := filepath.Join(root, collisionsDir)
	if err := regularfile.Replace(filepath.Join(dir, c.Session+".json"), append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("write the predicted conflicts: %w", err)
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), ".json"); ok && !keep(id) {
			_ = os.Remove(filepath.Join(dir, e.Name())) // it counts no longer
		}
	}
	return err
}

// Of returns the predicted conflicts of live sessions with each other and with their targets, by session ID. live has the status of each. Of the two
// results for a pair of sessions, the newer one counts. A blocked session has already met the conflicts with its target.
func Of(root string, live map[string]event.Status) map[string][]Collision {
	dir := filepath.Join(root, collisionsDir)
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 || regularfile.Directory(root, collisionsDir) != nil {
		return nil // nothing was compared
	}
	type pair struct{ one, two string }
	newest := map[pair]time.Time{}
	found := map[string][]Collision{}
	add := func(id string, c Collision) {
		found[id] = append(slices.DeleteFunc(found[id], func(old Collision) bool { return old.Session == c.Session }), c)
	}
	for _, e := range entries {
		raw, err := regularfile.ReadIn(dir, e.Name(), maxCollisions)
		var c Compared
		if err != nil || json.Unmarshal(raw, &c) != nil || live[c.Session] == "" {
			continue // it is written again when something changes
		}
		for _, with := range c.With {
			if with.Target != "" {
				if live[c.Session] != event.StatusBlocked {
					add(c.Session, with)
				}
				continue
			}
			of := pair{min(c.Session, with.Session), max(c.Session, with.Session)}
			if live[with.Session] == "" || with.Seen.Before(newest[of]) {
				continue
			}
			newest[of] = with.Seen
			add(c.Session, with)
			add(with.Session, Collision{Session: c.Session, Task: c.Task, Files: with.Files, Seen: with.Seen})
		}
	}
	for id, all := range found {
		all = slices.DeleteFunc(all, func(c Collision) bool { return len(c.Files) == 0 })
		slices.SortFunc(all, func(a, b Collision) int { return cmp.Or(cmp.Compare(a.Task, b.Task), cmp.Compare(a.Target, b.Target)) })
		found[id] = all
	}
	return found
}
