package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// CONTRIBUTING.md shows the diff that adds a command. It applies, the rules hold for
// the result, and coven has the command.
func TestContributingCommand(t *testing.T) {
	scratch := t.TempDir()
	copyTracked(t, scratch, ".")
	patch := filepath.Join(t.TempDir(), "hello.diff")
	if err := os.WriteFile(patch, []byte(diffIn(t, filepath.Join(scratch, "CONTRIBUTING.md"))), 0o644); err != nil {
		t.Fatal(err)
	}
	output(t, scratch, "git", "apply", patch)
	output(t, scratch, "go", "test", "-vet=off", "-run", "^(TestImports|TestPackageComments|TestNames)$", ".")
	output(t, scratch, "make", "build")
	if out := output(t, scratch, filepath.Join(scratch, "bin", "coven"), "hello"); out != "hello\n" {
		t.Errorf("coven hello prints %q", out)
	}
}

// diffIn returns the only block of a document that is a diff.
func diffIn(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(text), "\n```diff\n")
	if len(parts) != 2 {
		t.Fatalf("%s has %d diffs, want one", file, len(parts)-1)
	}
	diff, _, closed := strings.Cut(parts[1], "\n```\n")
	if !closed {
		t.Fatalf("the diff in %s has no end", file)
	}
	return diff + "\n"
}
