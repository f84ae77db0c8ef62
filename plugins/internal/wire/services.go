package wire

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"sync"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/coven-run/coven/plugins/hostservice"
	pluginv1 "github.com/coven-run/coven/plugins/internal/proto/coven/plugin/v1"
	"github.com/coven-run/coven/plugins/pluginerr"
)

// BrokerID identifies coven's services on a plugin's broker.
const BrokerID = 1

// Limits for requests of plugins. Each call handles at most maxConcurrent requests at a time, not counting
// RunAgent, which takes long; further requests wait. maxStreams limits the pending requests of all calls,
// and maxRequest the size of a request in bytes.
const (
	maxConcurrent = 32
	maxStreams    = 1000
	maxRequest    = 16 << 20
)

// ServiceServer is the host side of coven's services. It routes each request to the
// services of the call that the plugin is handling.
type ServiceServer struct {
	pluginv1.UnimplementedServicesServer

	mu    sync.Mutex
	calls map[string]call
}

// call is a call that the plugin is handling.
type call struct {
	services hostservice.Services
	ctx      context.Context // done when the call is answered
	requests *sync.WaitGroup // pending requests
	slots    chan struct{}   // limits concurrent requests
}

// NewServiceServer returns a server with no open calls.
func NewServiceServer() *ServiceServer {
	return &ServiceServer{calls: map[string]call{}}
}

// Serve offers the services on the broker of a plugin process until ctx is done. identity configures TLS
// for both sides. It may be nil for a connection without TLS.
func (s *ServiceServer) Serve(ctx context.Context, broker *goplugin.GRPCBroker, identity *tls.Config) {
	listener, err := broker.Accept(BrokerID)
	if err != nil {
		return // the process has exited or does not use services
	}
	options := []grpc.ServerOption{grpc.MaxRecvMsgSize(maxRequest), grpc.MaxConcurrentStreams(maxStreams)}
	if identity != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(identity)))
	}
	server := grpc.NewServer(options...)
	pluginv1.RegisterServicesServer(server, s)
	defer context.AfterFunc(ctx, server.Stop)()
	_ = server.Serve(listener) // returns after Stop
}

// Open registers impl for requests with the returned token. done revokes the token, cancels pending
// requests and waits for them, so that no request outlives its call.
func (s *ServiceServer) Open(impl hostservice.Services) (token string, done func()) {
	token = rand.Text()
	over, end := context.WithCancel(context.Background())
	s.mu.Lock()
	defer s.mu.Unlock()
	requests := &sync.WaitGroup{}
	s.calls[token] = call{services: impl, ctx: over, requests: requests, slots: make(chan struct{}, maxConcurrent)}
	return token, func() {
		s.mu.Lock()
		delete(s.calls, token)
		s.mu.Unlock()
		end()
		requests.Wait()
	}
}

// start starts a request of a call. The returned context also ends with the call.
func (s *ServiceServer) start(ctx context.Context, token string) (context.Context, context.CancelFunc, call, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.calls[token]
	if !ok {
		return nil, nil, call{}, toWire(fmt.Errorf("unknown or expired call token: %w", pluginerr.ErrInvalid))
	}
	if c.services == nil {
		return nil, nil, call{}, toWire(fmt.Errorf("coven offers no services in this call: %w", pluginerr.ErrUnsupported))
	}
	c.requests.Add(1)
	ctx, cancel := context.WithCancel(ctx)
	unhook := context.AfterFunc(c.ctx, cancel)
	return ctx, func() { unhook(); cancel(); c.requests.Done() }, c, nil
}

// startLimited is like start, but waits while the call handles maxConcurrent other requests.
func (s *ServiceServer) startLimited(ctx context.Context, token string) (context.Context, context.CancelFunc, hostservice.Services, error) {
	ctx, cancel, c, err := s.start(ctx, token)
	if err != nil {
		return nil, nil, nil, err
	}
	select {
	case c.slots <- struct{}{}:
		return ctx, func() { <-c.slots; cancel() }, c.services, nil
	case <-ctx.Done():
		defer cancel()
		return nil, nil, nil, toWire(ctx.Err())
	}
}

// RunAgent implements pluginv1.ServicesServer.
func (s *ServiceServer) RunAgent(ctx context.Context, in *pluginv1.RunAgentRequest) (*pluginv1.RunAgentResponse, error) {
	ctx, cancel, c, err := s.start(ctx, in.GetCall())
	if err != nil {
		return nil, err
	}
	defer cancel()
	out, err := c.services.RunAgent(ctx, hostservice.Ask{Prompt: in.GetPrompt(), Model: in.GetModel(), Conversation: in.GetConversation(), Agent: in.GetAgent()})
	if err != nil {
		return nil, toWire(err)
	}
	return &pluginv1.RunAgentResponse{Text: valid(out.Text), Conversation: out.Conversation}, nil
}

