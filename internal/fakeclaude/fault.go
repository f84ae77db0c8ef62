package fakeclaude

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"gopkg.in/yaml.v3"
)

// Fault makes a run misbehave. $HOME/.fake-claude/faults.yaml holds a list of
// them under the key faults; the first that fits a run is the run's.
type Fault struct {
	// Match must occur in the first line of input, which is JSON; "" fits any.
	Match string `yaml:"match"`
	// Runs is how many runs that fit misbehave, the first ones; 0 = all.
	Runs int `yaml:"runs"`

	// Script is printed line by line instead of asking the model; the run ends
	// when its input does.
	Script []string `yaml:"script"`
	// Garbage is printed, line by line, before the first answer.
	Garbage []string `yaml:"garbage"`
	// Split prints every line in two writes.
	Split bool `yaml:"split"`
	// BigLine prints, before the first answer, an assistant text of so many bytes.
	BigLine int `yaml:"big_line"`
	// Ungated runs the first tool call that would be asked for without asking.
	Ungated bool `yaml:"ungated"`
	// ExitCode is the exit code, whatever happened; results are printed as usual.
	ExitCode *int `yaml:"exit_code"`
	// NoResult prints no result event.
	NoResult bool `yaml:"no_result"`
	// Hang ignores HUP, INT and TERM after the init event, starts children that do
	// so too and sit in sessions of their own with the CLI's output open, and
	// never ends. The children append to $HOME/.fake-claude/heartbeat while they live.
	Hang bool `yaml:"hang"`
}

// stateDir is where faults and records live.
func stateDir(home string) string { return filepath.Join(home, ".fake-claude") }

// loadFault returns the fault of this run, which is the nth whose first line of
// input holds a match.
func loadFault(home, input string, nth func(match string) int) (Fault, error) {
	data, err := os.ReadFile(filepath.Join(stateDir(home), "faults.yaml"))
	if errors.Is(err, fs.ErrNotExist) {
		return Fault{}, nil
	}
	if err != nil {
		return Fault{}, fmt.Errorf("read faults: %w", err)
	}
	var file struct {
		Faults []Fault `yaml:"faults"`
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil {
		return Fault{}, fmt.Errorf("parse faults.yaml: %w", err)
	}
	for _, fault := range file.Faults {
		if strings.Contains(input, fault.Match) && (fault.Runs == 0 || nth(fault.Match) <= fault.Runs) {
			return fault, nil
		}
	}
	return Fault{}, nil
}
