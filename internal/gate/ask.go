package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/text/strictjson"
	"github.com/coven-run/coven/internal/tool"
)

// Question is a question to a person about a call.
type Question struct {
	Call       Call
	Permission permission.Name
	Subject    string // path, command, or other subject, possibly shortened
	Exact      string // identifies the permission with the whole subject
	Path       string // absolute path of the file that the call names, if any
	Reason     string // why the call needs approval
	Reversible bool   // coven can undo the call completely
}

// Answer is a person's answer or a default.
type Answer struct {
	Allow  bool
	Input  json.RawMessage // modified input; nil if unchanged
	Reason string          // for the event log, and for the agent if the call is refused
}

type clocksKey struct{}

// WithClocks returns a context for which Pause calls pause.
func WithClocks(ctx context.Context, pause func() (resume func())) context.Context {
	return context.WithValue(ctx, clocksKey{}, pause)
}

// Pause pauses the time limits of the agent whose call waits for a person, until resume is called.
func Pause(ctx context.Context) (resume func()) {
	if pause, ok := ctx.Value(clocksKey{}).(func() func()); ok {
		return pause()
	}
	return func() {}
}

// asker asks a person and waits for the answer.
type asker interface {
	Ask(ctx context.Context, q Question) (Answer, error)
}

// ask asks a person about a call until the answer is one that the gate can accept. It returns the
// call as it may run.
func (g *Gate) ask(ctx context.Context, call Call, s subject, place string, d permission.Decision) (Call, subject, string, permission.Decision) {
	if g.options.Asker == nil {
		d.Reason += ": a person would have to approve it"
		return call, s, place, d
	}
	why := d.Reason
	for {
		a, err := g.options.Asker.Ask(ctx, Question{
			Call: call, Permission: s.permission, Subject: s.text(), Exact: s.exact(place), Path: place, Reason: why, Reversible: s.permission == permission.FileWrite || s.permission == permission.AgentSpawn,
		})
		switch {
		case err != nil:
			return call, s, place, refused(fmt.Sprintf("nobody could be asked: %v", err))
		case !a.Allow:
			return call, s, place, refused(a.Reason)
		case a.Input == nil:
			return call, s, place, permission.Decision{Action: permission.Allow, Reason: a.Reason}
		}
		changed := call
		changed.Input = a.Input
		subject, where, err := g.modified(call, changed)
		if err == nil {
			return changed, subject, where, permission.Decision{Action: permission.Allow, Reason: a.Reason}
		}
		why = fmt.Sprintf("%s; the modified parameters were refused: %v", d.Reason, err)
	}
}

// modified describes a call that a person has modified, or returns an error if it may not run. A person
// cannot lift a denial.
func (g *Gate) modified(before, after Call) (s subject, place string, err error) {
	check := g.options.Check
	if check == nil {
		check = func(c Call) error { return sameTypes(before.Input, c.Input) }
	}
	if err := check(after); err != nil {
		return s, "", err
	}
	s = g.describe(after)
	place, d := g.permit(s)
	if d.Action == permission.Deny {
		return s, "", errors.New(d.Reason)
	}
	return s, place, nil
}

// sameTypes returns an error unless the arguments have the same names and types.
func sameTypes(before, after json.RawMessage) error {
	a, err := strictjson.Object(before)
	if err != nil {
		return err
	}
	b, err := strictjson.Object(after)
	if err != nil {
		return err
	}
	for name, value := range b {
		was, known := a[name]
		if !known {
			return fmt.Errorf("%s is not a parameter of the call", name)
		}
		if reflect.TypeOf(was) != reflect.TypeOf(value) {
			return fmt.Errorf("%s: got %s, want %s", name, typeName(value), typeName(was))
		}
	}
	for name := range a {
		if _, there := b[name]; !there {
			return fmt.Errorf("%s is missing", name)
		}
	}
	return nil
}

func typeName(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

// Result returns the new content of the file that a call names, given its current content. It reads only the arguments
// that the tool uses. ok is false if the content is unknown.
func Result(call Call, before string) (after string, ok bool) {
	kind, _ := tool.KindOf(ToolName(call))
	arguments, err := known(call.Input)
	if err != nil {
		return "", false
	}
	text := func(name string) string {
		value, is := arguments[name].(string)
		ok = ok && is
		return value
	}
	ok = true
	switch {
	case kind.ID == tool.Write.ID:
		after = text("content")
		return after, ok
	case kind.Name == tool.Edit.Name:
		return replaced(before, text("oldText"), text("newText"), arguments["replaceAll"] == true, ok)
	case kind.Name == "Edit":
		return replaced(before, text("old_string"), text("new_string"), arguments["replace_all"] == true, ok)
	}
	return "", false
}

func replaced(before, old, replacement string, all, ok bool) (after string, done bool) {
	switch {
	case !ok || !strings.Contains(before, old):
		return "", false
	case all:
		return strings.ReplaceAll(before, old, replacement), true
	}
	return strings.Replace(before, old, replacement, 1), true
}
