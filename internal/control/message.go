package control

import (
	"strings"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
)

// SendMessage puts a message into the inbox of a session, for the agent at work. It
// returns the file that is there until the agent was told.
func SendMessage(p *project.Project, v session.View, text string) (file string, err error) {
	if strings.TrimSpace(text) == "" {
		return "", exit.Usagef("", "the message is empty")
	}
	return session.Ask(p.Repo.Root, v.ID, session.Request{
		Kind: session.KindMessage, Text: text, By: p.Env.User(), Time: p.Env.Now(),
	})
}
