// Package todo provides the tool of coven's own loop with which an agent maintains its todo list.
// The list is part of the session, so that it survives an interruption.
package todo

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/tool"
)

const (
	maxItems = 100
	maxText  = 500 // characters
)

// Store stores the list of one agent.
type Store interface {
	Todos() []event.Todo
	// SetTodos replaces the list. It is durable when SetTodos returns.
	SetTodos(all []event.Todo) error
}

// Tool returns the todo tool.
func Tool(s Store) tool.Tool {
	return tool.Tool{
		Kind: tool.Todo, Category: "utility",
		Description: "Keep the list of what you have to do for a task of several parts. With items, they replace the whole list; without, the list is returned. It survives an interruption.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{
"items":{"type":"array","maxItems":%d,"description":"the whole list, in order","items":{"type":"object","properties":{
"text":{"type":"string","minLength":1,"maxLength":%d},
"status":{"type":"string","enum":["pending","in_progress","done"]}},
"required":["text","status"],"additionalProperties":false}}},
"additionalProperties":false}`, maxItems, maxText)),
		Call: tool.Decoded(func(_ context.Context, in struct {
			Items *[]event.Todo `json:"items"`
		},
		) (string, error) {
			if in.Items == nil {
				return text(s.Todos()), nil
			}
			if err := s.SetTodos(*in.Items); err != nil {
				return "", err
			}
			return text(*in.Items), nil
		}),
	}
}

func text(all []event.Todo) string { return cmp.Or(Shown(all), "(the list is empty)") }

// Shown formats a list with one line for each item. It returns "" for an empty list.
func Shown(all []event.Todo) string {
	var lines []string
	for _, t := range all {
		mark := cmp.Or(map[string]string{event.TodoDone: "x", event.TodoInProgress: "~"}[t.Status], " ")
		lines = append(lines, fmt.Sprintf("[%s] %s", mark, strings.Join(strings.Fields(t.Text), " ")))
	}
	return strings.Join(lines, "\n")
}
