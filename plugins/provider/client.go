package provider

import (
	"context"
	"fmt"

	pluginv1 "github.com/coven-run/coven/plugins/internal/proto/coven/plugin/v1"
)

// client is coven's side of the wire.
type client struct{ rpc pluginv1.ProviderClient }

func (c *client) Command(ctx context.Context, req Request) (Command, error) {
	out, err := c.rpc.Command(ctx, &pluginv1.CommandRequest{
		Conversation: req.Conversation,
		Resume:       req.Resume,
		Prompt:       req.Prompt,
		System:       req.System,
		Model:        req.Model,
		Tools:        req.Tools,
		FilesDir:     req.FilesDir,
		Gate:         &pluginv1.Server{Name: req.Gate.Name, Argv: req.Gate.Argv, Env: req.Gate.Env},
		GateTool:     req.GateTool,
	})
	if err != nil {
		return Command{}, fmt.Errorf("provider plugin: command: %w", err)
	}
	files := make([]File, len(out.GetFiles()))
	for i, f := range out.GetFiles() {
		files[i] = File{Name: f.GetName(), Content: f.GetContent()}
	}
	return Command{
		Argv: out.GetArgv(), Env: out.GetEnv(), Pass: out.GetPass(), Input: out.GetInput(),
		Files: files, Gated: out.GetGated(), Account: out.GetAccount(),
	}, nil
}

func (c *client) Parse(ctx context.Context, lines []byte) ([]Event, error) {
	out, err := c.rpc.Parse(ctx, &pluginv1.ParseRequest{Lines: lines})
	if err != nil {
		return nil, fmt.Errorf("provider plugin: parse: %w", err)
	}
	var events []Event
	for _, e := range out.GetEvents() {
		if event := decode(e); event != nil {
			events = append(events, event)
		}
	}
	return events, nil
}

func (c *client) Message(ctx context.Context, text string) ([]byte, error) {
	out, err := c.rpc.Message(ctx, &pluginv1.MessageRequest{Text: text})
	if err != nil {
		return nil, fmt.Errorf("provider plugin: message: %w", err)
	}
	return out.GetInput(), nil
}
