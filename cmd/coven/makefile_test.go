package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// make help has a line for every public target.
func TestMakeHelp(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("make is not installed")
	}
	help, err := exec.CommandContext(t.Context(), "make", "-s", "-C", root, "help").Output()
	if err != nil {
		t.Fatal(err)
	}
	_, names, _ := strings.Cut(string(text), "\n.PHONY: ")
	names, _, _ = strings.Cut(names, "\n")
	internal := []string{"quiet-build", "quiet-claude"}
	for _, target := range strings.Fields(names) {
		listed := regexp.MustCompile(`(?m)^  make ` + target + ` +\S`).Match(help)
		if listed == slices.Contains(internal, target) {
			t.Errorf("make %s: in make help: %v", target, listed)
		}
	}
}

// .ci/quiet shows the output of a command only if it fails, and returns its exit code.
func TestQuiet(t *testing.T) {
	quiet := filepath.Join("..", "..", ".ci", "quiet")
	out, err := exec.CommandContext(t.Context(), quiet, "sh", "-c", "echo downloading; echo more >&2").CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("%q, %v", out, err)
	}
	cmd := exec.CommandContext(t.Context(), quiet, "sh", "-c", "echo downloading; echo broken >&2; exit 7")
	out, err = cmd.CombinedOutput()
	if err == nil || cmd.ProcessState.ExitCode() != 7 || string(out) != "downloading\nbroken\n" {
		t.Errorf("%q, %v", out, err)
	}
}

// .ci/run stops at the first failure: bash would go on after a command before && that fails.
func TestCIEndsAtAFailure(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", ".ci", "run"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range regexp.MustCompile(`(?m)^ *(make|step|clean|eval|packages)\b.*&&.*$`).FindAllString(string(text), -1) {
		t.Errorf("a failure of the first command is lost: %s", line)
	}
}

// make unsteady fails if it cannot determine which tests have changed.
func TestUnsteadyFails(t *testing.T) {
	dir := t.TempDir()
	script, err := os.ReadFile(filepath.Join("..", "..", ".ci", "unsteady"))
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{
		"repo/.ci/unsteady": string(script), "repo/x/x.go": "package x\n", "repo/examples/plugins/y/y.go": "package y\n", "repo/examples/plugins/y/go.mod": "module y\n",
		"bin/go": "#!/bin/sh\necho \"go $*\"\n[ \"$1\" != list ] || [ -z \"$BROKEN\" ]\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"init", "-q"},
		{"-c", "user.name=x", "-c", "user.email=x@example.test", "commit", "-q", "--allow-empty", "-m", "x"},
		{"add", "."},
		{"-c", "user.name=x", "-c", "user.email=x@example.test", "commit", "-q", "-m", "y"},
	} {
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", filepath.Join(dir, "repo")}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
	}
	for _, c := range []struct {
		since, broken string
		ok            bool
		says          string
	}{
		{"HEAD~1", "", true, "go run ./internal/testrun"},
		{"HEAD~1", "1", false, ""},
		{"HEAD", "", true, "no tests changed since HEAD"},
		{"nowhere", "", false, "nowhere"},
	} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "repo", ".ci", "unsteady"), c.since)
		cmd.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"), "BROKEN="+c.broken)
		out, err := cmd.CombinedOutput()
		if (err == nil) != c.ok || strings.Contains(string(out), "examples/plugins") || !strings.Contains(string(out), c.says) {
			t.Errorf("since %s, broken %q: %v\n%s", c.since, c.broken, err, out)
		}
	}
}
