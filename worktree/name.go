package worktree

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	branchPrefix = "coven/"
	maxName      = 80
	hashDigits   = 8
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
	suffix := "-" + hex.EncodeToString(sum[:])[:hashDigits]
	clean := cleaned(id)
	if limit := maxName - len(suffix); len(clean) > limit {
		clean = clean[:limit]
	}
	clean = strings.Trim(clean, ".-")
	if clean == "" {
		clean = "task"
	}
	return clean + suffix
}

// Branch returns the task's branch, without refs/heads/.
func Branch(taskID string) string { return branchPrefix + SafeName(taskID) }

func isSafe(id string) bool {
	if id == "" || len(id) > maxName || strings.ContainsAny(id[:1], "-.") {
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
