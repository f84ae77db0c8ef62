package plugins

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
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

// worker is a plugin's process and the connection with it.
type worker struct {
	client   *goplugin.Client
	process  *process
	conn     *grpc.ClientConn
	link     *link
	service  string       // the gRPC service of its contract
	calls    atomic.Int64 // under way
	answered atomic.Bool  // a call, as its contract has it
}

// hire starts a process of a plugin and returns when it can be asked.
func (h *Host) hire(m *member, binary Binary) (*worker, error) {
	cmd, release, err := h.options.Start(binary.Argv...)
	if err != nil {
		return nil, err
	}
	cmd.Dir = h.options.Dir
	w := &worker{process: newProcess(cmd, release, h.speaks, &tail{}), service: serviceOf(m.need.Kind)}
	config := h.config(w.process)
	if !binary.BuiltIn {
		identity, env, err := newIdentity()
		if err != nil {
			w.process.abandon()
			return nil, err
		}
		config.TLSConfig, cmd.Env = identity, append(cmd.Env, env)
	}
	w.link = &link{config: config}
	if m.need.Kind == KindReviewer || m.need.Kind == KindArbiter {
		w.link.desk = m.desk
	}
	config.VersionedPlugins = map[int]goplugin.PluginSet{}
	for _, version := range h.speaks {
		config.VersionedPlugins[version] = goplugin.PluginSet{string(m.need.Kind): w.link}
	}
	w.client = goplugin.NewClient(config)
	defer context.AfterFunc(h.ended, func() { w.process.kill(ErrClosed) })()
	late := time.AfterFunc(h.pace.start, func() {
		w.process.kill(fmt.Errorf("it was not ready after %s and was killed", h.pace.start))
	})
	defer late.Stop()
	if err := w.open(m.need.Kind); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// config is go-plugin's for a process.
func (h *Host) config(p *process) *goplugin.ClientConfig {
	return &goplugin.ClientConfig{
		HandshakeConfig: handshake,
		RunnerFunc: func(_ hclog.Logger, given *exec.Cmd, dir string) (runner.Runner, error) {
			if h.options.Env != nil {
				p.cmd.Env = append(p.cmd.Env, h.options.Env()...)
			}
			p.cmd.Env, p.dir = append(p.cmd.Env, given.Env...), dir
			return p, nil
		},
		SkipHostEnv:      true,
		StartTimeout:     2 * h.pace.start, // the Host's own comes before it
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

// open starts the process, connects with it and sees that it serves what it must.
func (w *worker) open(kind Kind) error {
	protocol, err := w.client.Client()
	if err != nil {
		return w.failed(err)
	}
	conn, err := protocol.Dispense(string(kind))
	if err != nil {
		return w.failed(err)
	}
	w.conn = conn.(*grpc.ClientConn)
	err = w.greet(context.Background()) // ends with the process, and that with the time of the start
	switch status.Code(err) {
	case codes.Unimplemented:
		return w.misfit(err)
	case codes.Unavailable:
		w.process.end(fmt.Errorf("it cannot be reached: %s", status.Convert(err).Message()))
		return w.process.obituary()
	}
	return nil
}

// failed says why a start failed: a process that is gone knows better than
// go-plugin.
func (w *worker) failed(err error) error {
	if w.process.line == "" || !w.process.gone() || errors.Is(w.process.obituary(), errGivenUp) {
		return err
	}
	return w.process.obituary()
}

// greet asks the plugin for a method that does not exist. Whoever serves gRPC
// refuses that, and needs no free hand for it.
func (w *worker) greet(ctx context.Context) error {
	return w.conn.Invoke(ctx, "/"+w.service+"/Hello", &emptypb.Empty{}, &emptypb.Empty{})
}

// misfit says that the plugin serves another contract, when that is what err, an
// answer of gRPC, says.
func (w *worker) misfit(err error) error {
	if !strings.HasPrefix(status.Convert(err).Message(), "unknown service "+w.service) {
		return nil
	}
	return fmt.Errorf("it does not serve %s (is it a plugin of another kind?): %w", w.service, pluginerr.ErrUnsupported)
}

// serviceOf is the gRPC service of a kind.
func serviceOf(kind Kind) string {
	name := string(kind)
	return "coven.plugin.v1." + strings.ToUpper(name[:1]) + name[1:]
}

// watch watches over the process until nothing of it is left: it asks whether it
// is well, and ends it with the host.
func (w *worker) watch(ended context.Context, pace pace) {
	well := make(chan struct{})
	go func() {
		defer close(well)
		w.pulse(pace)
	}()
	select {
	case <-ended.Done():
		w.dismiss(pace.farewell)
	case <-w.process.done:
	}
	w.close()
	<-well
}

// dismiss asks the process to end, and makes it after a while. A plugin that
// cannot be asked is killed at once.
func (w *worker) dismiss(farewell time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	w.process.doom(ErrClosed)
	err := w.conn.Invoke(ctx, "/plugin.GRPCController/Shutdown", &emptypb.Empty{}, &emptypb.Empty{})
	if status.Code(err) != codes.Unimplemented {
		select {
		case <-w.process.done:
		case <-ctx.Done():
		}
	}
	w.process.kill(ErrClosed)
	<-w.process.done
}

// close ends the process and removes what go-plugin made for it.
func (w *worker) close() {
	w.process.kill(errors.New("it could not be started"))
	w.client.Kill()
	w.process.abandon()
	if dir := w.process.dir; dir != "" {
		_ = os.RemoveAll(dir) // the next coven removes what could not be removed
	}
}
