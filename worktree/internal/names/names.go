// Package names has the names that coven gives to branches, refs and directories, for tasks and sessions.
package names

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// WorktreesDir is the directory of worktrees in the main checkout.
const WorktreesDir = ".coven/worktrees"

// A record on disk can name a commit that no branch contains yet. Before the record is
// written, a ref is created that protects the commit from git gc:
// refs/coven/keep/<task>/<purpose>. The next record of its kind moves the ref, and it
// is removed with the worktree.
const (
	KeepPrefix  = "refs/coven/keep/"
	KeepLanding = "landing"    // the commit that a recorded intent is about to land
	KeepMove    = "integrate"  // the merge that integrate.json moves W to
	KeepTarget  = "conflicted" // the target's commit that conflicted.json names
	KeepMerged  = "merged"     // what outside.json names
	KeepWatched = "watched"    // a tree of the trees that watch.json names
)

// KeepRef returns the ref that protects a commit of a task for a purpose.
func KeepRef(taskID, purpose string) string { return KeepPrefix + SafeName(taskID) + "/" + purpose }

// Parts of names.
const (
	BranchPrefix = "coven/" // of the branches of tasks
	MaxName      = 80       // bytes of a safe name
	HashDigits   = 8
)

// SafeName makes a task or session id safe as a path element, as part of a ref name
// and as an argument. An id that is already safe stays as it is; another one is
// cleaned and gets 8 hexadecimal digits of its SHA-256. Ids that differ only in case
// result in names that differ only in case. Add records the id with the name, and
// refuses a name that belongs to another id.
func SafeName(id string) string {
	if isSafe(id) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	suffix := "-" + hex.EncodeToString(sum[:])[:HashDigits]
	clean := cleaned(id)
	if limit := MaxName - len(suffix); len(clean) > limit {
		clean = clean[:limit]
	}
	clean = strings.Trim(clean, ".-")
	if clean == "" {
		clean = "task"
	}
	return clean + suffix
}

// Branch returns the task's branch, without refs/heads/.
func Branch(taskID string) string { return BranchPrefix + SafeName(taskID) }

func isSafe(id string) bool {
	if id == "" || len(id) > MaxName || strings.ContainsAny(id[:1], "-.") {
		return false
	}
	for i := range len(id) {
		if !isSafeByte(id[i]) {
			return false
		}
	}
	return !strings.Contains(id, "..") && !strings.HasSuffix(id, ".") &&
		!strings.HasSuffix(strings.ToLower(id), ".lock")
}

func isSafeByte(c byte) bool {
	return c == '.' || c == '_' || c == '-' ||
		'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// cleaned replaces every run of other characters by one hyphen, and every run
// of dots by one dot.
func cleaned(id string) string {
	var out strings.Builder
	last := byte(0)
	for i := range len(id) {
		c := id[i]
		if !isSafeByte(c) {
			c = '-'
		}
		if c != last || (c != '-' && c != '.') {
			out.WriteByte(c)
		}
		last = c
	}
	return out.String()
}

// ClaimsPrefix begins the refs of claims.
const ClaimsPrefix = "refs/coven/claims/"

// RescuesPrefix begins the refs of rescues.
const RescuesPrefix = "refs/coven/rescue/"

// RescuePrefix begins the refs of the rescues of a task.
func RescuePrefix(taskID string) string { return RescuesPrefix + SafeName(taskID) + "/" }

// SnapshotsPrefix begins the refs of snapshots.
const SnapshotsPrefix = "refs/coven/snapshots/"

// SnapshotRef returns the ref of the snapshots of a session.
func SnapshotRef(session string) string { return SnapshotsPrefix + SafeName(session) }

// PrivateDir is the private common directory, in W's own git directory.
const PrivateDir = "common"

// HeadsPrefix begins the refs of branches.
const HeadsPrefix = "refs/heads/"
