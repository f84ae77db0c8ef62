package tui

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/coven-run/coven/internal/board"
	"github.com/coven-run/coven/internal/terminal/notice"
)

// notices tells a person who looks elsewhere that tasks need them.
type notices struct {
	sender  *notice.Sender // nil for none
	edges   board.Edges
	pending []board.Card
	focus   focus
	last    time.Time // when the person pressed a key
}

// focus is whether the window of the terminal has the focus.
type focus int

const (
	unknown focus = iota // the terminal has not reported it
	focused
	blurred
)

// collectedMsg ends the time in which notices are collected.
type collectedMsg struct{}

// Announce makes the screen send notices.
func (m Model) Announce(s *notice.Sender) Model {
	m.notices.sender, m.notices.last = s, m.source.Now()
	return m
}

// notePerson records a message of a person.
func (n *notices) notePerson(msg tea.Msg, now time.Time) {
	switch msg.(type) {
	case tea.FocusMsg:
		n.focus = focused
	case tea.BlurMsg:
		n.focus = blurred
	case tea.KeyPressMsg, tea.MouseClickMsg, tea.MouseWheelMsg, tea.PasteMsg:
		n.last = now
	}
}

// collect collects the tasks that begin to need a person, and begins to wait for further ones.
func (m *Model) collect() tea.Cmd {
	n := &m.notices
	if n.sender == nil || m.err != nil {
		return nil
	}
	waits := len(n.pending) > 0
	for _, c := range n.edges.Next(m.cards) {
		switch one := c.Notice(); {
		case !n.sender.Wants(one.Status):
		case m.looksAt(c.Task):
			n.sender.Seen(one)
		default:
			n.pending = append(n.pending, c)
		}
	}
	if waits || len(n.pending) == 0 {
		return nil
	}
	return tea.Tick(n.sender.Window(), func(time.Time) tea.Msg { return collectedMsg{} })
}

// looksAt reports whether the person sees a task: in the list, or because the screen shows it.
func (m *Model) looksAt(task string) bool {
	n := &m.notices
	if n.focus == blurred || n.focus == unknown && !n.sender.Attentive(n.last, m.source.Now()) {
		return false
	}
	switch {
	case m.form != nil:
		return false
	case m.pager != nil:
		return m.pager.task == task
	case m.review != nil:
		return m.review.task == task
	}
	return true
}

// announce sends the collected notices of the tasks that still need a person.
func (m *Model) announce() tea.Cmd {
	n := &m.notices
	var all []notice.Notice
	for _, c := range n.pending {
		if n.edges.Needs(c) {
			all = append(all, c.Notice())
		}
	}
	n.pending = nil
	if len(all) == 0 {
		return nil
	}
	sender := n.sender
	return func() tea.Msg { return tea.Raw(sender.Deliver(context.Background(), all))() }
}
