// Package qwen is the provider plugin for the Qwen Code CLI.
//
// Its tool calls do not pass coven's gate: the CLI approves every call itself, so an agent may do anything
// that its process may do. The CLI runs in bare mode: it reads no settings, hooks, servers, extensions,
// memory or .env files of the user or the repository, and its tools are read_file, edit, notebook_edit,
// run_shell_command and those for a goal. A read-only agent has none that writes: in its plan mode the CLI would
// run commands that it considers harmless, including sort -o FILE. The login is taken from OPENAI_API_KEY, OPENAI_BASE_URL
// and OPENAI_MODEL.
//
// The text of a task is never an argument. The CLI interprets a /command at the start of a message, so
// coven's own text comes first. It also reads the file of an @path, but not outside the worktree. It does
// not confirm messages that it receives while it works, so coven sends none.
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

// Command implements provider.Provider. It ignores the gate: the CLI has its own tools and does not ask for
// approval. The granted tools only determine whether the agent is read-only.
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
		argv = append(argv, "--exclude-tools="+writingTools)
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
		Env:      []string{unattended, "QWEN_USAGE_STATISTICS_ENABLED=false", "QWEN_HOME=" + req.StateDir, "QWEN_RUNTIME_DIR=" + req.StateDir},
		Pass:     []string{"OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"},
		Input:    append(input, '\n'),
		ReadOnly: req.ReadOnly(),
		Account:  provider.OpenAIAccount(p.Getenv("OPENAI_BASE_URL")),
	}, nil
}

// writingTools are the tools of the CLI that change files or run commands.
const writingTools = "edit,notebook_edit,run_shell_command,write_file"

// unattended makes the CLI report that it waits for an API without capacity, and retry until coven stops
// it. Without the variable, the CLI is silent for minutes, gives up, and reports success.
const unattended = "QWEN_CODE_UNATTENDED_RETRY=1"

// Message implements provider.Provider. The CLI accepts no messages.
func (Provider) Message(context.Context, provider.Message) ([]byte, error) {
	return nil, fmt.Errorf("the agent CLI accepts no messages while it works: %w", pluginerr.ErrUnsupported)
}
