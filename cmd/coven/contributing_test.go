package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// CONTRIBUTING.md contains the diffs that add a command and a step kind. They apply, the rules hold for the
// result, and coven has the command and the kind.
func TestContributing(t *testing.T) {
	longRun(t) // it compiles most of coven
	scratch := t.TempDir()
	copyTracked(t, scratch, ".")
	diffs := diffsIn(t, filepath.Join(scratch, "CONTRIBUTING.md"))
	if len(diffs) != 2 {
		t.Fatalf("CONTRIBUTING.md has %d diffs, want those of a command and a step kind", len(diffs))
	}
	for _, diff := range diffs {
		patch := filepath.Join(t.TempDir(), "patch")
		if err := os.WriteFile(patch, []byte(diff), 0o644); err != nil {
			t.Fatal(err)
		}
		output(t, scratch, "git", "apply", patch)
	}
	output(t, scratch, "go", "test", "-vet=off", "-run", "^(TestImports|TestEngineIsPure|TestPackageComments|TestNames|TestPicture)$", ".")
	output(t, scratch, "make", "build")
	coven := filepath.Join(scratch, "bin", "coven")

	sealProcess(t)
	if out := output(t, scratch, coven, "hello"); out != "hello\n" {
		t.Errorf("coven hello prints %q", out)
	}
	sleeps(t, coven)
}

// sleeps runs a task whose grimoire has a step of the kind sleep.
func sleeps(t *testing.T, coven string) {
	t.Helper()
	dir := t.TempDir()
	grimoires := filepath.Join(dir, ".coven", "grimoires")
	if err := os.MkdirAll(grimoires, 0o755); err != nil {
		t.Fatal(err)
	}
	text := "name: rest\nsteps:\n  - {name: rest, type: sleep, for: 10ms}\n  - {name: tell, type: script, command: echo awake}\n"
	if err := os.WriteFile(filepath.Join(grimoires, "rest.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	output(t, dir, "git", "init", "-q", "-b", "main")
	output(t, dir, "git", "add", "-A")
	output(t, dir, "git", "commit", "-q", "-m", "first")
	output(t, dir, coven, "run", "-p", "rest", "--grimoire", "rest")
	if out := output(t, dir, coven, "events", "p-rest"); !strings.Contains(out, "waited 10ms") {
		t.Errorf("the task did not sleep:\n%s", out)
	}
}

// diffsIn returns the blocks of a document that are diffs.
func diffsIn(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var diffs []string
	for _, part := range strings.Split(string(text), "\n```diff\n")[1:] {
		diff, _, closed := strings.Cut(part, "\n```\n")
		if !closed {
			t.Fatalf("a diff in %s has no end", file)
		}
		diffs = append(diffs, diff+"\n")
	}
	return diffs
}
