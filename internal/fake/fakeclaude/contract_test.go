package fakeclaude_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "record what the real claude does in testdata/contract")

// contractCase is one scenario that both programs play. The behavior of the real CLI is
// recorded in testdata/contract. The fake is compared with the record, and so is the
// real CLI where it is installed.
type contractCase struct {
	name     string
	scenario string // of the API, in YAML
	files    map[string]string
	dead     bool     // the permission server cannot be started
	late     bool     // the permission server waits until serveLate creates a file
	env      []string // in addition to the usual variables
	flags    []string // in addition to the usual flags
	// drive plays the user. Without it, one message is sent. It returns lines to
	// include in the record.
	drive func(w *world, p *process) []string
}

// TestFakeKeepsTheContract compares the fake with the records.
func TestFakeKeepsTheContract(t *testing.T) {
	program := fakeCLI(t)
	for _, c := range contractCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.compare(t, program)
		})
	}
}

// TestRealKeepsTheContract compares the real CLI with the records. If it
// fails, a new version behaves differently.
func TestRealKeepsTheContract(t *testing.T) {
	program := realCLI(t)
	for _, c := range contractCases() {
		t.Run(c.name, func(t *testing.T) { c.compare(t, program) })
	}
}

func (c contractCase) compare(t *testing.T, program cli) {
	t.Helper()
	got := strings.Join(c.play(t, program), "\n") + "\n"
	path := filepath.Join("testdata", "contract", strings.ReplaceAll(c.name, " ", "-")+".golden")
	if *update && program.name == "real" {
		check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		check(t, os.WriteFile(path, []byte(got), 0o600))
		return
	}
	want, err := os.ReadFile(path)
	check(t, err)
	if got != string(want) {
		t.Errorf("%s claude differs\n--- recorded\n%s--- now\n%s", program.name, want, got)
	}
}

func (c contractCase) play(t *testing.T, program cli) []string {
	t.Helper()
	w := newWorld(t, program, c.scenario)
	w.deadServer, w.lateServer = c.dead, c.late
	for name, content := range c.files {
		w.write(name, content)
	}
	p := w.start(c.env, append([]string{"--session-id", w.id}, c.flags...)...)
	var noted []string
	if c.drive != nil {
		noted = c.drive(w, p)
	} else {
		p.send("hello")
	}
	lines := append(p.wait().describe(), noted...)
	return append(lines, w.aftermath()...)
}
