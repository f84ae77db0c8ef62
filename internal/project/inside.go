package project

import (
	"path/filepath"
	"regexp"

	"github.com/coven-run/coven/worktree"
)

// InWorktree returns the path of a file in the worktree of a task, relative to the worktree. It judges only by the name of
// the worktree's directory, which contains that of the task, because the worktree may no longer exist.
func InWorktree(task, file string) (inside string, ok bool) {
	dir := regexp.MustCompile(`^/(.*[^A-Za-z0-9])?` + regexp.QuoteMeta(worktree.SafeName(task)) + `([^A-Za-z0-9/][^/]*)?(/|$)`)
	file = filepath.Clean(file)
	outside := dir.FindString(file)
	return file[len(outside):], outside != ""
}
