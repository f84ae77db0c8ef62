// Package codex is the provider plugin for the Codex CLI.
//
// Its calls do not pass coven's gate: the CLI is told to ask nobody and to let
// its commands do anything, so what it may do is what the process may do. Those of an
// agent that may only read run in the CLI's own sandbox, in which nothing can be
// written. The user's and the repository's configuration of the CLI are kept out; its home
// stays the user's, for the login and for the conversations that are gone on with,
// and with it the AGENTS.md and the skills that the user has there.
//
// The CLI chooses the ids of conversations itself: a conversation is gone on with
// under the id that Started said. It reads the task until its input ends, and
// takes no messages after that.
//
// Where OPENAI_BASE_URL is set, that server is asked, with OPENAI_API_KEY. Else
// the CLI asks its own, with its login or CODEX_API_KEY.
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

// Command implements provider.Provider. The gate is of no interest to the CLI:
// it has its own tools and asks nobody. Of the granted tools it matters whether any
// of them is more than reading.
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
		Pass:     []string{"OPENAI_API_KEY", "OPENAI_ORGANIZATION", "CODEX_HOME", "CODEX_API_KEY", "CODEX_ACCESS_TOKEN", "CODEX_CA_CERTIFICATE"},
		Input:    provider.WithSystem(req),
		Once:     true,
		ReadOnly: req.ReadOnly(),
		Account:  provider.OpenAIAccount(base),
	}, nil
}

// Message implements provider.Provider: the CLI takes none.
func (Provider) Message(context.Context, provider.Message) ([]byte, error) {
	return nil, fmt.Errorf("its agent CLI takes no messages while it works: %w", pluginerr.ErrUnsupported)
}

// server is another server in the CLI's configuration. JSON's strings are TOML's.
func server(base string) (string, error) {
	url, err := json.Marshal(base)
	if err != nil {
		return "", fmt.Errorf("encode OPENAI_BASE_URL: %w", err)
	}
	return fmt.Sprintf(`{name="OPENAI_BASE_URL",base_url=%s,env_key="OPENAI_API_KEY",wire_api="responses"}`, url), nil
}
