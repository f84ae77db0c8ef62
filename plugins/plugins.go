// Package plugins is both ends of coven's plugins: Serve, which is all that a
// plugin's main calls, and Host, which starts plugin processes and speaks to
// them.
//
// A plugin is a program of its own, so a crash, a leak or a hang in it cannot
// take coven along. The contracts are in the packages beside this one, one per
// kind; they travel as protobuf over gRPC (hashicorp/go-plugin).
//
// Rules of the host, each of which examples/plugins/zoo tries to break:
//   - A plugin is started through HostOptions.Start, which contains its tree, with
//     no environment but HostOptions.Env and what go-plugin says, and nothing on
//     its standard input. Both sides prove who they are (TLS), unless the plugin is
//     coven itself; its sockets are in a directory of its own.
//   - What it prints is read for ever, and its end is kept for the error that says
//     why it died. What it answers has a bound.
//   - Whatever it does, a call of it ends with the call's context, and other
//     plugins are not held up. What it goes on doing after that is not seen.
//   - One that dies, or hangs, is started again once; and once more when it has
//     answered a call meanwhile. Close leaves nothing of it.
package plugins

import (
	"context"
	"io"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/internal/wire"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/provider"
	"github.com/coven-run/coven/plugins/reviewer"
)

// Kind is what a plugin does.
type Kind string

// The kinds, one contract each.
const (
	KindProvider Kind = "provider"
	KindModel    Kind = "model"
	KindReviewer Kind = "reviewer"
	KindArbiter  Kind = "arbiter"
)

// Kinds are all kinds.
func Kinds() []Kind { return []Kind{KindProvider, KindModel, KindReviewer, KindArbiter} }

// protocolVersion is the version of the contracts that this code speaks. Both
// sides offer all that they know, and speak the highest that both do.
const protocolVersion = 1

// maxMessage is the largest message either side takes, in bytes: a line of an
// agent's output holds a whole file when the agent wrote one.
const maxMessage = 64 << 20

// handshake tells a plugin that it was started by coven and not by hand.
var handshake = goplugin.HandshakeConfig{
	MagicCookieKey:   "COVEN_PLUGIN",
	MagicCookieValue: "coven.plugin.v1",
}

// Served is an implementation of one contract, ready for Serve.
type Served struct {
	kind     Kind
	register func(s *grpc.Server, broker *goplugin.GRPCBroker)
}

// Provider serves impl as a provider plugin.
func Provider(impl provider.Provider) Served {
	return Served{KindProvider, func(s *grpc.Server, _ *goplugin.GRPCBroker) { wire.RegisterProvider(s, impl) }}
}

// Model serves impl as a model plugin.
func Model(impl model.Model) Served {
	return Served{KindModel, func(s *grpc.Server, _ *goplugin.GRPCBroker) { wire.RegisterModel(s, impl) }}
}

// Reviewer serves impl as a reviewer plugin.
func Reviewer(impl reviewer.Reviewer) Served {
	return Served{KindReviewer, func(s *grpc.Server, broker *goplugin.GRPCBroker) {
		wire.RegisterReviewer(s, impl, wire.NewLink(broker))
	}}
}

// Arbiter serves impl as an arbiter plugin.
func Arbiter(impl arbiter.Arbiter) Served {
	return Served{KindArbiter, func(s *grpc.Server, broker *goplugin.GRPCBroker) {
		wire.RegisterArbiter(s, impl, wire.NewLink(broker))
	}}
}

// Serve answers coven until coven hangs up. It is the body of a plugin's main.
func Serve(s Served) {
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig:  handshake,
		VersionedPlugins: map[int]goplugin.PluginSet{protocolVersion: {string(s.kind): &served{register: s.register}}},
		Logger:           hclog.New(&hclog.LoggerOptions{Output: io.Discard}),
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(opts, grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage))...)
		},
	})
}

// served is the plugin's side of go-plugin.
type served struct {
	goplugin.NetRPCUnsupportedPlugin
	register func(s *grpc.Server, broker *goplugin.GRPCBroker)
}

// GRPCServer implements goplugin.GRPCPlugin.
func (p *served) GRPCServer(broker *goplugin.GRPCBroker, s *grpc.Server) error {
	p.register(s, broker)
	return nil
}

// GRPCClient implements goplugin.GRPCPlugin.
func (p *served) GRPCClient(context.Context, *goplugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	panic("a plugin is no client of itself")
}
