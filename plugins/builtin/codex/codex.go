// Package codex is the provider plugin for the Codex CLI.
//
// Its tool calls do not pass coven's gate: the CLI runs with approvals disabled, so an agent may do
// anything that its process may do. The commands of a read-only agent run in the CLI's own read-only
// sandbox. The CLI ignores the user's and the repository's configuration. Its home is the task's state
// directory, with the user's login.
//
// The CLI chooses the IDs of conversations: a conversation is resumed with the ID from Started. The CLI
// reads the task until end of input and accepts no messages after that.
//
// If OPENAI_BASE_URL is set, the CLI uses that server with OPENAI_API_KEY. Otherwise it uses its default
// server with its login or CODEX_API_KEY.
package codex

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/provider"
)

// Provider drives the Codex CLI.
type Provider struct {
	// Getenv reads the user's environment, such as os.Getenv.
	Getenv func(name string) string
}

// Command implements provider.Provider. It ignores the gate: the CLI has its own tools and does not ask for
// approval. The granted tools only determine whether the agent is read-only.
func (p Provider) Command(_ context.Context, req provider.Request) (provider.Command, error) {
	if err := req.CheckConversation(); err != nil {
		return provider.Command{}, fmt.Errorf("codex: %w", err)
	}
	sandbox := "danger-full-access"
	if req.ReadOnly() {
		sandbox = "read-only"
	}
	argv := []string{
		"codex", "exec", "--json", "--skip-git-repo-check", "-s", sandbox,
		"--ignore-user-config", "--ignore-rules",
		"-c", "project_doc_max_bytes=0", // the repository's AGENTS.md is in the system text
	}
	base := p.Getenv("OPENAI_BASE_URL")
	if base != "" {
		server, err := server(base)
		if err != nil {
			return provider.Command{}, err
		}
		argv = append(argv, "-c", "model_provider=coven", "-c", "model_providers.coven="+server)
	}
	if req.Model != "" {
		argv = append(argv, "-m", req.Model)
	}
	if req.Resume {
		argv = append(argv, "resume", req.Conversation)
	}
	return provider.Command{
		Argv:     append(argv, "-"),
		Env:      []string{"CODEX_HOME=" + req.StateDir},
		Logins:   provider.UserFiles(p.Getenv, "CODEX_HOME", ".codex", "auth.json"),
		Pass:     []string{"OPENAI_API_KEY", "OPENAI_ORGANIZATION", "CODEX_API_KEY", "CODEX_ACCESS_TOKEN", "CODEX_CA_CERTIFICATE"},
		Input:    provider.WithSystem(req),
		Once:     true,
		ReadOnly: req.ReadOnly(),
		Account:  provider.OpenAIAccount(base),
	}, nil
}

// Message implements provider.Provider. The CLI accepts no messages.
func (Provider) Message(context.Context, provider.Message) ([]byte, error) {
	return nil, fmt.Errorf("the agent CLI accepts no messages while it works: %w", pluginerr.ErrUnsupported)
}

// server returns the CLI's configuration for another server. A JSON string is also a TOML string.
func server(base string) (string, error) {
	url, err := json.Marshal(base)
	if err != nil {
		return "", fmt.Errorf("encode OPENAI_BASE_URL: %w", err)
	}
	return fmt.Sprintf(`{name="OPENAI_BASE_URL",base_url=%s,env_key="OPENAI_API_KEY",wire_api="responses"}`, url), nil
}
