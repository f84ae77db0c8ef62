// Package claude is the provider plugin for the Claude Code CLI.
//
// Every tool call passes coven's gate: the CLI gets an explicit list of tools, the settings put each of
// them on the "ask" list, and a tool of coven's MCP server answers. The CLI ignores the settings, hooks,
// servers and memory files of the user and the repository; coven passes the applicable ones. The permission
// mode is always default. The required behavior was verified with the version in .ci/pins: see
// docs/guides/providers.md.
package claude

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/plugins/provider"
)

// Files that the CLI reads when it starts. Text of a task or a repository is never an argument: arguments
// are limited in size and visible to all users of the machine.
const (
	serversFile = "mcp.json"  // its MCP servers
	systemFile  = "system.md" // appended to its system prompt
)

// toolNames maps coven's tool IDs to the corresponding tools of the CLI.
var toolNames = map[string][]string{
	provider.ToolRead:  {"Read"},
	provider.ToolWrite: {"Write"},
	provider.ToolEdit:  {"Edit", "NotebookEdit"},
	provider.ToolBash:  {"Bash"},
}

// Provider drives the Claude Code CLI.
type Provider struct {
	// Getenv reads the user's environment, like os.Getenv. If it is nil, the environment is empty.
	Getenv func(name string) string
}

// Command implements provider.Provider.
func (p Provider) Command(_ context.Context, req provider.Request) (provider.Command, error) {
	if err := req.CheckConversation(); err != nil {
		return provider.Command{}, fmt.Errorf("claude: %w", err)
	}
	tools, err := cliTools(req.Tools)
	if err != nil {
		return provider.Command{}, err
	}
	servers, err := servers(req.Gate)
	if err != nil {
		return provider.Command{}, err
	}
	settings, err := json.Marshal(map[string]any{"permissions": map[string]any{"ask": append(slices.Clone(tools), "mcp__"+req.Gate.Name)}})
	if err != nil {
		return provider.Command{}, fmt.Errorf("encode settings: %w", err)
	}
	input, err := message("", req.Prompt)
	if err != nil {
		return provider.Command{}, err
	}
	argv := []string{
		"claude", "-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose", "--replay-user-messages",
		"--include-partial-messages", // for the final usage of each answer: complete messages only have the usage at the start
		"--mcp-config", filepath.Join(req.FilesDir, serversFile), "--strict-mcp-config",
		"--permission-prompt-tool", "mcp__" + req.Gate.Name + "__" + req.GateTool,
		"--permission-mode", "default",
		"--tools", strings.Join(tools, ","),
		"--settings", string(settings), "--setting-sources", "",
	}
	return provider.Command{
		Argv:    append(argv, choices(req)...),
		Env:     append([]string{"DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_TMPDIR=" + req.TempDir, "CLAUDE_CONFIG_DIR=" + req.StateDir, watchdog, toolTimeout, foreground}, p.retries()...),
		Pass:    []string{"ANTHROPIC_*", "CLAUDE_CODE_*"},
		Forward: provider.ForwardAnthropic,
		Logins:  provider.UserFiles(p.Getenv, "CLAUDE_CONFIG_DIR", ".claude", ".credentials.json"),
		Input:   input,
		Files:   []provider.File{{Name: serversFile, Content: servers}, {Name: systemFile, Content: []byte(req.System)}},
		Gated:   true,
		Account: "anthropic",
		Partial: partial,
	}, nil
}

// watchdog makes the CLI report the duration of a limit. Without it, the CLI gives up on a long wait
// without reporting the duration. With it, the CLI retries until coven stops it.
const watchdog = "CLAUDE_CODE_RETRY_WATCHDOG=1"

// toolTimeout is the time limit for calls of coven's MCP tools, in milliseconds. It is long because a
// subagent may work for an hour, and wait in a queue before that.
const toolTimeout = "MCP_TOOL_TIMEOUT=86400000"

// foreground keeps the CLI's shell commands in its turn, including those that exceed their time: nothing is left to wait
// for after the result. Version 2.1.330 would report the end of a command in a further turn, but print nothing until then.
const foreground = "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1"

// maxRetries is the variable that limits the CLI's retries after errors other than limits. With its
// watchdog, version 2.1.330 retries 300 times by default, which takes hours.
const maxRetries = "CLAUDE_CODE_MAX_RETRIES"

// retries sets the number of retries that is the CLI's default without its watchdog, unless the user has
// set it.
func (p Provider) retries() []string {
	if p.Getenv != nil && p.Getenv(maxRetries) != "" {
		return nil
	}
	return []string{maxRetries + "=10"}
}

// Message implements provider.Provider. For a message with a known ID, the CLI returns only Acknowledged,
// and no result.
func (Provider) Message(_ context.Context, m provider.Message) ([]byte, error) {
	if m.ID == "" || strings.TrimSpace(m.Text) == "" {
		return nil, errors.New("claude: a message needs an ID and text")
	}
	return message(m.ID, m.Text)
}

// choices returns the flags that depend on the request.
func choices(req provider.Request) []string {
	var argv []string
	if req.Resume {
		argv = append(argv, "--resume", req.Conversation)
	} else {
		argv = append(argv, "--session-id", req.Conversation)
	}
	if req.Model != "" {
		argv = append(argv, "--model", req.Model)
	}
	if req.System != "" {
		argv = append(argv, "--append-system-prompt-file", filepath.Join(req.FilesDir, systemFile))
	}
	return argv
}

func cliTools(ids []string) ([]string, error) {
	var names []string
	for _, id := range ids {
		tools, ok := toolNames[id]
		if !ok {
			return nil, fmt.Errorf("claude has no tool for %q", id)
		}
		names = append(names, tools...)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("claude: no tool is granted; without a list of tools the CLI would allow its own")
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func servers(gate provider.Server) ([]byte, error) {
	if len(gate.Argv) == 0 {
		return nil, fmt.Errorf("claude: coven does not run it without the gate")
	}
	env := map[string]string{}
	for _, kv := range gate.Env {
		key, value, _ := strings.Cut(kv, "=")
		env[key] = value
	}
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		gate.Name: map[string]any{"type": "stdio", "command": gate.Argv[0], "args": gate.Argv[1:], "env": env},
	}})
	if err != nil {
		return nil, fmt.Errorf("encode servers: %w", err)
	}
	return config, nil
}

// closing is the last block of every message. In the last block, the CLI reads the file of every @path
// without asking, and interprets a leading / as a command. Therefore the last block must be coven's own
// text.
const closing = "Do what is described above."

// message returns a line of the CLI's stream-json input. The CLI acknowledges the message with the ID.
// Without an ID, the CLI generates one.
func message(id, text string) ([]byte, error) {
	block := func(text string) map[string]any { return map[string]any{"type": "text", "text": text} }
	fields := map[string]any{
		"type":    "user",
		"message": map[string]any{"role": "user", "content": []any{block(text), block(closing)}},
	}
	if id != "" {
		fields["uuid"] = id
	}
	line, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("encode message: %w", err)
	}
	return append(line, '\n'), nil
}
