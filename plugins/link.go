package plugins

import (
	"context"
	"errors"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/coven-run/coven/plugins/internal/wire"
)

// link is coven's side of go-plugin, and offers coven's services to a process.
type link struct {
	goplugin.NetRPCUnsupportedPlugin
	desk   *wire.Desk
	config *goplugin.ClientConfig // its TLSConfig is there when GRPCClient is called
}

// GRPCServer implements goplugin.GRPCPlugin.
func (l *link) GRPCServer(*goplugin.GRPCBroker, *grpc.Server) error {
	return errors.New("coven is no plugin of itself")
}

// GRPCClient implements goplugin.GRPCPlugin. ctx ends with the process.
func (l *link) GRPCClient(ctx context.Context, broker *goplugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	go l.desk.Serve(ctx, broker, l.config.TLSConfig)
	return conn, nil
}

const (
	brokerStream = "/plugin.GRPCBroker/StartStream"
	// mostOffers is how many services a plugin may offer on its broker, and
	// mostOffer how many bytes an offer may have. coven asks for none of them.
	mostOffers = 1000
	mostOffer  = 64 << 10
)

// boundBroker keeps what a plugin sends on its broker from go-plugin, which would
// keep each for a while: a plugin could flood coven with them.
func boundBroker(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if method != brokerStream {
		return open(ctx, desc, conn, method, opts...)
	}
	stream, err := open(ctx, desc, conn, method, append(opts, grpc.MaxCallRecvMsgSize(mostOffer))...)
	if err != nil {
		return nil, err
	}
	return deaf{stream}, nil
}

// deaf is a stream of which nothing is heard.
type deaf struct{ grpc.ClientStream }

// RecvMsg implements grpc.ClientStream: it returns only an error.
func (d deaf) RecvMsg(message any) error {
	for range mostOffers {
		if err := d.ClientStream.RecvMsg(message); err != nil {
			return err
		}
	}
	return errors.New("the plugin floods its broker")
}
