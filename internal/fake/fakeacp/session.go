package fakeacp

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
)

// said is a line of a session's file: one message.
type said struct {
	Kind string `json:"kind"` // kind of the update
	Text string `json:"text"`
}

// keep appends a message to the session.
func (a *agent) keep(kind, text string) {
	line, _ := json.Marshal(said{kind, text}) // strings can always be encoded
	a.append(a.session+".jsonl", string(line))
}

// note adds a line to the session's log.
func (a *agent) note(text string) { a.append(a.session+".log", text) }

func (a *agent) append(name, line string) {
	if a.state == "" {
		return
	}
	f, err := os.OpenFile(filepath.Join(a.state, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err) // the panic makes the test fail
	}
	defer f.Close() //nolint:errcheck // the test checks the content
	_, _ = f.WriteString(line + "\n")
}

// replay repeats the messages of the session. It reports whether the session exists.
func (a *agent) replay() bool {
	f, err := os.Open(filepath.Join(a.state, filepath.Base(a.session)+".jsonl"))
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // read only
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var s said
		if json.Unmarshal(lines.Bytes(), &s) == nil {
			a.chunk(s.Kind, s.Text)
		}
	}
	return true
}
