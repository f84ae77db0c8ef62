// Package continuation writes the first message of an agent that continues the work of an earlier one: in the conversation of
// that agent, or in a new one that replaces it.
package continuation

import (
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/event"
)

// Journal is the record of a session: see runner.Journal.
type Journal interface {
	// At returns the events of a path, without those that a retry discarded.
	At(path string, types ...event.Type) []event.Event
	// All returns the events of the session, including those that a retry discarded.
	All(types ...event.Type) []event.Event
}

// Work is the earlier work on an agent leaf.
type Work struct {
	Journal Journal
	Path    string // of the leaf
	Since   int64  // number of the event that began the work
}

const (
	resumedText   = "You were interrupted while you worked on this task. Nothing was undone. Continue where you stopped."
	restartedText = "# What happened before\n\nAn earlier agent worked on this task and was interrupted. Its conversation cannot be resumed. Nothing it did was undone: check what is done before you continue."
	requestText   = "You were working on this request:" // the conversation may lack it
)

const (
	maxCalls  = 10      // calls in a message
	maxReport = 4 << 10 // bytes of a subagent's report in a message
)

// Resumed returns the message for an agent whose conversation goes on. said are messages that it has not received. request is
// set if the conversation began with another request. The agent may not remember its last calls, because the CLI writes its
// conversation with a delay.
func (w Work) Resumed(request string, said []string) string {
	message := w.describe(resumedText, "Your", said)
	if request != "" {
		message += "\n\n" + requestText + "\n\n" + request
	}
	return message
}

// Restarted returns the message for a new agent whose CLI cannot resume conversations.
func (w Work) Restarted(prompt string, said []string) string {
	return strings.TrimRight(prompt, "\n") + "\n\n" + w.describe(restartedText, "Its", said)
}

// Undelivered returns the messages of people to the agent that are not among those that it has received.
func (w Work) Undelivered(received []string) []string {
	var said []string
	for _, e := range w.Journal.At(w.Path, event.AgentMessage) {
		var m event.Message
		if e.Seq > w.Since && e.Decode(&m) == nil && !slices.Contains(received, m.ID) {
			said = append(said, m.By+" says: "+m.Text)
		}
	}
	return said
}

// HasCalls reports whether the agent has called a tool.
func (w Work) HasCalls() bool { return len(w.calls()) > 0 }

// describe returns a text with the last calls of the agent, the reports of its subagents, and messages.
func (w Work) describe(text, whose string, said []string) string {
	if calls := w.calls(); len(calls) > 0 {
		calls = calls[max(0, len(calls)-maxCalls):]
		text += " " + whose + " last tool calls before the interruption are below. They may have run even if you do not remember them; check before you repeat one:\n\n" + strings.Join(calls, "\n")
	}
	return strings.Join(slices.Concat([]string{text}, w.reports(), said), "\n\n")
}

// calls returns the calls of the agent, each as a line of a list.
func (w Work) calls() (lines []string) {
	for _, e := range w.Journal.At(w.Path, event.AgentTool) {
		var call event.Tool
		if e.Seq > w.Since && e.Decode(&call) == nil {
			lines = append(lines, "- "+call.Summary)
		}
	}
	return lines
}

// reports returns the reports of the agent's subagents, which it may not have received.
func (w Work) reports() (reports []string) {
	for _, e := range w.Journal.All(event.SpawnEnded) {
		var end event.SpawnEnd
		if e.Seq <= w.Since || event.LeafOf(e.Path) != w.Path || e.Decode(&end) != nil || end.Status != event.StatusCompleted && end.Status != event.StatusPartial {
			continue
		}
		text, how := end.Report, "reported"
		if len(text) > maxReport {
			text = strings.ToValidUTF8(text[:maxReport], "") + "…"
		}
		if end.Status == event.StatusPartial {
			how = "has done its work in part (no attempt passed its evaluation; this is the best one). It reported"
		}
		reports = append(reports, "The agent "+end.Agent+" that you started ("+end.ID+") "+how+":\n\n"+text)
	}
	return reports
}
