// Command coven-provider-runbook is a provider plugin for an agent without a model: a
// shell script that runs the commands of the task, for mechanical work. The script is
// part of the plugin.
//
// The agent runs commands without asking, so its calls do not pass coven's gate.
package main

import (
	"bytes"
	"context"
	_ "embed" // the agent
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/provider"
)

//go:embed agent.sh
var agent []byte

// The agent keeps no conversation, accepts no messages and asks no questions.
var _ = provider.Declare("coven:capabilities()")

func main() { plugins.Serve(plugins.Provider(runbook{})) }

type runbook struct{}

// The agent's files.
const (
	agentFile  = "agent.sh"
	promptFile = "prompt.md"
)

// Command implements provider.Provider.
func (runbook) Command(_ context.Context, req provider.Request) (provider.Command, error) {
	if req.Resume {
		return provider.Command{}, fmt.Errorf("the runbook remembers no conversation: %w", pluginerr.ErrUnsupported)
	}
	return provider.Command{
		Argv: []string{"sh", filepath.Join(req.FilesDir, agentFile), filepath.Join(req.FilesDir, promptFile), req.Conversation},
		Files: []provider.File{
			{Name: agentFile, Content: agent}, {Name: promptFile, Content: []byte(req.Prompt)},
		},
		Account: "local",
	}, nil
}

// Message implements provider.Provider.
func (runbook) Message(context.Context, provider.Message) ([]byte, error) {
	return nil, fmt.Errorf("the runbook does not listen: %w", pluginerr.ErrUnsupported)
}

// Parse implements provider.Provider.
func (runbook) Parse(_ context.Context, lines []byte) ([]provider.Event, error) {
	var events []provider.Event
	for line := range bytes.Lines(lines) {
		if e := event(strings.Split(strings.TrimRight(string(line), "\r\n"), "\t")); e != nil {
			events = append(events, e)
		}
	}
	return events, nil
}

// event returns the event in a line of the agent's output, or nil.
func event(fields []string) provider.Event {
	text := strings.NewReplacer(`\\`, `\`, `\n`, "\n").Replace(strings.ToValidUTF8(fields[len(fields)-1], "\uFFFD"))
	switch {
	case len(fields) == 2 && fields[0] == "started":
		return provider.Started{Conversation: text, Model: "none", Tools: []string{"sh"}}
	case len(fields) == 3 && fields[0] == "call":
		input, err := json.Marshal(map[string]string{"command": text})
		if err != nil {
			return nil
		}
		return provider.ToolCall{ID: fields[1], Name: "sh", Input: input}
	case len(fields) == 4 && fields[0] == "result":
		return provider.ToolResult{ID: fields[1], Text: text, IsError: fields[2] != "0"}
	case len(fields) == 3 && fields[0] == "done" && fields[1] == "ok":
		return provider.Result{OK: true, Text: text, Turns: 1}
	case len(fields) == 3 && fields[0] == "done":
		return provider.Result{Error: text, Turns: 1}
	}
	return nil
}
