// Package check defines checks: commands that must pass before a change lands. Settings, workflows and the plans of
// sessions contain them, each as the text of its command or as a mapping:
//
//	checks:
//	  - make lint
//	  - {run: make test-db, lock: db}
//	  - {run: make bench, serial: true}
//	  - {run: make docs, reuse: true}
package check

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// Check is a command, and its limits on running at the same time as checks of other tasks.
type Check struct {
	Run string `yaml:"run" text:"true" need:"true" about:"the shell command"`
	// Lock is the name of something that only one check of the machine may use at a time. It may be empty.
	Lock   string `yaml:"lock,omitempty" about:"a name: of the checks with the same lock, one at a time runs on this machine"`
	Serial bool   `yaml:"serial,omitempty" about:"no other check of coven runs on this machine at the same time"`
	Reuse  bool   `yaml:"reuse,omitempty" about:"the check does not run if nothing that it read has changed since it last passed"`
}

// Of returns checks without limits.
func Of(commands ...string) []Check {
	var all []Check
	for _, c := range commands {
		all = append(all, Check{Run: c})
	}
	return all
}

// Change is the command to recommend if the program of a check is missing, or if there are no checks.
const Change = `coven config set checks "COMMAND"`

// Commands returns the commands of checks.
func Commands(checks []Check) []string {
	var all []string
	for _, c := range checks {
		all = append(all, c.Run)
	}
	return all
}

var lockRE = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Problem describes why a check is invalid. It returns "" for a valid one.
func (c Check) Problem() string {
	switch {
	case strings.TrimSpace(c.Run) == "":
		return fmt.Sprintf("%q is not a check", c.Run)
	case c.Lock != "" && !lockRE.MatchString(c.Lock):
		return fmt.Sprintf("%q is not a name of a lock: use up to 64 letters, digits, dots, dashes and underscores, such as db", c.Lock)
	}
	return ""
}

// MarshalJSON implements json.Marshaler. A check without limits is the text of its command.
func (c Check) MarshalJSON() ([]byte, error) {
	if c == (Check{Run: c.Run}) {
		return json.Marshal(c.Run)
	}
	return json.Marshal(struct {
		Run    string `json:"run"`
		Lock   string `json:"lock,omitempty"`
		Serial bool   `json:"serial,omitempty"`
		Reuse  bool   `json:"reuse,omitempty"`
	}(c))
}
