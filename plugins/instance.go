package plugins

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/coven-run/coven/plugins/pluginerr"
)

// instance is a plugin process and the connection to it.
type instance struct {
	client   *goplugin.Client
	process  *process
	conn     *grpc.ClientConn
	link     *link
	service  string // gRPC service of the contract
	binary   Binary
	calls    atomic.Int64 // pending calls
	answered atomic.Bool  // whether a call succeeded
}

// start starts a process of a plugin and returns once it accepts calls.
func (h *Host) start(p *plugin, binary Binary) (*instance, error) {
	cmd, release, err := h.options.Start(binary.Argv...)
	if err != nil {
		return nil, err
	}
	cmd.Dir = h.options.Dir
	i := &instance{process: newProcess(cmd, release, h.speaks, &tail{}), service: serviceOf(p.need.Kind), binary: binary}
	config := h.config(i.process, h.environment(p.need, binary))
	config.AutoMTLS = !binary.BuiltIn
	i.link = &link{config: config}
	if p.need.Kind == KindReviewer || p.need.Kind == KindArbiter {
		i.link.services = p.services
	}
	config.VersionedPlugins = map[int]goplugin.PluginSet{}
	for _, version := range h.speaks {
		config.VersionedPlugins[version] = goplugin.PluginSet{string(p.need.Kind): i.link}
	}
	i.client = goplugin.NewClient(config)
	defer context.AfterFunc(h.closing, func() { i.process.kill(ErrClosed) })()
	late := time.AfterFunc(h.timing.start, func() {
		i.process.kill(fmt.Errorf("not ready after %s, killed", h.timing.start))
	})
	defer late.Stop()
	if err := i.open(p.need.Kind); err != nil {
		i.close()
		return nil, err
	}
	return i, nil
}

// environment returns the environment of a plugin.
func (h *Host) environment(need Need, binary Binary) (env []string) {
	if h.options.Env != nil {
		env = append(env, h.options.Env()...)
	}
	if binary.BuiltIn && h.options.Credentials != nil {
		env = append(env, h.options.Credentials(need)...)
	}
	return env
}

// config returns the go-plugin configuration for p with the environment env.
func (h *Host) config(p *process, env []string) *goplugin.ClientConfig {
	return &goplugin.ClientConfig{
		HandshakeConfig: handshakeConfig,
		RunnerFunc: func(_ hclog.Logger, given *exec.Cmd, dir string) (runner.Runner, error) {
			p.cmd.Env, p.dir = slices.Concat(p.cmd.Env, env, given.Env), dir
			return p, nil
		},
		SkipHostEnv:      true,
		StartTimeout:     2 * h.timing.start, // the Host's own timeout applies first
		UnixSocketConfig: &goplugin.UnixSocketConfig{TempDir: h.options.Sockets},
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		SyncStdout:       p.tail,
		SyncStderr:       p.tail,
		Logger:           hclog.New(&hclog.LoggerOptions{Level: hclog.Off, Output: io.Discard}),
		GRPCDialOptions: []grpc.DialOption{
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
			grpc.WithChainStreamInterceptor(boundBroker),
		},
	}
}

// open starts the process, connects to it and checks that it serves the kind.
func (i *instance) open(kind Kind) error {
	protocol, err := i.client.Client()
	if err != nil {
		return i.startError(err)
	}
	conn, err := protocol.Dispense(string(kind))
	if err != nil {
		return i.startError(err)
	}
	i.conn = conn.(*grpc.ClientConn)
	err = i.ping(context.Background()) // the process is killed when the start times out
	switch status.Code(err) {
	case codes.Unimplemented:
		return i.wrongKind(err)
	case codes.Unavailable:
		i.process.awaitExit(fmt.Errorf("cannot connect: %s", status.Convert(err).Message()))
		return i.process.exitError()
	}
	return nil
}

// startError returns the reason for a failed start. The exit of the process explains more than the error of
// go-plugin.
func (i *instance) startError(err error) error {
	if i.process.handshake == "" || !i.process.gone() || errors.Is(i.process.exitError(), errGivenUp) {
		return err
	}
	return i.process.exitError()
}

// ping calls a method that does not exist. Every gRPC library rejects such a call by
// itself, even if all workers of the plugin are busy.
func (i *instance) ping(ctx context.Context) error {
	return i.conn.Invoke(ctx, "/"+i.service+"/Hello", &emptypb.Empty{}, &emptypb.Empty{})
}

// wrongKind returns an error if the gRPC status err shows that the plugin does not serve the contract.
func (i *instance) wrongKind(err error) error {
	if !strings.HasPrefix(status.Convert(err).Message(), "unknown service "+i.service) {
		return nil
	}
	return fmt.Errorf("does not serve %s (is it a plugin of another kind?): %w", i.service, pluginerr.ErrUnsupported)
}

// serviceOf returns the gRPC service of a kind.
func serviceOf(kind Kind) string {
	name := string(kind)
	return "coven.plugin.v1." + strings.ToUpper(name[:1]) + name[1:]
}

// watch supervises the process until it is cleaned up. It runs health checks and shuts the process down
// when the host closes.
func (i *instance) watch(ended context.Context, t timing) {
	well := make(chan struct{})
	go func() {
		defer close(well)
		i.healthCheck(t)
	}()
	select {
	case <-ended.Done():
		i.shutdown(t.shutdownGrace)
	case <-i.process.done:
	}
	i.close()
	<-well
}

// shutdown asks the process to exit and kills it after the grace period. A plugin that
// does not implement Shutdown is killed immediately.
func (i *instance) shutdown(grace time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	i.process.markStopping(ErrClosed)
	err := i.conn.Invoke(ctx, "/plugin.GRPCController/Shutdown", &emptypb.Empty{}, &emptypb.Empty{})
	if status.Code(err) != codes.Unimplemented {
		select {
		case <-i.process.done:
		case <-ctx.Done():
		}
	}
	i.process.kill(ErrClosed)
	<-i.process.done
}

// close kills the process and removes the files of go-plugin.
func (i *instance) close() {
	i.process.kill(errors.New("could not be started"))
	i.client.Kill()
	i.process.abandon()
	if dir := i.process.dir; dir != "" {
		_ = os.RemoveAll(dir) // the next coven removes leftovers
	}
}
