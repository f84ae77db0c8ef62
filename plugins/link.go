package plugins

import (
	"context"
	"errors"
	"sync"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/coven-run/coven/plugins/internal/wire"
)

// link is the host side of go-plugin. It offers coven's services to a process.
type link struct {
	goplugin.NetRPCUnsupportedPlugin
	services *wire.ServiceServer    // nil for kinds of plugins without services
	config   *goplugin.ClientConfig // TLSConfig is complete when GRPCClient is called

	once    sync.Once
	running context.Context // done when the process exits
	broker  *goplugin.GRPCBroker
}

// GRPCServer implements goplugin.GRPCPlugin.
func (l *link) GRPCServer(*goplugin.GRPCBroker, *grpc.Server) error {
	return errors.New("the host serves no plugin")
}

// GRPCClient implements goplugin.GRPCPlugin. ctx is done when the process exits.
func (l *link) GRPCClient(ctx context.Context, broker *goplugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	l.running, l.broker = ctx, broker
	return conn, nil
}

// serveServices offers the services once. It runs with the first call of the process, because an offer
// expires after a few seconds.
func (l *link) serveServices() {
	if l.services != nil {
		l.once.Do(func() { go l.services.Serve(l.running, l.broker, l.config.TLSConfig) })
	}
}

const (
	brokerStream = "/plugin.GRPCBroker/StartStream"
	// maxOffers is the number of services that a plugin may offer on its broker, and maxOffer the size
	// limit of an offer in bytes. coven does not use these services.
	maxOffers = 1000
	maxOffer  = 64 << 10
)

// boundBroker hides the plugin's broker messages from go-plugin, which would store each of them for a
// while. Otherwise a plugin could exhaust coven's memory.
func boundBroker(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if method != brokerStream {
		return open(ctx, desc, conn, method, opts...)
	}
	stream, err := open(ctx, desc, conn, method, append(opts, grpc.MaxCallRecvMsgSize(maxOffer))...)
	if err != nil {
		return nil, err
	}
	return discardStream{stream}, nil
}

// discardStream discards all received messages.
type discardStream struct{ grpc.ClientStream }

// RecvMsg implements grpc.ClientStream. It returns only when receiving fails or the plugin sends too many
// messages.
func (d discardStream) RecvMsg(message any) error {
	for range maxOffers {
		if err := d.ClientStream.RecvMsg(message); err != nil {
			return err
		}
	}
	return errors.New("too many messages on the plugin's broker")
}
