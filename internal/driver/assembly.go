package driver

import (
	"strings"

	"github.com/coven-run/coven/plugins/provider"
)

// maxJoined limits the length of a text joined from chunks, in bytes.
const maxJoined = 4 << 20

// assembly converts the events of a provider to the events of a run: it joins chunks of text and
// drops events that a CLI repeats from an earlier run.
type assembly struct {
	asked     bool // the CLI has made a request
	started   bool
	text      strings.Builder
	reasoning bool // text is reasoning
}

// add adds an event and returns the events that are complete.
func (a *assembly) add(e provider.Event) []provider.Event {
	switch e := e.(type) {
	case provider.Started:
		a.started = true
	case provider.Asked:
		a.asked = true
	case provider.Chunk:
		return a.join(e)
	case provider.Spent:
		if !e.Next && !a.repeats() {
			return []provider.Event{e} // the usage of an answer may be reported several times; do not flush the text
		}
	}
	if a.repeats() && !isOfRun(e) {
		return nil
	}
	return append(a.flush(), e)
}

// isOfRun reports whether an event always belongs to this run.
func isOfRun(e provider.Event) bool {
	switch e.(type) {
	case provider.Asked, provider.Result, provider.Retry, provider.Limit:
		return true
	}
	return false
}

// repeats reports whether the CLI is repeating an earlier run; see provider.Asked.
func (a *assembly) repeats() bool { return a.asked && !a.started }

func (a *assembly) join(c provider.Chunk) (ready []provider.Event) {
	if a.repeats() {
		return nil
	}
	if c.Reasoning != a.reasoning || a.text.Len()+len(c.Text) > maxJoined {
		ready = a.flush()
	}
	a.reasoning = c.Reasoning
	a.text.WriteString(c.Text)
	return ready
}

// flush returns the pending text as an event, or nil if there is none.
func (a *assembly) flush() []provider.Event {
	text := a.text.String()
	a.text.Reset()
	switch {
	case strings.TrimSpace(text) == "":
		return nil
	case a.reasoning:
		return []provider.Event{provider.Reasoning{Text: text}}
	}
	return []provider.Event{provider.Text{Text: text}}
}
