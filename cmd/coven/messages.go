package main

import (
	"strings"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/session"
)

// sendMessage puts a message into the inbox of a session, for the agent at work. It
// returns the file that is there until the agent was told.
func sendMessage(h *house, v session.View, text string) (file string, err error) {
	if strings.TrimSpace(text) == "" {
		return "", exit.Usagef("", "the message is empty")
	}
	return session.Ask(h.repo.Root, v.ID, session.Request{
		Kind: session.KindMessage, Text: text, By: h.env.user(), Time: h.env.now(),
	})
}
