package wire

import (
	"context"
	"fmt"

	pluginv1 "github.com/coven-run/coven/plugins/internal/proto/coven/plugin/v1"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/provider"
)

// Answer implements pluginv1.ProviderServer. It returns pluginerr.ErrUnsupported for a provider that is not
// a provider.Answerer.
func (s *providerServer) Answer(ctx context.Context, in *pluginv1.AnswerRequest) (*pluginv1.AnswerResponse, error) {
	impl, ok := s.impl.(provider.Answerer)
	if !ok {
		return nil, toWire(fmt.Errorf("the agent CLI makes no requests: %w", pluginerr.ErrUnsupported))
	}
	reply, err := impl.Answer(ctx, provider.Answer{
		Request: decodeRequest(in.GetRequest()), Asked: decodeAsked(in.GetAsked()),
		Allowed: in.GetAllowed(), Reason: in.GetReason(), Cancelled: in.GetCancelled(), NotFound: in.GetNotFound(), Text: in.GetText(),
		Terminal: provider.Terminal{
			ID: in.GetTerminal().GetId(), Truncated: in.GetTerminal().GetTruncated(), Exited: in.GetTerminal().GetExited(),
			Code: int(in.GetTerminal().GetCode()), Signal: in.GetTerminal().GetSignal(),
		},
	})
	if err != nil {
		return nil, toWire(err)
	}
	return &pluginv1.AnswerResponse{Input: reply.Input, Cancel: reply.Cancel}, nil
}

// Answer implements provider.Answerer.
func (c *providerClient) Answer(ctx context.Context, a provider.Answer) (provider.Reply, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	out, err := c.rpc.Answer(ctx, &pluginv1.AnswerRequest{
		Request: encodeRequest(a.Request), Asked: encodeAsked(a.Asked),
		Allowed: a.Allowed, Reason: valid(a.Reason), Cancelled: a.Cancelled, NotFound: a.NotFound, Text: valid(a.Text),
		Terminal: &pluginv1.Terminal{
			Id: a.Terminal.ID, Truncated: a.Terminal.Truncated, Exited: a.Terminal.Exited, Code: number(a.Terminal.Code), Signal: a.Terminal.Signal,
		},
	})
	if err != nil {
		return provider.Reply{}, fmt.Errorf("answer: %w", fromWire(ctx, err))
	}
	return provider.Reply{Input: out.GetInput(), Cancel: out.GetCancel()}, nil
}

func encodeRequest(r provider.Request) *pluginv1.CommandRequest {
	return &pluginv1.CommandRequest{
		Conversation: r.Conversation,
		Resume:       r.Resume,
		Prompt:       r.Prompt,
		System:       r.System,
		Model:        r.Model,
		Tools:        r.Tools,
		Dir:          r.Dir,
		FilesDir:     r.FilesDir,
		StateDir:     r.StateDir,
		TempDir:      r.TempDir,
		Gate:         &pluginv1.Server{Name: r.Gate.Name, Argv: r.Gate.Argv, Env: r.Gate.Env},
		GateTool:     r.GateTool,
	}
}

func decodeRequest(r *pluginv1.CommandRequest) provider.Request {
	return provider.Request{
		Conversation: r.GetConversation(),
		Resume:       r.GetResume(),
		Prompt:       r.GetPrompt(),
		System:       r.GetSystem(),
		Model:        r.GetModel(),
		Tools:        r.GetTools(),
		Dir:          r.GetDir(),
		FilesDir:     r.GetFilesDir(),
		StateDir:     r.GetStateDir(),
		TempDir:      r.GetTempDir(),
		Gate:         provider.Server{Name: r.GetGate().GetName(), Argv: r.GetGate().GetArgv(), Env: r.GetGate().GetEnv()},
		GateTool:     r.GetGateTool(),
	}
}

func encodeAsked(a provider.Asked) *pluginv1.Asked {
	out := &pluginv1.Asked{Id: valid(a.ID), Data: a.Data}
	for _, call := range a.Calls {
		out.Calls = append(out.Calls, encodeToolCall(call))
	}
	switch do := a.Action.(type) {
	case provider.ReadFile:
		out.Action = &pluginv1.Asked_ReadFile{ReadFile: &pluginv1.ReadFile{Path: valid(do.Path), Line: number(do.Line), Limit: number(do.Limit)}}
	case provider.WriteFile:
		out.Action = &pluginv1.Asked_WriteFile{WriteFile: &pluginv1.WriteFile{Path: valid(do.Path), Content: valid(do.Content)}}
	case provider.RunCommand:
		out.Action = &pluginv1.Asked_RunCommand{RunCommand: &pluginv1.RunCommand{Command: valid(do.Command), Dir: valid(do.Dir), MaxOutput: number(do.MaxOutput)}}
	case provider.UseTerminal:
		out.Action = &pluginv1.Asked_UseTerminal{UseTerminal: &pluginv1.UseTerminal{Id: valid(do.ID), Do: valid(do.Do)}}
	}
	return out
}

func decodeAsked(a *pluginv1.Asked) provider.Asked {
	out := provider.Asked{ID: a.GetId(), Data: a.GetData()}
	for _, call := range a.GetCalls() {
		out.Calls = append(out.Calls, decodeToolCall(call))
	}
	switch do := a.GetAction().(type) {
	case *pluginv1.Asked_ReadFile:
		out.Action = provider.ReadFile{Path: do.ReadFile.GetPath(), Line: int(do.ReadFile.GetLine()), Limit: int(do.ReadFile.GetLimit())}
	case *pluginv1.Asked_WriteFile:
		out.Action = provider.WriteFile{Path: do.WriteFile.GetPath(), Content: do.WriteFile.GetContent()}
	case *pluginv1.Asked_RunCommand:
		out.Action = provider.RunCommand{Command: do.RunCommand.GetCommand(), Dir: do.RunCommand.GetDir(), MaxOutput: int(do.RunCommand.GetMaxOutput())}
	case *pluginv1.Asked_UseTerminal:
		out.Action = provider.UseTerminal{ID: do.UseTerminal.GetId(), Do: do.UseTerminal.GetDo()}
	}
	return out
}
