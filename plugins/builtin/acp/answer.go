package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	acp "github.com/coder/acp-go-sdk"

	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/provider"
)

// Codes of errors that coven returns to the agent.
const (
	invalidParams  = -32602
	methodNotFound = -32601
	internalError  = -32603
	notFound       = -32002
)

// Answer implements provider.Answerer. It takes the next step of starting a conversation, or answers a
// request of the agent.
func (p Provider) Answer(_ context.Context, a provider.Answer) (provider.Reply, error) {
	var s step
	if err := json.Unmarshal(a.Asked.Data, &s); err != nil {
		return provider.Reply{}, fmt.Errorf("acp: %w: the data of the request are not of this plugin", pluginerr.ErrInvalid)
	}
	switch {
	case s.ID != nil:
		if s.Did == acp.ClientMethodSessionRequestPermission && !a.Allowed && !a.Cancelled {
			p.refusals.refused(s.Session, a.Reason)
		}
		input, err := s.respond(a)
		return provider.Reply{Input: input}, err
	case s.Did == acp.AgentMethodInitialize:
		input, err := s.open(a.Request)
		return provider.Reply{Input: input}, err
	case s.Did == acp.AgentMethodSessionNew && a.Request.Model != "":
		input, err := s.choose(a.Request)
		return provider.Reply{Input: input}, err
	case s.Mode:
		session := s.session(a.Request)
		input, err := request(idMode+session, acp.AgentMethodSessionSetMode, acp.SetSessionModeRequest{
			SessionId: acp.SessionId(session), ModeId: askingMode,
		})
		return provider.Reply{Input: input}, err
	}
	text := string(provider.WithSystem(a.Request))
	if s.Again {
		text = goOn(s.Why)
	}
	return s.prompt(a.Request, text)
}

// open starts or loads a conversation.
func (s step) open(req provider.Request) ([]byte, error) {
	switch {
	case s.Version != acp.ProtocolVersionNumber:
		return nil, fmt.Errorf("the agent speaks version %d of the Agent Client Protocol, coven speaks version %d", s.Version, acp.ProtocolVersionNumber)
	case !req.Resume:
		return request(idNew, acp.AgentMethodSessionNew, acp.NewSessionRequest{Cwd: req.Dir, McpServers: servers(req)})
	case !s.Loads:
		return nil, fmt.Errorf("the agent cannot load sessions: %w", pluginerr.ErrUnsupported)
	}
	return request(idLoad, acp.AgentMethodSessionLoad, acp.LoadSessionRequest{
		SessionId: acp.SessionId(req.Conversation), Cwd: req.Dir, McpServers: servers(req),
	})
}

// servers returns the MCP server with coven's tools. A read-only agent gets none.
func servers(req provider.Request) []acp.McpServer {
	if len(req.Gate.Argv) == 0 || req.ReadOnly() {
		return []acp.McpServer{}
	}
	one := acp.McpServerStdio{Name: req.Gate.Name, Command: req.Gate.Argv[0], Args: append([]string{}, req.Gate.Argv[1:]...), Env: []acp.EnvVariable{}}
	for _, kv := range req.Gate.Env {
		name, value, _ := strings.Cut(kv, "=")
		one.Env = append(one.Env, acp.EnvVariable{Name: name, Value: value})
	}
	return []acp.McpServer{{Stdio: &one}}
}

// choose chooses the model.
func (s step) choose(req provider.Request) ([]byte, error) {
	var names []string
	for _, m := range s.Models {
		if m.Value == req.Model || m.Name == req.Model {
			session, id := s.session(req), idModel
			if s.Mode {
				id = idModelMode
			}
			return request(id+session, acp.AgentMethodSessionSetConfigOption, map[string]string{
				"sessionId": session, "configId": s.Option, "value": m.Value,
			})
		}
		names = append(names, m.Name)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("the agent does not let coven choose a model: %w", pluginerr.ErrInvalid)
	}
	return nil, fmt.Errorf("the agent has no model %q (it has: %s): %w", req.Model, strings.Join(names, ", "), pluginerr.ErrInvalid)
}

// session returns the session ID. The response to session/load does not contain it.
func (s step) session(req provider.Request) string { return cmp.Or(s.Session, req.Conversation) }

// prompt sends a text.
func (s step) prompt(req provider.Request, text string) (provider.Reply, error) {
	session := acp.SessionId(s.session(req))
	if len(idModelMode+session) > maxID-len(`""`) {
		return provider.Reply{}, fmt.Errorf("the agent's session ID has %d bytes: %w", len(session), pluginerr.ErrInvalid)
	}
	input, err := request(idPrompt+string(session), acp.AgentMethodSessionPrompt, acp.PromptRequest{
		SessionId: session, Prompt: []acp.ContentBlock{acp.TextBlock(text)},
	})
	if err != nil {
		return provider.Reply{}, err
	}
	cancel, err := notification(acp.AgentMethodSessionCancel, acp.CancelNotification{SessionId: session})
	return provider.Reply{Input: input, Cancel: cancel}, err
}

// respond answers a request of the agent.
func (s step) respond(a provider.Answer) ([]byte, error) {
	if s.Invalid != "" {
		return failure(s.ID, invalidParams, "the parameters of "+s.Did+" cannot be read: "+s.Invalid)
	}
	if s.Did == acp.ClientMethodSessionRequestPermission {
		return result(s.ID, acp.RequestPermissionResponse{Outcome: s.outcome(a)})
	}
	if a.Asked.Action == nil {
		return failure(s.ID, methodNotFound, "coven has no method "+s.Did)
	}
	switch {
	case a.NotFound:
		return failure(s.ID, notFound, a.Reason)
	case !a.Allowed:
		return failure(s.ID, internalError, cmp.Or(a.Reason, "the agent is being stopped"))
	}
	switch do := a.Asked.Action.(type) {
	case provider.ReadFile:
		return result(s.ID, acp.ReadTextFileResponse{Content: a.Text})
	case provider.RunCommand:
		return result(s.ID, acp.CreateTerminalResponse{TerminalId: a.Terminal.ID})
	case provider.UseTerminal:
		return result(s.ID, terminal(do, a))
	}
	return result(s.ID, struct{}{})
}

// outcome returns the response to a request for permission.
func (s step) outcome(a provider.Answer) acp.RequestPermissionOutcome {
	option := s.Reject
	if a.Allowed {
		option = s.Once
	}
	if a.Cancelled || option == "" { // the agent offers no other way to refuse
		return acp.NewRequestPermissionOutcomeCancelled()
	}
	return acp.NewRequestPermissionOutcomeSelected(acp.PermissionOptionId(option))
}

// terminal returns the result of a request about a terminal.
func terminal(do provider.UseTerminal, a provider.Answer) any {
	var code *int
	var signal *string
	switch t := a.Terminal; {
	case t.Exited && t.Signal != "":
		signal = &t.Signal
	case t.Exited:
		code = &t.Code
	}
	switch do.Do {
	case provider.TerminalAwait:
		return acp.WaitForTerminalExitResponse{ExitCode: code, Signal: signal}
	case provider.TerminalOutput:
		out := acp.TerminalOutputResponse{Output: a.Text, Truncated: a.Terminal.Truncated}
		if a.Terminal.Exited {
			out.ExitStatus = &acp.TerminalExitStatus{ExitCode: code, Signal: signal}
		}
		return out
	}
	return struct{}{}
}
