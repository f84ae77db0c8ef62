package plugins

import (
	"context"
	"errors"
	"sync"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/coven-run/coven/plugins/internal/wire"
)

// link is coven's side of go-plugin, and offers coven's services to a process.
type link struct {
	goplugin.NetRPCUnsupportedPlugin
	services *wire.ServiceServer    // nil: of no kind that has services
	config   *goplugin.ClientConfig // its TLSConfig is whole when GRPCClient is called

	once    sync.Once
	running context.Context // ends with the process
	broker  *goplugin.GRPCBroker
}

// GRPCServer implements goplugin.GRPCPlugin.
func (l *link) GRPCServer(*goplugin.GRPCBroker, *grpc.Server) error {
	return errors.New("coven is no plugin of itself")
}

// GRPCClient implements goplugin.GRPCPlugin. ctx ends with the process.
func (l *link) GRPCClient(ctx context.Context, broker *goplugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	l.running, l.broker = ctx, broker
	return conn, nil
}

// serveServices offers the services, once: when the process is called for the first time,
// since an offer does not keep, and a connection for it takes as long as that for
// the calls.
func (l *link) serveServices() {
	if l.services != nil {
		l.once.Do(func() { go l.services.Serve(l.running, l.broker, l.config.TLSConfig) })
	}
}

const (
	brokerStream = "/plugin.GRPCBroker/StartStream"
	// mostOffers is how many services a plugin may offer on its broker, and
	// mostOffer how many bytes an offer may have. coven asks for none of them.
	maxOffers = 1000
	maxOffer  = 64 << 10
)

// boundBroker keeps what a plugin sends on its broker from go-plugin, which would
// keep each for a while: a plugin could flood coven with them.
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

// discardStream is a stream of which nothing is heard.
type discardStream struct{ grpc.ClientStream }

// RecvMsg implements grpc.ClientStream: it returns only an error.
func (d discardStream) RecvMsg(message any) error {
	for range maxOffers {
		if err := d.ClientStream.RecvMsg(message); err != nil {
			return err
		}
	}
	return errors.New("the plugin floods its broker")
}
