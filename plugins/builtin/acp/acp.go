// Package acp is the provider plugin for agents that support the Agent Client Protocol, such as Gemini CLI,
// OpenCode or Qwen Code. The user's configuration names the agent.
//
// The protocol is JSON-RPC over standard input and output. coven is the client: it starts a conversation
// with three successive requests (initialize, session/new or session/load, session/prompt). The agent also
// makes requests: for permission, to read or write a file, or to run a command. Parse reports both its
// requests and the responses that need a next request as provider.Asked. Its Data contains everything that
// Answer needs; the plugin only remembers the calls that failed last (refusals).
//
// An agent decides itself when to ask for permission. Its calls therefore do not all pass the gate, and it
// runs only in the sandbox; but it gets the files and commands that it requests only through the gate. The
// gate decides about a call by its kind, and by the files, the command or the address in its parameters,
// never by its title.
//
// The text of a task is never an argument, and a message never begins with it, because agents interpret a
// /command there. The protocol has no messages to a working agent.
package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	acp "github.com/coder/acp-go-sdk"

	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/provider"
)

// Name is the name of the provider.
const Name = "acp"

// Provider drives an agent.
type Provider struct {
	// Getenv reads the user's environment, such as os.Getenv, and Variable.
	Getenv func(name string) string

	refusals *refusals
}

// New returns a provider.
func New(getenv func(name string) string) Provider {
	return Provider{Getenv: getenv, refusals: &refusals{sessions: map[string]*refusal{}}}
}

// Command implements provider.Provider. The input is only the first request.
func (p Provider) Command(_ context.Context, req provider.Request) (provider.Command, error) {
	s, err := settingsOf(p.Getenv)
	if err != nil {
		return provider.Command{}, err
	}
	input, err := request(idInitialize, acp.AgentMethodInitialize, acp.InitializeRequest{
		ProtocolVersion: acp.ProtocolVersionNumber,
		ClientInfo:      &acp.Implementation{Name: "coven", Version: "1"},
		ClientCapabilities: acp.ClientCapabilities{
			Fs:       acp.FileSystemCapabilities{ReadTextFile: true, WriteTextFile: !req.ReadOnly()},
			Terminal: !req.ReadOnly(),
		},
	})
	if err != nil {
		return provider.Command{}, err
	}
	command := provider.Command{
		Argv: s.Command, Pass: s.Pass, Logins: s.Logins, Input: input, Server: true, Account: s.account(p.Getenv),
	}
	for _, kv := range s.Env {
		command.Env = append(command.Env, strings.ReplaceAll(kv, StateDir, req.StateDir))
	}
	return command, nil
}

// Message implements provider.Provider. The protocol has no messages to a working agent.
func (Provider) Message(context.Context, provider.Message) ([]byte, error) {
	return nil, fmt.Errorf("the agent accepts no messages while it works: %w", pluginerr.ErrUnsupported)
}

// Settings are the user's settings for the agent.
type Settings struct {
	Command []string `json:"command"` // program and arguments
	Env     []string `json:"env"`     // KEY=VALUE; StateDir in a value is replaced
	Pass    []string `json:"pass"`    // names of the user's environment variables
	Logins  []string `json:"logins"`  // absolute paths
}

const (
	// Variable is the environment variable with the settings as JSON.
	Variable = "COVEN_ACP"
	// StateDir is the placeholder for Request.StateDir.
	StateDir = "{state}"
)

// settingsOf returns the settings, merged with those of a known agent.
func settingsOf(getenv func(string) string) (s Settings, err error) {
	text := getenv(Variable)
	if text == "" {
		return s, fmt.Errorf("provider acp has no agent: set acp.command in your configuration, for example [gemini, --acp]: %w", pluginerr.ErrInvalid)
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil || len(s.Command) == 0 {
		return s, fmt.Errorf("%s is not the settings of an agent: %w", Variable, pluginerr.ErrInvalid)
	}
	known := knownAgents()[s.program()]
	s.Env, s.Pass = append(known.Env, s.Env...), append(known.Pass, s.Pass...)
	return s, nil
}

// program returns the base name of the agent's program.
func (s Settings) program() string { return filepath.Base(s.Command[0]) }

// account returns the account that rate limits and cost belong to.
func (s Settings) account(getenv func(string) string) string {
	if s.program() == "qwen" {
		return provider.OpenAIAccount(getenv("OPENAI_BASE_URL"))
	}
	return s.program()
}

// knownAgents returns additional settings that agents need, by the name of the program.
func knownAgents() map[string]Settings {
	return map[string]Settings{
		"qwen": {
			Env:  []string{"QWEN_HOME=" + StateDir, "QWEN_RUNTIME_DIR=" + StateDir, "QWEN_USAGE_STATISTICS_ENABLED=false"},
			Pass: []string{"OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"},
		},
	}
}
