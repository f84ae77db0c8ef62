package provider

import (
	"context"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	pluginv1 "github.com/coven-run/coven/plugins/internal/proto/coven/plugin/v1"
)

// Plugin puts a Provider on the wire. Impl is set on the plugin's side only.
type Plugin struct {
	goplugin.NetRPCUnsupportedPlugin
	Impl Provider
}

// GRPCServer serves Impl.
func (p *Plugin) GRPCServer(_ *goplugin.GRPCBroker, s *grpc.Server) error {
	pluginv1.RegisterProviderServer(s, &server{impl: p.Impl})
	return nil
}

// GRPCClient returns a Provider that speaks to the other side.
func (p *Plugin) GRPCClient(_ context.Context, _ *goplugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return &client{rpc: pluginv1.NewProviderClient(conn)}, nil
}
