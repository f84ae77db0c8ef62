// Package command reads the tools of a project that run a command: the files .coven/tools/NAME.yaml.
//
// Rules:
//   - Each element of argv is a template of its own, and no shell reads what comes of it: a value of
//     an argument is never more than one argument of the program, or one for each item of a list.
//   - A value does not become an option of the program: it may begin with - only behind the
//     element --.
//   - A tool is judged as the shell command that its arguments make of it.
package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/internal/shellword"
	"github.com/coven-run/coven/internal/tmpl"
	"github.com/coven-run/coven/internal/tool"
	"github.com/coven-run/coven/internal/tool/shell"
)

// bashExecute is the permission that each needs.
const bashExecute = "bash.execute"

// Run runs a program to its end, with all processes that it starts.
type Run func(ctx context.Context, argv []string, timeout time.Duration) (process.Exit, []byte, error)

// Tool returns the tool of a definition.
func Tool(name string, d grimoires.CommandTool, run Run) tool.Tool {
	t := tool.Tool{
		Name: name, Category: d.Category, Permission: bashExecute, Source: d.Source, Description: d.Description, Schema: json.RawMessage(d.Parameters),
	}
	t.Call = func(ctx context.Context, arguments json.RawMessage) (string, error) {
		if err := t.Check(arguments); err != nil { // an agent CLI may not have done so
			return "", err
		}
		argv, err := Argv(d, arguments)
		if err != nil {
			return "", err
		}
		exit, output, err := run(ctx, argv, d.Timeout)
		if err != nil {
			return "", err
		}
		return shell.Report(exit, output, d.Timeout)
	}
	return t
}

// Text returns the shell command that a call is judged as.
func Text(d grimoires.CommandTool, arguments json.RawMessage) (string, error) {
	argv, err := Argv(d, arguments)
	if err != nil {
		return "", err
	}
	var words []string
	for _, a := range argv {
		words = append(words, shellword.Word(a))
	}
	return strings.Join(words, " "), nil
}

// Argv returns the program that a call runs, with its arguments.
func Argv(d grimoires.CommandTool, arguments json.RawMessage) ([]string, error) {
	var data map[string]any
	decoder := json.NewDecoder(bytes.NewReader(arguments))
	decoder.UseNumber() // so that they are written as the model wrote them
	if err := decoder.Decode(&data); err != nil {
		return nil, errors.New("the arguments are not a JSON object")
	}
	if err := complete(data, d.Parameters); err != nil {
		return nil, err
	}
	var argv []string
	ended := false // behind --
	for _, text := range d.Argv {
		values, err := render(text, data)
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			switch {
			case strings.ContainsRune(v, 0):
				return nil, errors.New("an argument has a NUL byte")
			case !ended && v != text && isOption(v, data):
				return nil, fmt.Errorf("the argument %q begins with -, so that it would be an option of %s", v, d.Argv[0])
			}
			argv = append(argv, v)
		}
		ended = ended || text == "--"
	}
	return argv, nil
}

// isOption reports whether an argument begins with a value that begins with -.
func isOption(argument string, data map[string]any) bool {
	begins := func(value any) bool {
		text, ok := value.(string)
		return ok && strings.HasPrefix(text, "-") && strings.HasPrefix(argument, text)
	}
	for _, value := range data {
		if items, ok := value.([]any); begins(value) || ok && slices.ContainsFunc(items, begins) {
			return true
		}
	}
	return false
}

// complete adds the parameters that a call does not have, as null.
func complete(data map[string]any, parameters string) error {
	var schema struct {
		Properties map[string]any `json:"properties"`
	}
	if err := json.Unmarshal([]byte(parameters), &schema); err != nil {
		return fmt.Errorf("the parameters of the tool: %w", err)
	}
	for name := range schema.Properties {
		if _, given := data[name]; !given && data != nil {
			data[name] = nil
		}
	}
	return nil
}

// render returns what one element of argv becomes. One that is only a parameter becomes an argument
// for each item of a list, and none if the call does not have it; any other that becomes nothing is
// left out.
func render(text string, data map[string]any) ([]string, error) {
	uses, err := tmpl.CheckText("argv", text)
	if err != nil {
		return nil, err
	}
	if uses.Sole == nil || len(uses.Sole.Path) != 1 {
		out, err := tmpl.Text("argv", text, data)
		if out == "" {
			return nil, err
		}
		return []string{out}, err
	}
	name := uses.Sole.Path[0]
	switch value := data[name].(type) {
	case nil:
		return nil, nil
	case []any:
		var all []string
		for _, item := range value {
			one, err := tmpl.Text("argv", text, map[string]any{name: item})
			if err != nil {
				return nil, err
			}
			all = append(all, one)
		}
		return all, nil
	}
	out, err := tmpl.Text("argv", text, data)
	return []string{out}, err
}
