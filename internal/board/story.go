package board

import (
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/terminal"
)

// Story returns a function that returns the new lines of the story of a session, as coven logs prints them. If live is set, the
// first lines are those of its last step.
func (r *Repository) Story(v session.View, live bool) func() ([]string, error) {
	tail := event.NewTail(filepath.Join(v.Dir, "events.jsonl"))
	return func() ([]string, error) {
		var lines []string
		err := tail.Next(func(e event.Event) error {
			if live && e.Type == event.StepStarted {
				lines = nil
			}
			if text := strings.TrimSuffix(terminal.Lines(e), "\n"); text != "" {
				lines = append(lines, strings.Split(text, "\n")...)
			}
			return nil
		})
		live = false
		return lines, err
	}
}
