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

// Fault makes a run misbehave. $HOME/.fake-claude/faults.yaml contains a list of
// them under the key faults. The first matching fault applies to a run.
type Fault struct {
	// Match must occur in the first line of input, which is JSON. An empty text matches every run.
	Match string `yaml:"match"`
	// Runs limits the fault to the first matching runs. 0 means all.
	Runs int `yaml:"runs"`

	// Script is printed line by line instead of calling the model. The run ends
	// when its input ends.
	Script []string `yaml:"script"`
	// Garbage is printed, line by line, before the first answer.
	Garbage []string `yaml:"garbage"`
	// Split prints every line in two writes.
	Split bool `yaml:"split"`
	// BigLine prints an assistant text of this many bytes before the first answer.
	BigLine int `yaml:"big_line"`
	// Ungated runs the first tool call that needs permission without asking.
	Ungated bool `yaml:"ungated"`
	// ExitCode overrides the exit code. Results are printed as usual.
	ExitCode *int `yaml:"exit_code"`
	// NoResult prints no result event.
	NoResult bool `yaml:"no_result"`
	// Hang ignores HUP, INT and TERM after the init event and
	// never ends. It starts children that also ignore these signals, in their own sessions and with the
	// CLI's output open. The children append to $HOME/.fake-claude/heartbeat while they live.
	Hang bool `yaml:"hang"`
}

// stateDir is the directory of faults and records.
func stateDir(home string) string { return filepath.Join(home, ".fake-claude") }

// loadFault returns the fault of this run. nth returns the number of runs so far whose first line of
// input contains match, including this run.
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
