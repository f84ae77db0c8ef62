// Package qwen is the provider plugin for the Qwen Code CLI.
//
// Its calls do not pass coven's gate: the CLI is told to accept every one itself,
// so what it may do is what the process may do. It runs in its bare mode: no
// settings, hooks, servers, extensions, memory or .env files of the user or the
// repository are read, and its tools are read_file, edit and run_shell_command. An agent that may
// only read has read_file alone: in the CLI's plan mode commands that it takes for
// harmless are run, sort -o FILE among them.
// Its login is the environment's: OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_MODEL.
//
// No text of a task is an argument. The CLI reads a /command at the start of a
// message and the file behind an @path: coven's own words come first, and files
// outside the worktree are not read so. It says nothing of a message that it took
// while it worked, so it is told none.
package qwen

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/provider"
)

// Provider drives the Qwen Code CLI.
type Provider struct {
	// Getenv reads the user's environment, such as os.Getenv.
	Getenv func(name string) string
}

// Command implements provider.Provider. The gate is of no interest to the CLI:
// it has its own tools and asks nobody. Of the granted tools it matters whether any
// of them is more than reading.
func (p Provider) Command(_ context.Context, req provider.Request) (provider.Command, error) {
	if err := req.CheckConversation(); err != nil {
		return provider.Command{}, fmt.Errorf("qwen: %w", err)
	}
	input, err := json.Marshal(map[string]any{
		"type": "user", "session_id": req.Conversation, "parent_tool_use_id": nil,
		"message": map[string]any{"role": "user", "content": string(provider.WithSystem(req))},
	})
	if err != nil {
		return provider.Command{}, fmt.Errorf("encode message: %w", err)
	}
	argv := []string{"qwen", "--auth-type", "openai", "--yolo", "--bare", "--input-format", "stream-json", "--output-format", "stream-json"}
	if req.ReadOnly() {
		argv = append(argv, "--exclude-tools=edit,run_shell_command,write_file")
	}
	conversation := "--session-id"
	if req.Resume {
		conversation = "--resume"
	}
	argv = append(argv, conversation, req.Conversation)
	if req.Model != "" {
		argv = append(argv, "--model", req.Model)
	}
	return provider.Command{
		Argv:     argv,
		Env:      []string{unattended},
		Pass:     []string{"OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "QWEN_HOME", "QWEN_RUNTIME_DIR"},
		Input:    append(input, '\n'),
		ReadOnly: req.ReadOnly(),
		Account:  provider.OpenAIAccount(p.Getenv("OPENAI_BASE_URL")),
	}, nil
}

// unattended makes the CLI say that it waits for an API which has no capacity.
// Without it, it says nothing for some minutes, gives up, and calls that a success.
// With it, it retries for as long as it takes: coven stops it.
const unattended = "QWEN_CODE_UNATTENDED_RETRY=1"

// Message implements provider.Provider: the CLI takes none.
func (Provider) Message(context.Context, provider.Message) ([]byte, error) {
	return nil, fmt.Errorf("its agent CLI takes no messages while it works: %w", pluginerr.ErrUnsupported)
}
