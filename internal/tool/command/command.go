// Package command reads a project's tools that run a command, from the files .coven/tools/NAME.yaml.
//
// Rules:
//   - Each element of argv is a separate template, and no shell interprets the result: the value of
//     a parameter is at most one argument of the program, or one argument for each item of a list.
//   - A value cannot become an option of the program: it must not begin with - unless it follows
//     the element --.
//   - The gate evaluates a call as the equivalent shell command.
package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/internal/text/strictjson"
	"github.com/coven-run/coven/internal/text/tmpl"
	"github.com/coven-run/coven/internal/tool"
	"github.com/coven-run/coven/internal/tool/shell"
)

// Run runs a program with all its descendants and waits for it.
type Run func(ctx context.Context, argv []string, timeout time.Duration) (process.Exit, []byte, error)

// Tool returns the tool of a definition.
func Tool(name string, d grimoires.CommandTool, run Run) tool.Tool {
	t := tool.Tool{
		Kind: tool.Kind{Name: name, Permission: permission.BashExecute}, Category: d.Category, Source: d.Source, Description: d.Description, Schema: json.RawMessage(d.Parameters),
	}
	t.Call = func(ctx context.Context, arguments json.RawMessage) (string, error) {
		if err := t.Check(arguments); err != nil { // an agent CLI may not have checked them
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

// Text returns the equivalent shell command of a call.
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

// Argv returns the program and arguments of a call.
func Argv(d grimoires.CommandTool, arguments json.RawMessage) ([]string, error) {
	data, err := strictjson.Object(arguments) // keeps the model's notation of numbers
	if err != nil {
		return nil, fmt.Errorf("wrong arguments: %w", err)
	}
	if err := complete(data, d.Parameters); err != nil {
		return nil, err
	}
	var argv []string
	ended := false // whether -- has been added
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

// isOption reports whether an argument begins with a parameter's value that begins with -.
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

// complete adds missing parameters as null.
func complete(data map[string]any, parameters string) error {
	var schema struct {
		Properties map[string]any `json:"properties"`
	}
	if err := json.Unmarshal([]byte(parameters), &schema); err != nil {
		return fmt.Errorf("the parameters of the tool: %w", err)
	}
	for name := range schema.Properties {
		if _, given := data[name]; !given {
			data[name] = nil
		}
	}
	return nil
}

// render expands one element of argv. An element that is only a parameter becomes one argument
// for each item of a list, and no argument if the parameter is missing. Any other element is omitted
// if it expands to "".
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
