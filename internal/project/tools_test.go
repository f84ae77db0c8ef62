package project

import "testing"

// A tool of a project must not have the name of another tool, in any form in which agents call it.
func TestIsTaken(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"read": true, "Read": true, "fs_read": true, "mcp__coven__read": true, "MultiEdit": true,
		"spawn_agent": true, "mcp__coven__spawn_agent": true, "skill_x": true, "lint": false, "reading": false,
	} {
		if got := isTaken(name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
