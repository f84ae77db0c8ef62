package provider

import (
	"context"
	"fmt"
	"time"

	pluginv1 "github.com/coven-run/coven/plugins/internal/proto/coven/plugin/v1"
)

// answerTime bounds how long a plugin may take for one answer. A plugin that
// hangs fails its step, never the run.
const answerTime = time.Minute

// client is coven's side of the wire.
type client struct{ rpc pluginv1.ProviderClient }

// bounded gives a call its time.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, answerTime, fmt.Errorf("no answer within %s", answerTime))
}

// failed is what a call that failed returns.
func failed(ctx context.Context, what string, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return fmt.Errorf("provider plugin: %s: %w", what, err)
}

func (c *client) Command(ctx context.Context, req Request) (Command, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
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
		return Command{}, failed(ctx, "command", err)
	}
	files := make([]File, len(out.GetFiles()))
	for i, f := range out.GetFiles() {
		files[i] = File{Name: f.GetName(), Content: f.GetContent()}
	}
	return Command{
		Argv: out.GetArgv(), Env: out.GetEnv(), Pass: out.GetPass(), Input: out.GetInput(),
		Files: files, Gated: out.GetGated(), Account: out.GetAccount(), Partial: out.GetPartial(), Once: out.GetOnce(),
	}, nil
}

func (c *client) Parse(ctx context.Context, lines []byte) ([]Event, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	out, err := c.rpc.Parse(ctx, &pluginv1.ParseRequest{Lines: lines})
	if err != nil {
		return nil, failed(ctx, "parse", err)
	}
	var events []Event
	for _, e := range out.GetEvents() {
		if event := decode(e); event != nil {
			events = append(events, event)
		}
	}
	return events, nil
}

func (c *client) Message(ctx context.Context, message Message) ([]byte, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	out, err := c.rpc.Message(ctx, &pluginv1.MessageRequest{Id: message.ID, Text: message.Text})
	if err != nil {
		return nil, failed(ctx, "message", err)
	}
	return out.GetInput(), nil
}
