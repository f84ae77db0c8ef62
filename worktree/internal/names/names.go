// Package names defines the names of branches, refs and directories for tasks and sessions.
package names

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// WorktreesDir is the directory of worktrees in the main checkout: see repo.Place.
const WorktreesDir = ".coven/worktrees"

// A record on disk may name a commit that no branch contains yet. Before such a record is written, the ref
// refs/coven/keep/<task>/<purpose> is created to protect the commit from git gc. The next record of the
// same kind moves the ref, and removing the worktree deletes it.
const (
	KeepPrefix  = "refs/coven/keep/"
	KeepLanding = "landing"    // the commit that a recorded landing is about to land
	KeepMove    = "integrate"  // the merge in integrate.json
	KeepTarget  = "conflicted" // the target's commit in conflicted.json
	KeepMerged  = "merged"     // the commit in outside.json
	KeepWatched = "watched"    // a commit with the trees in watch.json
)

// KeepRef returns the ref that protects a commit of a task for a purpose.
func KeepRef(taskID, purpose string) string { return KeepPrefix + SafeName(taskID) + "/" + purpose }

// Parts and limits of names.
const (
	BranchPrefix = "coven/" // of the branches of tasks
	MaxName      = 80       // bytes of a safe name
	HashDigits   = 8
)

// SafeName makes a task or session ID safe as a path element, as a part of a ref name, and as an argument.
// A safe ID is unchanged. In any other ID, unsafe characters are replaced, and 8 hexadecimal digits of its
// SHA-256 are appended. IDs that differ only in case result in names that differ only in case. Add records
// the ID with the name, and refuses a name that belongs to another ID.
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

// cleaned replaces every run of unsafe characters with one hyphen, and every run of dots with one dot.
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

// CovenPrefix is the prefix of all refs of coven except the branches of tasks.
const CovenPrefix = "refs/coven/"

// LivePrefix is the prefix of the refs of sessions that are kept on a remote; SafeName of the task follows. ArchivePrefix is that of their
// archives: a month and a machine, such as 2006-01/name, follow. FetchedPrefix is that of the copies of archives in a clone: a remote, a month and a machine
// follow. MailPrefix is that of messages: SafeName of the task, a slash and an ID follow.
const (
	LivePrefix    = "refs/coven/live/"
	MailPrefix    = "refs/coven/mail/"
	ArchivePrefix = "refs/coven/archive/"
	FetchedPrefix = "refs/coven/fetched/"
)

// ClaimsPrefix is the prefix of the refs of claims.
const ClaimsPrefix = "refs/coven/claims/"

// RescuesPrefix is the prefix of the refs of rescues.
const RescuesPrefix = "refs/coven/rescue/"

// PrivateStore is the repository with the private parts of rescues, in coven's part of the git directory.
const PrivateStore = "private"

// PrivatePrefix is the prefix of its refs. The commit of a private part follows.
const PrivatePrefix = "refs/parts/"

// RescuePrefix returns the prefix of the refs of a task's rescues.
func RescuePrefix(taskID string) string { return RescuesPrefix + SafeName(taskID) + "/" }

// SnapshotsPrefix is the prefix of the refs of snapshots.
const SnapshotsPrefix = "refs/coven/snapshots/"

// SnapshotRef returns the ref of a session's snapshots.
func SnapshotRef(session string) string { return SnapshotsPrefix + SafeName(session) }

// Closed is the name of a directory that does not exist, in coven's directory of a task. The worktree's .git file names
// it while an agent works there; git prints the name.
const Closed = "closed-while-an-agent-works"

// PrivateDir is the name of the private common directory inside the worktree's git directory.
const PrivateDir = "common"

// HeadsPrefix is the prefix of the refs of branches.
const HeadsPrefix = "refs/heads/"

// RemotesPrefix is the prefix of remote-tracking refs.
const RemotesPrefix = "refs/remotes/"

// TaskLock returns the name of the lock for a task. There are only 256 such locks, which limits the number
// of files.
func TaskLock(name string) string {
	sum := sha256.Sum256([]byte(name))
	return "task-" + hex.EncodeToString(sum[:1])
}

// WorktreesLock is the name of the lock on the list of worktrees.
const WorktreesLock = "worktrees"

// TargetLock returns the name of the lock on a target.
func TargetLock(branch string) string { return "land-" + SafeName(branch) }
