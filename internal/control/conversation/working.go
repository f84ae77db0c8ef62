package conversation

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/coven-run/coven/internal/driver/chat"
	"github.com/coven-run/coven/internal/event"
)

// working is the content of working.json: the working memory of the agent of a step.
type working struct {
	V            int          `json:"v"`
	Session      string       `json:"session_id"`
	Updated      time.Time    `json:"updated_at"`
	Path         string       `json:"path"` // of the step
	Conversation string       `json:"conversation"`
	Task         string       `json:"task"` // the first message
	Todos        []event.Todo `json:"todos"`
	Results      []result     `json:"results"` // the last ones, oldest first
	Context      *accumulated `json:"context,omitempty"`
}

// result is the result of a tool call.
type result struct {
	ID    string `json:"id"` // of the call
	Tool  string `json:"tool"`
	Input string `json:"input"`
	Text  string `json:"text"`
	Error bool   `json:"error,omitempty"`
}

// accumulated replaces messages that are no longer sent to the model.
type accumulated struct {
	Summary string `json:"summary"`
	Memory  string `json:"memory,omitempty"`
}

// KeepWorking writes the working memory of an agent to the session, for people and programs.
func (s Store) KeepWorking(conversation string, todos []event.Todo, m chat.Memory) error {
	w := working{
		V: 1, Session: s.Session.ID, Updated: s.Session.Now().UTC(), Path: s.Path, Conversation: conversation,
		Task: m.Task, Todos: todos, Results: []result{},
	}
	if todos == nil {
		w.Todos = []event.Todo{}
	}
	for _, r := range m.Results {
		w.Results = append(w.Results, result{ID: r.ID, Tool: r.Call.Name, Input: string(r.Call.Input), Text: r.Text, Error: r.IsError})
	}
	if m.Summary != nil {
		w.Context = &accumulated{Summary: m.Summary.Text, Memory: m.Summary.Memory}
	}
	text, err := json.MarshalIndent(w, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the working memory: %w", err)
	}
	return s.Session.KeepWorking(append(text, '\n'))
}