// Diff implements pluginv1.ServicesServer.
func (s *ServiceServer) Diff(ctx context.Context, in *pluginv1.DiffRequest) (*pluginv1.DiffResponse, error) {
	ctx, cancel, services, err := s.startLimited(ctx, in.GetCall())
	if err != nil {
		return nil, err
	}
	defer cancel()
	out, err := services.Diff(ctx, in.GetPaths()...)
	if err != nil {
		return nil, toWire(err)
	}
	return &pluginv1.DiffResponse{Diff: valid(out)}, nil
}

// ReadFile implements pluginv1.ServicesServer.
func (s *ServiceServer) ReadFile(ctx context.Context, in *pluginv1.ReadFileRequest) (*pluginv1.ReadFileResponse, error) {
	ctx, cancel, services, err := s.startLimited(ctx, in.GetCall())
	if err != nil {
		return nil, err
	}
	defer cancel()
	out, err := services.ReadFile(ctx, in.GetPath())
	if err != nil {
		return nil, toWire(err)
	}
	return &pluginv1.ReadFileResponse{Content: out}, nil
}

// Log implements pluginv1.ServicesServer.
func (s *ServiceServer) Log(ctx context.Context, in *pluginv1.LogRequest) (*pluginv1.LogResponse, error) {
	ctx, cancel, services, err := s.startLimited(ctx, in.GetCall())
	if err != nil {
		return nil, err
	}
	defer cancel()
	return &pluginv1.LogResponse{}, toWire(services.Log(ctx, in.GetText()))
}

// Link is the plugin's side of the connection to coven's services.
type Link struct {
	up   chan struct{} // closed when conn is set
	conn *grpc.ClientConn
}

// NewLink returns a link that connects as soon as coven offers its services on the
// broker.
func NewLink(broker *goplugin.GRPCBroker) *Link {
	l := &Link{up: make(chan struct{})}
	go func() {
		for l.conn == nil { // Dial times out, and coven may be slow
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

// services returns the services of one call.
func (l *Link) services(token string) hostservice.Services {
	return &serviceClient{link: l, token: token}
}

// serviceClient implements hostservice.Services over gRPC.
type serviceClient struct {
	link  *Link
	token string
}

// ask sends one request. what names the operation in errors.
func ask[In, Out any](ctx context.Context, c *serviceClient, what string, method func(pluginv1.ServicesClient, context.Context, In, ...grpc.CallOption) (Out, error), in In) (Out, error) {
	var none Out
	conn, err := c.link.connection(ctx)
	if err != nil {
		return none, fmt.Errorf("connect to coven's services: %w", err)
	}
	out, err := method(pluginv1.NewServicesClient(conn), ctx, in)
	if err != nil {
		return none, fmt.Errorf("coven: %s: %w", what, fromWire(ctx, err))
	}
	return out, nil
}

// RunAgent implements hostservice.Services.
func (c *serviceClient) RunAgent(ctx context.Context, a hostservice.Ask) (hostservice.Answer, error) {
	out, err := ask(ctx, c, "run an agent", pluginv1.ServicesClient.RunAgent, &pluginv1.RunAgentRequest{
		Call: c.token, Prompt: valid(a.Prompt), Model: a.Model, Conversation: a.Conversation, Agent: a.Agent,
	})
	return hostservice.Answer{Text: out.GetText(), Conversation: out.GetConversation()}, err
}

// Diff implements hostservice.Services.
func (c *serviceClient) Diff(ctx context.Context, paths ...string) (string, error) {
	out, err := ask(ctx, c, "diff", pluginv1.ServicesClient.Diff, &pluginv1.DiffRequest{Call: c.token, Paths: paths})
	return out.GetDiff(), err
}

// ReadFile implements hostservice.Services.
func (c *serviceClient) ReadFile(ctx context.Context, path string) ([]byte, error) {
	out, err := ask(ctx, c, "read "+path, pluginv1.ServicesClient.ReadFile, &pluginv1.ReadFileRequest{Call: c.token, Path: path})
	return out.GetContent(), err
}

// Log implements hostservice.Services.
func (c *serviceClient) Log(ctx context.Context, text string) error {
	_, err := ask(ctx, c, "log", pluginv1.ServicesClient.Log, &pluginv1.LogRequest{Call: c.token, Text: valid(text)})
	return err
}
