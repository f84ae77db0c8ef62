// Package shell provides the tool of coven's own loop that runs shell commands.
package shell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/internal/tool"
)

const (
	defaultTimeout = 2 * time.Minute
	maxTimeout     = 10 * time.Minute
	maxOutput      = 30_000 // bytes of output for the model
)

// Run runs a command with all its descendants and waits for it.
type Run func(ctx context.Context, command string, timeout time.Duration) (process.Exit, []byte, error)

// Tool returns the shell tool.
func Tool(run Run) tool.Tool {
	return tool.Tool{
		Kind: tool.Bash, Category: "shell",
		Description: fmt.Sprintf("Run a shell command at the top of the worktree. It has no input, and ends after %s unless timeout says otherwise. "+
			"Processes that it leaves behind are stopped. Of long output, the middle is left out.", defaultTimeout),
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{
"command":{"type":"string","minLength":1,"description":"the command, for bash"},
"timeout":{"type":"integer","minimum":1,"maximum":%d,"description":"seconds until it is stopped"}},
"required":["command"],"additionalProperties":false}`, int(maxTimeout.Seconds()))),
		Call: func(ctx context.Context, arguments json.RawMessage) (string, error) {
			in := struct {
				Command string `json:"command"`
				Timeout int    `json:"timeout"`
			}{Timeout: int(defaultTimeout.Seconds())}
			if err := json.Unmarshal(arguments, &in); err != nil {
				return "", fmt.Errorf("the arguments cannot be read: %w", err)
			}
			limit := time.Duration(in.Timeout) * time.Second
			exit, output, err := run(ctx, in.Command, limit)
			if err != nil {
				return "", err
			}
			return Report(exit, output, limit)
		},
	}
}

// Report formats the result of a command for the model. limit is the command's timeout.
func Report(exit process.Exit, output []byte, limit time.Duration) (string, error) {
	text := shorten(strings.ToValidUTF8(string(output), "\uFFFD"))
	var why string
	switch {
	case errors.Is(exit.Cause, process.ErrTimeout):
		why = fmt.Sprintf("it was stopped after %s", limit)
	case exit.Cause != nil:
		return "", exit.Cause
	case exit.Signal != 0:
		why = "signal " + exit.Signal.String()
	case exit.Code != 0:
		why = fmt.Sprintf("exit code %d", exit.Code)
	case text == "":
		return "(no output)", nil
	default:
		return text, nil
	}
	if text != "" {
		why += "\n" + text
	}
	return "", errors.New(why)
}

// shorten removes the middle of a long text, and converts a terminal's line endings.
func shorten(text string) string {
	text = strings.TrimRight(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	if len(text) <= maxOutput {
		return text
	}
	head, tail := text[:maxOutput/2], text[len(text)-maxOutput/2:]
	return fmt.Sprintf("%s\n(%d bytes are left out)\n%s", strings.ToValidUTF8(head, ""), len(text)-maxOutput, strings.ToValidUTF8(tail, ""))
}
