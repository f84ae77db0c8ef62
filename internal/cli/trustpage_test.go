package cli

import (
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/pluginregistry"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/worktree"
)

// The page shows a file as plain text: control characters do not reach the terminal, and long lines are
// cut.
func TestTrustPageIsPlain(t *testing.T) {
	p := &project.Project{Repo: &worktree.Repo{Root: "/r"}}
	text := trustPage(p, []pluginregistry.Plugin{{
		Kind: "reviewer", Name: "x", From: pluginregistry.FromProject, File: "/r/.coven/plugins/coven-reviewer-x", Project: true,
		State: pluginregistry.Untrusted, Detail: "a\x1b[2Jb", Size: 1, SHA256: strings.Repeat("a", 64), Lines: 40,
		Head: "#!/bin/sh\x1b[1A\x1b[2K\recho fine\n" + strings.Repeat("long ", 1000) + "\n" + strings.Repeat("y\n", 30),
	}})
	if strings.ContainsAny(text, "\x1b\r\x00") {
		t.Errorf("%q", text)
	}
	if !strings.Contains(text, "and 30 more lines") || !strings.Contains(text, "a script of 40 lines") {
		t.Error(text)
	}
	for line := range strings.SplitSeq(text, "\n") {
		if len([]rune(line)) > 120 {
			t.Errorf("%q", line)
		}
	}
}
