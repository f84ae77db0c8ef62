package driver

import (
	"strings"

	"github.com/coven-run/coven/plugins/provider"
)

// maxJoined limits the length of a text that is joined from parts, in bytes.
const maxJoined = 4 << 20

// assembly makes the events of a run from those of its provider: it joins the parts of texts, and
// drops what a CLI repeats of an earlier run.
type assembly struct {
	asked     bool // the CLI made a request
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
			return []provider.Event{e} // an answer may report its usage several times
		}
	}
	if a.repeats() && !isOfRun(e) {
		return nil
	}
	return append(a.flush(), e)
}

// isOfRun reports whether an event is never repeated.
func isOfRun(e provider.Event) bool {
	switch e.(type) {
	case provider.Asked, provider.Result, provider.Retry, provider.Limit:
		return true
	}
	return false
}

// repeats reports whether the CLI repeats an earlier run: see provider.Asked.
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

// flush returns the text so far, if there is any.
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
