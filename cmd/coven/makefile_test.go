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

// make help has a line for every target that one calls by name.
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
