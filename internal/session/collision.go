package session

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/file/regularfile"
)

// collisionsDir has a file for each session that was compared with others, relative to the project. It is a cache: package
// collisions writes it again while tasks run.
const collisionsDir = ".coven/run/collisions"

// maxCollisions limits the size of a file in collisionsDir, in bytes.
const maxCollisions = 4 << 20

// Collision is the predicted result of merging the changes of two tasks.
type Collision struct {
	Session string    `json:"session_id"` // of the other task
	Task    string    `json:"task"`       // ID of the other task
	Files   []string  `json:"files"`      // in conflict; empty if the changes can be merged
	Seen    time.Time `json:"seen"`       // when they were merged
}

// Compared is the result of comparing a session with the others.
type Compared struct {
	Session string      `json:"session_id"`
	Task    string      `json:"task"`
	With    []Collision `json:"with"`
}

// WriteCompared replaces the result of comparing a session with others. It removes the results of sessions for which keep is
// false.
func WriteCompared(root string, c Compared, keep func(id string) bool) error {
	if err := makeDir(root, collisionsDir); err != nil {
		return fmt.Errorf("write the predicted conflicts: %w", err)
	}
	data, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("write the predicted conflicts: %w", err)
	}
	dir := filepath.Join(root, collisionsDir)
	if err := regularfile.Replace(filepath.Join(dir, c.Session+".json"), append(data, '\n'), fileMode); err != nil {
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

// Collisions returns the predicted conflicts between live sessions, by session ID. Of the two results for a pair of sessions, the
// newer one counts.
func Collisions(root string, live func(id string) bool) map[string][]Collision {
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
		if err != nil || json.Unmarshal(raw, &c) != nil || !live(c.Session) {
			continue // it is written again when something changes
		}
		for _, with := range c.With {
			of := pair{min(c.Session, with.Session), max(c.Session, with.Session)}
			if !live(with.Session) || with.Seen.Before(newest[of]) {
				continue
			}
			newest[of] = with.Seen
			add(c.Session, with)
			add(with.Session, Collision{Session: c.Session, Task: c.Task, Files: with.Files, Seen: with.Seen})
		}
	}
	for id, all := range found {
		all = slices.DeleteFunc(all, func(c Collision) bool { return len(c.Files) == 0 })
		slices.SortFunc(all, func(a, b Collision) int { return cmp.Compare(a.Task, b.Task) })
		found[id] = all
	}
	return found
}

// LiveIDs returns a function that reports whether a session is live.
func LiveIDs(all []Summary) func(id string) bool {
	live := map[string]bool{}
	for _, s := range all {
		live[s.ID] = s.Live()
	}
	return func(id string) bool { return live[id] }
}
