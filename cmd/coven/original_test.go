package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestOriginal plays the end-to-end scenarios of the original Coven with our commands. scenarios.tsv maps
// scenarios to stories. Their steps record their runs outside of the worktree, which the sandbox must
// allow.
func TestOriginal(t *testing.T) {
	longRun(t)
	testscript.Run(t, testscript.Params{
		Files: stories(t, "original"), Setup: sealOpen, Cmds: scriptCommands(), RequireExplicitExec: true, RequireUniqueNames: true,
		UpdateScripts: os.Getenv("UPDATE") != "",
	})
}

// sealOpen is seal for a story whose steps write outside its repository, unless it has its own settings.
func sealOpen(env *testscript.Env) error {
	settings := filepath.Join(env.WorkDir, ".home", ".config", "coven", "config.yaml")
	_, own := os.Lstat(settings)
	if err := seal(env); err != nil || own == nil {
		return err
	}
	return os.WriteFile(settings, []byte("sandbox: {write: [~/..]}\n"), 0o600)
}

// tells matches a line of a story that names a scenario or a defect of the original.
var tells = regexp.MustCompile(`(?m)^# (?:(Test\w+)$|original (3c \d+)\b)`)

// Every scenario and every defect of the original is in the story that scenarios.tsv names, or is omitted
// with a reason, and stories name only existing ones.
func TestOriginalScenarios(t *testing.T) {
	table := scenarios(t)
	found := map[string][]string{}
	for _, file := range stories(t, "original") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		script, _, _ := strings.Cut(string(text), "\n-- ")
		for _, match := range tells.FindAllStringSubmatch(script, -1) {
			name, story := match[1]+match[2], strings.TrimSuffix(filepath.Base(file), ".txtar")
			if !slices.Contains(found[name], story) {
				found[name] = append(found[name], story)
			}
		}
	}
	for name, want := range table {
		if !slices.Equal(found[name], want) {
			t.Errorf("%s is told in %q, scenarios.tsv says %q", name, found[name], want)
		}
	}
	for name := range maps.Keys(found) {
		if _, ok := table[name]; !ok {
			t.Errorf("%s is told in %q and not in scenarios.tsv", name, found[name])
		}
	}
}

// scenarios reads scenarios.tsv: name, origin, stories or "-", and the reason why there are none.
func scenarios(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "original", "scenarios.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	table := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 4 || fields[0] == "" || fields[1] == "" || (fields[2] == "-") == (fields[3] == "") {
			t.Fatalf("scenarios.tsv: %q is not: name, origin, stories, empty; nor: name, origin, -, reason", line)
		}
		if _, twice := table[fields[0]]; twice {
			t.Fatalf("scenarios.tsv names %s twice", fields[0])
		}
		table[fields[0]] = nil
		if fields[2] != "-" {
			table[fields[0]] = strings.Split(fields[2], " ")
		}
	}
	return table
}
