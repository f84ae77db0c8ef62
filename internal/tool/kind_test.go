package tool

import (
	"strings"
	"testing"
)

// The tools that a definition names, as coven and as Claude Code call them.
func TestIDs(t *testing.T) {
	for list, want := range map[string]string{
		"read grep":            "fs_read search_grep|",
		"Read Glob LS":         "fs_ls fs_read search_glob|",
		"fs_*":                 "fs_edit fs_ls fs_read fs_write|",
		"search_grep":          "search_grep|",
		"edit MultiEdit":       "fs_edit|",
		"Bash write":           "exec_bash fs_write|",
		"*":                    "browser_fetch exec_bash fs_edit fs_ls fs_read fs_write memory_todo search_glob search_grep subtask|",
		"semantic_search":      "|",
		"fetch todo subtask":   "browser_fetch memory_todo subtask|",
		"browser_* memory_*":   "browser_fetch memory_todo|",
		"read WebFetch gh_[":   "fs_read|WebFetch gh_[",
		"playwright_* reading": "|playwright_* reading",
	} {
		ids, unknown := IDs(strings.Fields(list))
		if got := strings.Join(ids, " ") + "|" + strings.Join(unknown, " "); got != want {
			t.Errorf("%s: %s, want %s", list, got, want)
		}
	}
}
