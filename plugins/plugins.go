// Package plugins is both ends of coven's plugins: Serve, which is all that a
// plugin's main calls, and Host, which starts plugin processes and speaks to
// them.
//
// A plugin is a program of its own, so a crash, a leak or a hang in it cannot
// take coven along. The contracts are in the packages beside this one, one per
// kind; they travel as protobuf over gRPC (hashicorp/go-plugin).
package plugins

import (
	"io"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/coven-run/coven/plugins/provider"
)

// protocolVersion is the version of the contracts that this code speaks.
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
	kind   string
	plugin goplugin.Plugin
}

// Provider serves impl as a provider plugin.
func Provider(impl provider.Provider) Served {
	return Served{kind: kindProvider, plugin: &provider.Plugin{Impl: impl}}
}

const kindProvider = "provider"

// Serve answers coven until coven hangs up. It is the body of a plugin's main.
func Serve(s Served) {
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig:  handshake,
		VersionedPlugins: map[int]goplugin.PluginSet{protocolVersion: {s.kind: s.plugin}},
		Logger:           hclog.New(&hclog.LoggerOptions{Output: io.Discard}),
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(opts, grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage))...)
		},
	})
}
