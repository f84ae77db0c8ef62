package fakebd

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Version is the version of bd that the fake imitates unless $FAKEBD_VERSION names another one.
const Version = "1.3.0"

func (r *run) bdVersion() string {
	if other := r.env("FAKEBD_VERSION"); other != "" {
		return other
	}
	return Version
}

// older reports whether the imitated version is one before 1.2, or its source without a version: it has no databases with
// a proxied server, no owners that only --force overrules, and no report of the failure of each issue.
func (r *run) older() bool {
	for _, line := range []string{"0.", "1.0.", "1.1.", "dev"} {
		if strings.HasPrefix(strings.TrimPrefix(r.bdVersion(), "v"), line) {
			return true
		}
	}
	return r.bdVersion() == "1.2.2" // published again from 1.1
}

// metadata is the part of metadata.json that decides where bd looks for the issues.
type metadata struct {
	Mode string `json:"dolt_mode"`
}

// mode returns the mode of the database of the .beads directory.
func (r *run) mode() string {
	var m metadata
	data, err := os.ReadFile(filepath.Join(r.beads, "metadata.json"))
	if err != nil || json.Unmarshal(data, &m) != nil {
		return ""
	}
	return m.Mode
}

// state returns the file with the issues. An older bd does not know databases with a proxied server: it creates an
// embedded one beside it, and finds no issues there.
func (r *run) state() string {
	if r.older() && r.mode() == "proxied-server" {
		return filepath.Join(r.beads, stateDir, phantom)
	}
	return filepath.Join(r.beads, stateDir, "state.json")
}

// phantom is the file of the database that an older bd creates.
const phantom = "phantom.json"

// failure is the failed change of an issue.
type failure struct {
	ID    string `json:"id"`
	Error string `json:"error"`
}

// report fails with the failures of the issues of a command. The lines for people are already printed.
func (r *run) report(failed []failure, verb string) int {
	if r.older() {
		return 1
	}
	text := fmt.Sprintf("%d of %d issues failed to %s", len(failed), len(r.flags.args), verb)
	if !r.json() {
		return r.complain(text)
	}
	object := map[string]any{"error": text, "failed": failed}
	if r.enveloped() {
		object = map[string]any{"data": object}
	}
	object["schema_version"] = 1
	data, err := json.Marshal(object)
	if err != nil {
		return r.complain(err.Error())
	}
	r.warn("%s\n", data)
	return 1
}
