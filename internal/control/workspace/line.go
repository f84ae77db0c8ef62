package workspace

import (
	"fmt"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/land"
)

// landing is the prefix of the landing of a task in the line of a target.
const landing = "land "

// taskOf returns the task of a holder in the line of a target.
func taskOf(h land.Holder) string { return strings.TrimPrefix(h.What, landing) }

// TurnOf returns the turn that a running session waits for before it lands, or nil if it does not wait. It
// reads the current state of the line, not the record of the session. Only a session in a merge step can
// wait.
func TurnOf(r *worktree.Repo, v session.View) *session.Turn {
	last := len(v.Steps) - 1
	if v.Status != session.Running || last < 0 || v.Steps[last].Kind != "merge" || v.Steps[last].Status != session.Running {
		return nil
	}
	line, err := land.ReadLine(r, v.Info.Target)
	if err != nil {
		return nil // the position is only informative
	}
	turn := &session.Turn{Target: v.Info.Target}
	for _, h := range line.Waiting {
		if taskOf(h) == v.Task {
			turn.Position = len(turn.Before) + 1
			break
		}
		turn.Before = append(turn.Before, taskOf(h))
	}
	if turn.Position == 0 {
		return nil
	}
	if now := line.Turn; now.PID > 0 {
		turn.Task, turn.Doing, turn.PID, turn.Since = taskOf(now), now.Doing, now.PID, now.Since
	}
	return turn
}

// TurnText describes the wait for a turn: the task that has the turn, and the next ones.
func TurnText(t session.Turn, now time.Time) string {
	text := fmt.Sprintf("waits for its turn on %s, position %d", event.BranchName(t.Target), t.Position)
	var front []string
	if t.Task != "" {
		front = append(front, fmt.Sprintf("%s (pid %d for %s)", TurnDoing(t), t.PID, max(now.Sub(t.Since), 0).Round(time.Second)))
	}
	if len(t.Before) > 0 {
		front = append(front, "next "+strings.Join(t.Before, ", "))
	}
	if len(front) == 0 {
		return text
	}
	return text + ": " + strings.Join(front, ", ")
}

// TurnDoing returns the task that has the awaited turn and its current action, or "" if no task has it.
func TurnDoing(t session.Turn) string {
	switch {
	case t.Task == "":
		return ""
	case t.Doing == "":
		return t.Task + " has it"
	}
	return t.Task + " " + t.Doing
}
