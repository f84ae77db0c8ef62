package todo_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/tool/todo"
)

type store struct{ all []event.Todo }

func (s *store) Todos() []event.Todo { return s.all }

func (s *store) SetTodos(all []event.Todo) error { s.all = all; return nil }

func TestTodo(t *testing.T) {
	s := &store{}
	tool := todo.Tool(s)
	for _, c := range []struct{ arguments, want string }{
		{`{}`, "(the list is empty)"},
		{`{"items":[{"text":"look\naround","status":"done"},{"text":"write","status":"in_progress"},{"text":"test","status":"pending"}]}`, "[x] look around\n[~] write\n[ ] test"},
		{`{}`, "[x] look around\n[~] write\n[ ] test"},
		{`{"items":[{"text":"write","status":"soon"}]}`, `✗ wrong arguments: items/0/status: enum: soon does not equal any of: [pending in_progress done]`},
		{`{"items":[{"text":"","status":"done"}]}`, `✗ wrong arguments: items/0/text: minLength`},
		{`{"items":[{"text":"` + strings.Repeat("a", 501) + `","status":"done"}]}`, `✗ wrong arguments: items/0/text: maxLength`},
		{`{"items":[{"status":"done"}]}`, `✗ wrong arguments: items/0: required: missing properties: ["text"]`},
		{`{}`, "[x] look around\n[~] write\n[ ] test"},
		{`{"items":[]}`, "(the list is empty)"},
	} {
		var got string
		if err := tool.Check(json.RawMessage(c.arguments)); err != nil {
			got = "✗ " + err.Error()
		} else if got, err = tool.Call(t.Context(), json.RawMessage(c.arguments)); err != nil {
			got = "✗ " + err.Error()
		}
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s, want %s", c.arguments, got, c.want)
		}
	}
	if len(s.all) != 0 {
		t.Errorf("the list has %v", s.all)
	}
}
