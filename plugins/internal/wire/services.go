package wire

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/coven-run/coven/plugins/fault"
	pluginv1 "github.com/coven-run/coven/plugins/internal/proto/coven/plugin/v1"
	"github.com/coven-run/coven/plugins/services"
)

// BrokerID is where coven offers its services on a plugin's broker.
const BrokerID = 1

// Desk is coven's side of the wire: it gives each call of a plugin the services
// that are meant for it.
type Desk struct {
	pluginv1.UnimplementedServicesServer

	mu    sync.Mutex
	calls map[string]services.Services
}

// NewDesk returns a desk that serves nobody yet.
func NewDesk() *Desk { return &Desk{calls: map[string]services.Services{}} }

// Serve offers the desk on a plugin's broker until the broker is closed.
func (d *Desk) Serve(broker *goplugin.GRPCBroker) {
	broker.AcceptAndServe(BrokerID, func(options []grpc.ServerOption) *grpc.Server {
		s := grpc.NewServer(options...)
		pluginv1.RegisterServicesServer(s, d)
		return s
	})
}

// Open lets s serve whoever shows the token, until done is called.
func (d *Desk) Open(s services.Services) (token string, done func()) {
	token = rand.Text()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls[token] = s
	return token, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.calls, token)
	}
}

// of finds the services of a call.
func (d *Desk) of(token string) (services.Services, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s, ok := d.calls[token]; ok {
		return s, nil
	}
	return nil, toWire(fmt.Errorf("no call of this plugin has that token, or it is answered: %w", fault.ErrInvalid))
}

// RunAgent implements the wire's server.
func (d *Desk) RunAgent(ctx context.Context, in *pluginv1.RunAgentRequest) (*pluginv1.RunAgentResponse, error) {
	s, err := d.of(in.GetCall())
	if err != nil {
		return nil, err
	}
	out, err := s.RunAgent(ctx, services.Ask{Prompt: in.GetPrompt(), Model: in.GetModel(), Conversation: in.GetConversation()})
	if err != nil {
		return nil, toWire(err)
	}
	return &pluginv1.RunAgentResponse{Text: valid(out.Text), Conversation: out.Conversation}, nil
}

// Diff implements the wire's server.
func (d *Desk) Diff(ctx context.Context, in *pluginv1.DiffRequest) (*pluginv1.DiffResponse, error) {
	s, err := d.of(in.GetCall())
	if err != nil {
		return nil, err
	}
	out, err := s.Diff(ctx, in.GetPaths()...)
	if err != nil {
		return nil, toWire(err)
	}
	return &pluginv1.DiffResponse{Diff: valid(out)}, nil
}

// ReadFile implements the wire's server.
func (d *Desk) ReadFile(ctx context.Context, in *pluginv1.ReadFileRequest) (*pluginv1.ReadFileResponse, error) {
	s, err := d.of(in.GetCall())
	if err != nil {
		return nil, err
	}
	out, err := s.ReadFile(ctx, in.GetPath())
	if err != nil {
		return nil, toWire(err)
	}
	return &pluginv1.ReadFileResponse{Content: out}, nil
}

// Log implements the wire's server.
func (d *Desk) Log(ctx context.Context, in *pluginv1.LogRequest) (*pluginv1.LogResponse, error) {
	s, err := d.of(in.GetCall())
	if err != nil {
		return nil, err
	}
	return &pluginv1.LogResponse{}, toWire(s.Log(ctx, in.GetText()))
}

// Link is the plugin's side of the wire: how it reaches coven's services.
type Link struct {
	up   chan struct{} // closed when conn is there
	conn *grpc.ClientConn
}

// NewLink returns a link that comes up as soon as coven offers its services on
// the broker.
func NewLink(broker *goplugin.GRPCBroker) *Link {
	l := &Link{up: make(chan struct{})}
	go func() {
		for l.conn == nil { // the broker gives up after a while, and coven may be slow
			l.conn, _ = broker.Dial(BrokerID)
		}
		close(l.up)
	}()
	return l
}

// connection waits for the connection.
func (l *Link) connection(ctx context.Context) (*grpc.ClientConn, error) {
	select {
	case <-l.up:
		return l.conn, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// of are the services of one call.
func (l *Link) of(token string) services.Services { return &visitor{link: l, token: token} }

// visitor is services.Services over the wire.
type visitor struct {
	link  *Link
	token string
}

// ask makes one request.
func ask[In, Out any](ctx context.Context, c *visitor, what string, method func(pluginv1.ServicesClient, context.Context, In, ...grpc.CallOption) (Out, error), in In) (Out, error) {
	var none Out
	conn, err := c.link.connection(ctx)
	if err != nil {
		return none, fmt.Errorf("reach coven's services: %w", err)
	}
	out, err := method(pluginv1.NewServicesClient(conn), ctx, in)
	if err != nil {
		return none, fmt.Errorf("coven: %s: %w", what, fromWire(ctx, err))
	}
	return out, nil
}

// RunAgent implements Services.
func (c *visitor) RunAgent(ctx context.Context, a services.Ask) (services.Answer, error) {
	out, err := ask(ctx, c, "run an agent", pluginv1.ServicesClient.RunAgent, &pluginv1.RunAgentRequest{
		Call: c.token, Prompt: valid(a.Prompt), Model: a.Model, Conversation: a.Conversation,
	})
	return services.Answer{Text: out.GetText(), Conversation: out.GetConversation()}, err
}

// Diff implements Services.
func (c *visitor) Diff(ctx context.Context, paths ...string) (string, error) {
	out, err := ask(ctx, c, "diff", pluginv1.ServicesClient.Diff, &pluginv1.DiffRequest{Call: c.token, Paths: paths})
	return out.GetDiff(), err
}

// ReadFile implements Services.
func (c *visitor) ReadFile(ctx context.Context, path string) ([]byte, error) {
	out, err := ask(ctx, c, "read "+path, pluginv1.ServicesClient.ReadFile, &pluginv1.ReadFileRequest{Call: c.token, Path: path})
	return out.GetContent(), err
}

// Log implements Services.
func (c *visitor) Log(ctx context.Context, text string) error {
	_, err := ask(ctx, c, "log", pluginv1.ServicesClient.Log, &pluginv1.LogRequest{Call: c.token, Text: valid(text)})
	return err
}
