package conversation

import (
	"encoding/json"
	"time"

	"github.com/coven-run/coven/internal/driver/chat"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/plugins/model"
)

// Sources of the number of tokens of a message.
const (
	FromAPI      = "api"      // counted by the API when the model wrote the message
	FromEstimate = "estimate" // four bytes per token
)

// Message is a message of an agent of a session, as programs see it. An agent CLI reports only parts:
// consecutive parts of one role form a message without an ID.
type Message struct {
	ID           string        `json:"id,omitempty"` // a UUID
	Role         string        `json:"role"`         // user or assistant
	Path         string        `json:"path"`         // of the step, or of a subagent
	Conversation string        `json:"conversation,omitempty"`
	Time         time.Time     `json:"time"`
	Tokens       int64         `json:"tokens"`
	TokensFrom   string        `json:"tokens_from"`           // api or estimate
	Usage        *session.Used `json:"usage,omitempty"`       // of the request that it answers
	ForkedFrom   string        `json:"forked_from,omitempty"` // its ID in the session from which it was copied
	Summarized   bool          `json:"summarized,omitempty"`  // the model receives a summary instead of it
	Summary      *Summary      `json:"summary,omitempty"`     // of the messages of the conversation up to this one
	Parts        []Part        `json:"parts"`
}

// Part is a part of a message.
type Part struct {
	Type     string             `json:"type"`         // text, reasoning, tool_call, tool_result, snapshot
	ID       string             `json:"id,omitempty"` // of the tool call
	Tool     string             `json:"tool,omitempty"`
	Input    json.RawMessage    `json:"input,omitempty"`
	Text     string             `json:"text,omitempty"`
	Error    bool               `json:"error,omitempty"`
	Snapshot *event.Snapshot    `json:"snapshot,omitempty"` // before the tool call
	File     *session.FileState `json:"file,omitempty"`     // named by the tool call, as it is in the snapshot
}

// Summary replaces older messages of a conversation.
type Summary struct {
	Text     string `json:"text"`
	Memory   string `json:"memory,omitempty"` // shown to the agent with the summary
	Messages int    `json:"messages"`         // number of replaced messages, without those of earlier summaries
}

// Messages returns the messages of the session in dir, in order. It omits a message that a crash cut off,
// because it had no effect.
func Messages(dir string) ([]Message, error) {
	l := list{all: []Message{}}
	err := session.EachPart(dir, l.add)
	return l.all, err
}

// list builds a list of messages part by part.
type list struct {
	all  []Message
	open Message // last part still missing
}

// put adds a part and its estimated tokens to a message.
func (m *Message) put(p session.Part) {
	m.Parts = append(m.Parts, Part{p.Type, p.ID, p.Tool, p.Input, p.Text, p.Error, p.Snapshot, p.File})
	m.Tokens += int64(chat.Tokens(model.Message{Parts: partsOf([]session.Part{p})}))
}

func (l *list) add(p session.Part) {
	switch {
	case p.Type == typeSnapshot:
		for i := len(l.all) - 1; i >= 0; i-- {
			if l.all[i].Path == p.Path {
				l.all[i].put(p)
				return
			}
		}
	case p.Message == "":
		l.report(p)
	default:
		if p.Message != l.open.ID {
			l.open = newMessage(p, p.Role)
		}
		if l.open.put(p); !p.Last {
			return
		}
		if l.open.Usage = p.Usage; p.Usage != nil && p.Usage.Output > 0 {
			l.open.Tokens, l.open.TokensFrom = p.Usage.Output, FromAPI
		}
		if p.Type == typeSummary {
			l.summarize(p)
		} else {
			l.all = append(l.all, l.open)
		}
		l.open = Message{}
	}
}

func newMessage(p session.Part, role string) Message {
	return Message{ID: p.Message, Role: role, Path: p.Path, Conversation: p.Conversation, Time: p.Time, TokensFrom: FromEstimate, ForkedFrom: p.ForkedFrom}
}

// report adds a part that an agent CLI reported.
func (l *list) report(p session.Part) {
	role := event.RoleAssistant
	if p.Role == event.RoleUser || p.Type == "tool_result" {
		role = event.RoleUser
	}
	last := len(l.all) - 1
	if last < 0 || l.all[last].ID != "" || l.all[last].Path != p.Path || l.all[last].Role != role {
		l.all = append(l.all, newMessage(p, role))
		last++
	}
	l.all[last].put(p)
}

// summarize adds a summary to the last message that it replaces.
func (l *list) summarize(p session.Part) {
	for i := len(l.all) - 1; i >= 0; i-- {
		if l.all[i].ID != p.ID || l.all[i].Conversation != p.Conversation {
			continue
		}
		l.all[i].Summary = &Summary{Text: p.Text, Memory: p.Memory, Messages: p.Messages}
		for n := range l.all[:i+1] {
			l.all[n].Summarized = l.all[n].Summarized || l.all[n].Conversation == p.Conversation
		}
		return
	}
}
