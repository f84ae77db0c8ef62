package provider

import (
	"context"

	pluginv1 "github.com/coven-run/coven/plugins/internal/proto/coven/plugin/v1"
)

// server is the plugin's side of the wire.
type server struct {
	pluginv1.UnimplementedProviderServer
	impl Provider
}

func (s *server) Command(ctx context.Context, in *pluginv1.CommandRequest) (*pluginv1.CommandResponse, error) {
	out, err := s.impl.Command(ctx, Request{
		Conversation: in.GetConversation(),
		Resume:       in.GetResume(),
		Prompt:       in.GetPrompt(),
		System:       in.GetSystem(),
		Model:        in.GetModel(),
		Tools:        in.GetTools(),
		FilesDir:     in.GetFilesDir(),
		Gate: Server{
			Name: in.GetGate().GetName(),
			Argv: in.GetGate().GetArgv(),
			Env:  in.GetGate().GetEnv(),
		},
		GateTool: in.GetGateTool(),
	})
	if err != nil {
		return nil, err
	}
	files := make([]*pluginv1.File, len(out.Files))
	for i, f := range out.Files {
		files[i] = &pluginv1.File{Name: f.Name, Content: f.Content}
	}
	return &pluginv1.CommandResponse{
		Argv: out.Argv, Env: out.Env, Pass: out.Pass, Input: out.Input,
		Files: files, Gated: out.Gated, Account: out.Account, Partial: out.Partial, Once: out.Once,
	}, nil
}

func (s *server) Parse(ctx context.Context, in *pluginv1.ParseRequest) (*pluginv1.ParseResponse, error) {
	events, err := s.impl.Parse(ctx, in.GetLines())
	if err != nil {
		return nil, err
	}
	out := &pluginv1.ParseResponse{Events: make([]*pluginv1.Event, len(events))}
	for i, e := range events {
		out.Events[i] = encode(e)
	}
	return out, nil
}

func (s *server) Message(ctx context.Context, in *pluginv1.MessageRequest) (*pluginv1.MessageResponse, error) {
	input, err := s.impl.Message(ctx, Message{ID: in.GetId(), Text: in.GetText()})
	if err != nil {
		return nil, err
	}
	return &pluginv1.MessageResponse{Input: input}, nil
}
