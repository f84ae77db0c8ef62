package config

import (
	"slices"
	"testing"
)

// Valid items of keep are globs in the worktree, and caches that each task has separately.
func TestIsKept(t *testing.T) {
	for text, want := range map[string]bool{
		"node_modules": true, "**/target": true, "$GOCACHE": true, "$npm_config_cache": true,
		"": false, "../x": false, "/x": false, "$": false, "$HOME": false, "$GOCACHE/x": false, "GOCACHE/../..": false,
	} {
		if got := isKept(text); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}

// Files and caches are separated.
func TestKept(t *testing.T) {
	w := Worktree{Keep: []string{"node_modules", "$GOCACHE", "**/target", "$GOMODCACHE"}}
	if files, caches := w.KeptFiles(), w.KeptCaches(); !slices.Equal(files, []string{"node_modules", "**/target"}) || !slices.Equal(caches, []string{"GOCACHE", "GOMODCACHE"}) {
		t.Errorf("files %v, caches %v", files, caches)
	}
	if len(w.Keep) != 4 {
		t.Errorf("the setting is %v now", w.Keep)
	}
}
