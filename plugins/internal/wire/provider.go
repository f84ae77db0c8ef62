package wire

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"

	pluginv1 "github.com/coven-run/coven/plugins/internal/proto/coven/plugin/v1"
	"github.com/coven-run/coven/plugins/provider"
)

// RegisterProvider registers impl with a plugin's gRPC server.
func RegisterProvider(s *grpc.Server, impl provider.Provider) {
	pluginv1.RegisterProviderServer(s, &providerServer{impl: impl})
}

type providerServer struct {
	pluginv1.UnimplementedProviderServer
	impl provider.Provider
}

func (s *providerServer) Command(ctx context.Context, in *pluginv1.CommandRequest) (*pluginv1.CommandResponse, error) {
	out, err := s.impl.Command(ctx, decodeRequest(in))
	if err != nil {
		return nil, toWire(err)
	}
	files := make([]*pluginv1.File, len(out.Files))
	for i, f := range out.Files {
		files[i] = &pluginv1.File{Name: f.Name, Content: f.Content}
	}
	return &pluginv1.CommandResponse{
		Argv: out.Argv, Env: out.Env, Pass: out.Pass, Input: out.Input,
		Files: files, Gated: out.Gated, Account: out.Account, Partial: out.Partial, Once: out.Once, ReadOnly: out.ReadOnly, Logins: out.Logins, Forward: out.Forward, Server: out.Server,
	}, nil
}

func (s *providerServer) Parse(ctx context.Context, in *pluginv1.ParseRequest) (*pluginv1.ParseResponse, error) {
	events, err := s.impl.Parse(ctx, in.GetLines())
	if err != nil {
		return nil, toWire(err)
	}
	out := &pluginv1.ParseResponse{Events: make([]*pluginv1.Event, len(events))}
	for i, e := range events {
		out.Events[i] = encodeEvent(e)
	}
	return out, nil
}

func (s *providerServer) Message(ctx context.Context, in *pluginv1.MessageRequest) (*pluginv1.MessageResponse, error) {
	input, err := s.impl.Message(ctx, provider.Message{ID: in.GetId(), Text: in.GetText()})
	if err != nil {
		return nil, toWire(err)
	}
	return &pluginv1.MessageResponse{Input: input}, nil
}

// Provider returns a client for a provider plugin.
func Provider(conn grpc.ClientConnInterface) provider.Provider {
	return &providerClient{rpc: pluginv1.NewProviderClient(conn)}
}

type providerClient struct{ rpc pluginv1.ProviderClient }

// answerTime is the timeout of every method of a provider.
const answerTime = time.Minute

// bounded applies answerTime to a call.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, answerTime, fmt.Errorf("no answer within %s", answerTime))
}

func (c *providerClient) Command(ctx context.Context, req provider.Request) (provider.Command, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	out, err := c.rpc.Command(ctx, encodeRequest(req))
	if err != nil {
		return provider.Command{}, fmt.Errorf("command: %w", fromWire(ctx, err))
	}
	files := make([]provider.File, len(out.GetFiles()))
	for i, f := range out.GetFiles() {
		files[i] = provider.File{Name: f.GetName(), Content: f.GetContent()}
	}
	return provider.Command{
		Argv: out.GetArgv(), Env: out.GetEnv(), Pass: out.GetPass(), Input: out.GetInput(),
		Files: files, Gated: out.GetGated(), Account: out.GetAccount(), Partial: out.GetPartial(), Once: out.GetOnce(), ReadOnly: out.GetReadOnly(), Logins: out.GetLogins(), Forward: out.GetForward(), Server: out.GetServer(),
	}, nil
}

func (c *providerClient) Parse(ctx context.Context, lines []byte) ([]provider.Event, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	out, err := c.rpc.Parse(ctx, &pluginv1.ParseRequest{Lines: lines})
	if err != nil {
		return nil, fmt.Errorf("parse: %w", fromWire(ctx, err))
	}
	var events []provider.Event
	for _, e := range out.GetEvents() {
		if event := decodeEvent(e); event != nil {
			events = append(events, event)
		}
	}
	return events, nil
}

func (c *providerClient) Message(ctx context.Context, message provider.Message) ([]byte, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	out, err := c.rpc.Message(ctx, &pluginv1.MessageRequest{Id: message.ID, Text: message.Text})
	if err != nil {
		return nil, fmt.Errorf("message: %w", fromWire(ctx, err))
	}
	return out.GetInput(), nil
}
