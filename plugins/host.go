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

	"github.com/coven-run/coven/plugins/provider"
)

// ErrUnknown says that no plugin of that name exists.
var ErrUnknown = errors.New("unknown plugin")

// startTimeout bounds how long a plugin may take to say that it is ready.
const startTimeout = 30 * time.Second

// Starter makes the command that runs a plugin: contained, and gone with
// everything it started when coven ends. release is called after the end.
type Starter func(argv ...string) (cmd *exec.Cmd, release func(), err error)

// Binary is what starts a plugin.
type Binary struct {
	Argv    []string
	SHA256  []byte // of the file Argv[0]; nil: it may have any
	BuiltIn bool   // it is coven's own program
}

// HostOptions is what a Host needs to know.
type HostOptions struct {
	// Start starts a plugin's command line.
	Start Starter
	// Resolve says what starts a plugin, or why nothing may. The error is
	// ErrUnknown when there is no such plugin.
	Resolve func(kind, name string) (Binary, error)
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

type running struct {
	client  *goplugin.Client
	release func()
	face    any // the contract's Go interface
}

// NewHost returns a host. It starts nothing.
func NewHost(o HostOptions) *Host {
	return &Host{options: o, running: map[string]*running{}}
}

// Provider returns the provider plugin of that name, started if need be. An
// unknown name is ErrUnknown.
func (h *Host) Provider(ctx context.Context, name string) (provider.Provider, error) {
	face, err := h.get(ctx, kindProvider, name, &provider.Plugin{})
	if err != nil {
		return nil, err
	}
	return face.(provider.Provider), nil
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

func (h *Host) get(ctx context.Context, kind, name string, contract goplugin.Plugin) (any, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := kind + "/" + name
	if r, ok := h.running[key]; ok {
		if !r.client.Exited() {
			return r.face, nil
		}
		r.client.Kill()
		r.release()
		delete(h.running, key)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r, err := h.launch(kind, name, contract)
	if err != nil {
		return nil, err
	}
	h.running[key] = r
	return r.face, nil
}

func (h *Host) launch(kind, name string, contract goplugin.Plugin) (*running, error) {
	binary, err := h.options.Resolve(kind, name)
	if err != nil {
		return nil, err
	}
	cmd, release, err := h.options.Start(binary.Argv...)
	if err != nil {
		return nil, fmt.Errorf("start %s plugin %s: %w", kind, name, err)
	}
	client := goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig:  handshake,
		VersionedPlugins: map[int]goplugin.PluginSet{protocolVersion: {kind: contract}},
		Cmd:              cmd,
		StartTimeout:     startTimeout,
		SkipHostEnv:      true,
		UnixSocketConfig: &goplugin.UnixSocketConfig{TempDir: h.options.Sockets},
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		Logger:           hclog.New(&hclog.LoggerOptions{Output: io.Discard}),
		GRPCDialOptions: []grpc.DialOption{grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage))},
	})
	face, err := dispense(client, kind)
	if err != nil {
		client.Kill()
		release()
		return nil, fmt.Errorf("start %s plugin %s: %w", kind, name, err)
	}
	return &running{client: client, release: release, face: face}, nil
}

func dispense(client *goplugin.Client, kind string) (any, error) {
	conn, err := client.Client()
	if err != nil {
		return nil, err
	}
	return conn.Dispense(kind)
}
