package board

import (
	"fmt"
	"time"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/terminal/notice"
)

// Edges finds the tasks that begin to need a person. Its zero value knows no task.
type Edges struct{ known map[string]string } // questions by task

// Next returns the cards that need a person for another reason than in the cards of the last call, or for the first time. The
// first call returns none.
func (e *Edges) Next(cards []Card) []Card {
	first, known := e.known == nil, map[string]string{}
	var begun []Card
	for _, c := range cards {
		if c.Section != NeedsYou || c.View.Reason == event.WaitMessage { // a person who chats waits for the answer
			continue
		}
		known[c.Task] = Edge(c.View)
		if !first && e.known[c.Task] != known[c.Task] {
			begun = append(begun, c)
		}
	}
	e.known = known
	return begun
}

// Needs reports whether a card that Next returned still needs a person for the same reason.
func (e *Edges) Needs(c Card) bool { return e.known[c.Task] == Edge(c.View) }

// Edge identifies the state that a session has entered.
func Edge(v session.View) string {
	shown := v.Shown()
	if open := v.OpenApprovals(); v.Status == session.Running && len(open) > 0 {
		return ApprovalEdge(v.ID, open[0].N)
	}
	return fmt.Sprintf("%s %s %s %s", v.ID, shown.Status, shown.Reason, control.StateSince(v).UTC().Format(time.RFC3339Nano))
}

// ApprovalEdge is the Edge of a session whose agent asks for an approval, by the number of the question.
func ApprovalEdge(session string, n int) string { return fmt.Sprintf("%s approval %d", session, n) }

// Notice returns the notice of a task that needs a person.
func (c Card) Notice() notice.Notice {
	return notice.Notice{Task: c.Task, Title: c.Title, Status: string(c.View.Shown().Status), State: c.State, Text: c.Text, Edge: Edge(c.View)}
}
