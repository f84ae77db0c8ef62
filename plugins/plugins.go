// Package plugins implements both sides of coven's plugin system: Serve, which the main function of a
// plugin calls, and Host, which starts plugin processes and calls them.
//
// A plugin is a separate program, so that a crash, a leak or a hang cannot affect coven. The contracts are
// in subpackages, one per kind. They are transported as protobuf over gRPC (hashicorp/go-plugin).
//
// The host guarantees the following. The plugins in examples/plugins/zoo try to break each guarantee:
//   - HostOptions.Start starts a plugin and contains its process tree. The
//     environment holds only HostOptions.Env and the variables of go-plugin;
//     standard input is empty. Both sides authenticate with TLS, unless the plugin
//     is built into coven. The sockets are in a private directory.
//   - All output is read, and its end is stored to explain a crash. Answers have a
//     size limit.
//   - A call ends with its context, even if the plugin ignores it, and never delays
//     other plugins. Later output of that call is ignored.
//   - A plugin that crashes or hangs is restarted once, and again if it has answered
//     a call since. Close leaves no process and no file behind.
package plugins

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/forge"
	"github.com/coven-run/coven/plugins/internal/wire"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/provider"
	"github.com/coven-run/coven/plugins/reviewer"
)

// Kind is the kind of a plugin.
type Kind string

// The kinds, one contract each.
const (
	KindProvider Kind = "provider"
	KindModel    Kind = "model"
	KindReviewer Kind = "reviewer"
	KindArbiter  Kind = "arbiter"
	KindForge    Kind = "forge"
)

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{KindProvider, KindModel, KindReviewer, KindArbiter, KindForge} }

// withArticle returns the kind with its article: a reviewer, an arbiter.
func (k Kind) withArticle() string {
	if k == KindArbiter {
		return "an " + string(k)
	}
	return "a " + string(k)
}

// loopSuffix ends the names of providers whose agents run in coven's agent loop.
const loopSuffix = "-loop"

// LoopModel returns the model plugin of a provider whose agents run in coven's agent loop: the provider
// NAME-loop uses the model plugin NAME.
func LoopModel(provider string) (model string, ok bool) {
	model, ok = strings.CutSuffix(provider, loopSuffix)
	return model, ok && model != ""
}

// LoopOf returns the provider whose agents run in coven's agent loop on a model plugin.
func LoopOf(model string) (provider string) { return model + loopSuffix }

// NeedOf returns the plugin that agents of a provider need.
func NeedOf(provider string) Need {
	if model, ok := LoopModel(provider); ok {
		return Need{KindModel, model}
	}
	return Need{KindProvider, provider}
}

// protocolVersion is the version of the contracts that this code implements. Both sides offer their
// supported versions and use the highest common one.
const protocolVersion = 1

// maxMessage is the size limit of a message in either direction, in bytes. A line of an agent's output can
// hold a whole file.
const maxMessage = 64 << 20

// handshakeConfig defines the variable with which coven starts a plugin, so that a plugin detects a start
// by a user.
var handshakeConfig = goplugin.HandshakeConfig{
	MagicCookieKey:   "COVEN_PLUGIN",
	MagicCookieValue: "coven.plugin.v1",
}

// Served is an implementation of a contract, for Serve.
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

// Forge serves impl as a forge plugin.
func Forge(impl forge.Forge) Served {
	return Served{KindForge, func(s *grpc.Server, _ *goplugin.GRPCBroker) { wire.RegisterForge(s, impl) }}
}

// Serve handles calls until the host closes the connection. A plugin's main function consists of this call.
// If the user instead of coven started the plugin, Serve prints an explanation and exits with code 2.
func Serve(s Served) {
	if os.Getenv(handshakeConfig.MagicCookieKey) != handshakeConfig.MagicCookieValue {
		fmt.Fprintf(os.Stderr, "This is %s plugin for coven, which starts it when needed; to install it, see: coven help plugins\n", s.kind.withArticle())
		os.Exit(exit.Usage)
	}
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig:  handshakeConfig,
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
	panic("a plugin does not call itself")
}
