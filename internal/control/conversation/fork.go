package conversation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/coven-run/coven/internal/agent/channel"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/worktree/snapshot"
)

// Fork holds the parts of a session that a new one starts with: its messages up to one of them, its to-do
// list and its files.
type Fork struct {
	From         event.Fork
	Agent        string // agent whose conversation continues
	Conversation string // ID in the new session
	Base         string // the commit from which the new worktree starts
	Gap          string // explains why the files are not those of that moment; empty if they are

	parts    []session.Part
	channels map[string][]channel.Message // messages of channels until then
}

// StateAt returns the state of a worktree that a commit holds. The error is snapshot.ErrNone if the commit
// is gone.
type StateAt func(ctx context.Context, commit string) (snapshot.Snapshot, error)

// NewFork reads the messages of a session up to the one with an ID. A unique prefix of the ID is enough,
// and an empty ID means the last message. The session may be running: its record so far is used. It is not
// changed.
func NewFork(ctx context.Context, stateAt StateAt, v session.View, id string) (*Fork, error) {
	parts, err := session.Parts(v.Dir)
	if err != nil {
		return nil, err
	}
	events, err := session.Events(v.Dir)
	if err != nil {
		return nil, err
	}
	at, err := find(v, parts, id)
	if err != nil {
		return nil, err
	}
	last := parts[at]
	if err := check(v, last); err != nil {
		return nil, err
	}
	channels, err := channel.Until(v.Dir, last.Time)
	if err != nil {
		return nil, fmt.Errorf("fork session %s: %w", v.ID, err)
	}
	f := &Fork{From: event.Fork{Session: v.ID, Message: last.Message}, Agent: agentOf(v, events, last), channels: channels}
	f.copy(parts[:at+1], last.Conversation)
	return f, f.saved(ctx, stateAt, record{v, parts, events}, at)
}

// find returns the index of the last part of a message. Messages without a last part were cut off.
func find(v session.View, parts []session.Part, id string) (at int, err error) {
	next := "coven sessions messages " + shellword.Word(v.ID)
	at = -1
	for i, p := range parts {
		switch {
		case !p.Last || p.Type == typeSummary || !strings.HasPrefix(p.Message, id):
		case id == "" && event.LeafOf(p.Path) != p.Path: // of a subagent or a reviewer
		case id != "" && id != p.Message && at >= 0:
			return 0, exit.Failedf(next, "several messages of session %s have an ID that begins with %s", v.ID, id)
		default:
			at = i
		}
		if at == i && p.Message == id {
			return at, nil
		}
	}
	switch {
	case at >= 0:
		return at, nil
	case !slices.ContainsFunc(parts, func(p session.Part) bool { return p.Last }):
		return 0, exit.Failedf(next, "session %s has no messages of coven's own loop: an agent CLI keeps its conversation itself, and coven cannot fork it", v.ID)
	}
	return 0, exit.Failedf(next, "session %s has no message %s", v.ID, id)
}

// check returns an error if a session cannot be forked at a message.
func check(v session.View, last session.Part) error {
	next := "coven sessions messages " + shellword.Word(v.ID)
	if event.LeafOf(last.Path) != last.Path {
		return exit.Failedf(next, "message %s of session %s is of a subagent or a reviewer: name one of the agent of the step", last.Message, v.ID)
	}
	if _, ok := plugins.LoopModel(v.Info.Provider); !ok {
		return exit.Failedf(next, "session %s runs its agents with %s, where the conversation of coven's own loop cannot continue", v.ID, v.Info.Provider)
	}
	return nil
}

// agentOf returns the agent of a conversation.
func agentOf(v session.View, events []event.Event, of session.Part) string {
	name := ""
	for _, e := range events {
		if e.Type != event.AgentStarted {
			continue
		}
		if start := event.As[event.AgentStart](e); start.Conversation == of.Conversation {
			name = start.Agent
		}
	}
	return cmp.Or(name, v.PrimaryAgent())
}

// copy copies messages, with new IDs for them and their conversations. It omits messages without a last
// part, and snapshots, which belong to the other session.
func (f *Fork) copy(parts []session.Part, continues string) {
	complete := map[string]bool{}
	for _, p := range parts {
		complete[p.Message] = complete[p.Message] || p.Last
	}
	renamed := map[string]string{}
	rename := func(id string) string {
		if _, ok := renamed[id]; !ok {
			renamed[id] = uuid.NewString()
		}
		return renamed[id]
	}
	for _, p := range parts {
		if p.Message == "" || !complete[p.Message] {
			continue
		}
		p.ForkedFrom, p.Message, p.Conversation = p.Message, rename(p.Message), rename(p.Conversation)
		if p.Type == typeSummary {
			p.ID = rename(p.ID)
		}
		f.parts = append(f.parts, p)
	}
	f.Conversation = renamed[continues]
}

// Origin returns the origin of the new session, or nil for a nil Fork.
func (f *Fork) Origin() *event.Fork {
	if f == nil {
		return nil
	}
	return &f.From
}

// WriteMessages writes the messages, and those of channels, to the new session before it starts. It does
// nothing for a nil Fork.
func (f *Fork) WriteMessages(s *session.Session) error {
	if f == nil {
		return nil
	}
	return errors.Join(s.Copy(f.parts), channel.Begin(s.Dir, f.channels))
}
