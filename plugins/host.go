package plugins

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/internal/wire"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/provider"
	"github.com/coven-run/coven/plugins/reviewer"
)

// ErrUnknown says that no plugin of that name exists.
var ErrUnknown = errors.New("unknown plugin")

// startTimeout bounds how long a plugin may take to say that it is ready.
const startTimeout = 30 * time.Second

// Starter makes the command that runs a plugin: contained, and gone with
// everything it started when coven ends. release is called after the end.
type Starter func(argv ...string) (cmd *exec.Cmd, release func(), err error)

// Binary is the program of a plugin.
type Binary struct {
	Argv    []string
	SHA256  []byte // of Argv[0], which must have it; empty: anything is run
	BuiltIn bool   // it is coven itself
}

// HostOptions is what a Host needs to know.
type HostOptions struct {
	// Start starts a plugin's command line.
	Start Starter
	// Resolve finds the program of a plugin; ErrUnknown when there is none. What
	// may not be run is an error, too.
	Resolve func(kind Kind, name string) (Binary, error)
	// Sockets is the directory of the plugins' sockets: a short path.
	Sockets string
}

// Host runs plugins: one process per plugin, started when it is first needed
// and shared by all tasks of the run.
type Host struct {
	options HostOptions

	mu      sync.Mutex
	running map[string]*running
}

// running is a plugin process.
type running struct {
	client  *goplugin.Client
	release func()
	conn    *grpc.ClientConn
	desk    *wire.Desk // where it finds coven
}

// NewHost returns a host. It starts nothing.
func NewHost(o HostOptions) *Host {
	return &Host{options: o, running: map[string]*running{}}
}

// Provider returns the provider plugin of that name, started if need be. An
// unknown name is ErrUnknown.
func (h *Host) Provider(ctx context.Context, name string) (provider.Provider, error) {
	r, err := h.get(ctx, KindProvider, name)
	if err != nil {
		return nil, err
	}
	return wire.Provider(r.conn), nil
}

// Model returns the model plugin of that name, as Provider does.
func (h *Host) Model(ctx context.Context, name string) (model.Model, error) {
	r, err := h.get(ctx, KindModel, name)
	if err != nil {
		return nil, err
	}
	return wire.Model(r.conn), nil
}

// Reviewer returns the reviewer plugin of that name, as Provider does.
func (h *Host) Reviewer(ctx context.Context, name string) (reviewer.Reviewer, error) {
	r, err := h.get(ctx, KindReviewer, name)
	if err != nil {
		return nil, err
	}
	return wire.Reviewer(r.conn, r.desk), nil
}

// Arbiter returns the arbiter plugin of that name, as Provider does.
func (h *Host) Arbiter(ctx context.Context, name string) (arbiter.Arbiter, error) {
	r, err := h.get(ctx, KindArbiter, name)
	if err != nil {
		return nil, err
	}
	return wire.Arbiter(r.conn, r.desk), nil
}

// Close ends all plugin processes and returns when they are gone.
func (h *Host) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, r := range h.running {
		r.client.Kill()
		r.release()
		delete(h.running, key)
	}
}

func (h *Host) get(ctx context.Context, kind Kind, name string) (*running, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := string(kind) + "/" + name
	if r, ok := h.running[key]; ok {
		if !r.client.Exited() {
			return r, nil
		}
		r.client.Kill()
		r.release()
		delete(h.running, key)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r, err := h.launch(kind, name)
	if err != nil {
		return nil, err
	}
	h.running[key] = r
	return r, nil
}

func (h *Host) launch(kind Kind, name string) (*running, error) {
	binary, err := h.options.Resolve(kind, name)
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", kind, name, err)
	}
	cmd, release, err := h.options.Start(binary.Argv...)
	if err != nil {
		return nil, fmt.Errorf("start %s plugin %s: %w", kind, name, err)
	}
	used := &used{desk: wire.NewDesk()}
	client := goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig:  handshake,
		VersionedPlugins: map[int]goplugin.PluginSet{protocolVersion: {string(kind): used}},
		Cmd:              cmd,
		StartTimeout:     startTimeout,
		SkipHostEnv:      true,
		UnixSocketConfig: &goplugin.UnixSocketConfig{TempDir: h.options.Sockets},
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		AutoMTLS:         !binary.BuiltIn,
		Logger:           hclog.New(&hclog.LoggerOptions{Output: io.Discard}),
		GRPCDialOptions: []grpc.DialOption{grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage))},
	})
	conn, err := dispense(client, kind)
	if err != nil {
		client.Kill()
		release()
		return nil, fmt.Errorf("start %s plugin %s: %w", kind, name, err)
	}
	return &running{client: client, release: release, conn: conn, desk: used.desk}, nil
}

func dispense(client *goplugin.Client, kind Kind) (*grpc.ClientConn, error) {
	protocol, err := client.Client()
	if err != nil {
		return nil, err
	}
	conn, err := protocol.Dispense(string(kind))
	if err != nil {
		return nil, err
	}
	return conn.(*grpc.ClientConn), nil
}

// used is coven's side of go-plugin.
type used struct {
	goplugin.NetRPCUnsupportedPlugin
	desk *wire.Desk
}

// GRPCServer implements goplugin.GRPCPlugin.
func (u *used) GRPCServer(*goplugin.GRPCBroker, *grpc.Server) error {
	panic("coven is no plugin of itself")
}

// GRPCClient implements goplugin.GRPCPlugin.
func (u *used) GRPCClient(_ context.Context, broker *goplugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	go u.desk.Serve(broker)
	return conn, nil
}
