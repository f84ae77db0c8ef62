package launch

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/gate"
	"github.com/coven-run/coven/internal/permission"
)

// saved is a workspace that saves nothing.
type saved struct{}

func (saved) BeforeCall(context.Context, gate.Change) (event.Snapshot, error) {
	return event.Snapshot{N: 1}, nil
}

func (saved) AfterCall(string) {}

// The tools of coven refuse other names than those of their parameters: encoding/json would take them in any case.
func TestExactNames(t *testing.T) {
	all, err := Described(nil, lint)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		var schema struct{ Properties map[string]any }
		if err := json.Unmarshal(one.Schema, &schema); err != nil {
			t.Fatal(err)
		}
		for name := range schema.Properties {
			other := strings.ToUpper(name)
			if err := one.Check(json.RawMessage(`{"` + other + `":"x"}`)); err == nil || !strings.Contains(err.Error(), `unexpected additional properties ["`+other+`"]`) {
				t.Errorf("%s %s: %v", one.Name, other, err)
			}
		}
	}
}

// Each tool checks any arguments of a call, and the gate decides about them. An agent that may only read never gets a
// call allowed that writes or runs something. Arguments that fit a schema are an object.
func FuzzArguments(f *testing.F) {
	for _, text := range []string{
		``, `{}`, `null`, `[]`, `5`, `{"path":5}`, `{"path":"../x"}`, `{"path":"README","startLine":-1}`, `{"command":"rm -rf $(x"}`, `{"path":"a","content":"\ud800"}`,
		`{"path":"a","path":"b"}`, `{"url":"http://[::1"}`, `{"items":[{"text":"x","status":"done"}]}`, `{"agent":"x","task":"y","permissions":[null]}`,
		`{"pattern":"**","path":"/"}`, `{"channel":"a","since":1e400}`, "{\"path\":\"a\x00b\"}", `{"file":"--help"}`,
	} {
		f.Add([]byte(text))
	}
	all, err := Described(nil, lint)
	if err != nil {
		f.Fatal(err)
	}
	emit := func(event.Type, any) error { return nil }
	reader := gate.New(gate.Options{Policy: permission.OfReader(f.TempDir(), "reader", nil, nil, nil), Workspace: saved{}, Emit: emit, Command: commandText(lint)})
	f.Fuzz(func(t *testing.T, input []byte) {
		for _, one := range all {
			err := one.Check(input)
			var object map[string]any
			if isObject := json.Unmarshal(input, &object) == nil && object != nil; err == nil && !isObject {
				t.Errorf("%s takes %q", one.Name, input)
			}
			call := gate.Call{ID: "1", Tool: one.Name, Input: input}
			_ = gate.Summary(call, "/repo")
			v := reader.Decide(t.Context(), call)
			if needed := one.Permission; v.Allow && needed != "" && needed != permission.FileRead && needed != permission.CodeSearch {
				t.Errorf("a reader may call %s with %q", one.Name, input)
			}
		}
	})
}
