package fakeclaude

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// gate asks the permission tool.
type gate struct {
	servers servers
	prompt  string   // full name of the permission tool; empty for none
	ask     []string // tools that always ask
	cwd     string
	home    string
}

// errNoPromptTool ends the run, as in the real CLI.
type errNoPromptTool struct{ prompt, available string }

func (e errNoPromptTool) Error() string {
	return fmt.Sprintf("Error: MCP tool %s (passed via --permission-prompt-tool) not found. Available MCP tools: %s", e.prompt, e.available)
}

// asks reports whether the call needs permission. Harmless calls need it only by a rule in the
// settings.
func (g *gate) asks(c call) bool {
	if slices.Contains(g.ask, c.name) {
		return true
	}
	switch c.name {
	case "Read", "Glob", "Grep":
		path, _ := c.askedInput(g.cwd, g.home)["file_path"].(string)
		return path != "" && path != g.cwd && !strings.HasPrefix(path, g.cwd+"/")
	default:
		return !c.readOnly()
	}
}

// verdict is the permission tool's answer, with the input to run.
type verdict struct {
	Behavior  string `json:"behavior"`
	Message   string `json:"message"`
	Interrupt bool   `json:"interrupt"`
	Updated   object `json:"updatedInput"`
}

const badAnswer = "invalid answer of the permission tool"

// decide returns the input to run, or the outcome of a refused call.
func (g *gate) decide(ctx context.Context, c call) (object, *outcome) {
	asked := c.askedInput(g.cwd, g.home)
	if g.prompt == "" {
		text := fmt.Sprintf("Claude requested permissions to use %s, but you haven't granted it yet.", c.name)
		return nil, denial(c, verdict{Message: text})
	}
	server, tool, found := g.servers.find(g.prompt)
	if !found {
		return nil, g.noPromptTool(c)
	}
	text, isError, err := server.call(ctx, tool, object{"tool_name": c.name, "input": asked, "tool_use_id": c.id})
	if err != nil {
		return nil, errorCalling(c, err.Error())
	}
	var answer verdict
	if isError {
		return nil, errorCalling(c, badAnswer)
	}
	if json.Unmarshal([]byte(text), &answer) != nil {
		return nil, denial(c, verdict{Message: badAnswer})
	}
	switch {
	case answer.Behavior == "allow" && answer.Updated != nil:
		return answer.Updated, nil
	case answer.Behavior == "allow":
		return asked, nil
	case answer.Behavior == "deny" && answer.Message != "":
		return nil, denial(c, answer)
	default:
		return nil, denial(c, verdict{Message: badAnswer})
	}
}

func (g *gate) noPromptTool(c call) *outcome {
	available := strings.Join(g.servers.names(), ", ")
	if available == "" {
		available = "none"
	}
	err := errNoPromptTool{g.prompt, available}
	out := errorCalling(c, err.Error())
	out.fatal = err
	return out
}

func errorCalling(c call, text string) *outcome {
	out := refused(c, fmt.Sprintf("Error calling tool (%s): %s", c.name, text))
	return &out
}

// stopText is the result of an interrupted call.
const stopText = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, " +
	"the new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to proceed."

func denial(c call, answer verdict) *outcome {
	out := failed(c, answer.Message)
	if answer.Interrupt {
		out = failed(c, stopText)
	}
	out.denied, out.abort = true, answer.Interrupt
	return &out
}
