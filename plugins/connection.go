package plugins

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/plugins/pluginerr"
)

// A plugin implements grpc.ClientConnInterface for package wire. Each call goes to the current process. If
// the connection breaks, the error describes how the process ended.
//
// When its context is done, a call returns as soon as coven's services for it have returned. The plugin is
// notified but may keep working: gRPC cannot confirm that a handler has stopped, and killing the process
// would break other calls. Its remaining work has no effect, because the token of the call is no longer
// valid.

// Invoke implements grpc.ClientConnInterface.
func (p *plugin) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	i, err := p.get(ctx)
	if err != nil {
		return err
	}
	i.link.serveServices()
	i.calls.Add(1)
	defer i.calls.Add(-1)
	if err := i.conn.Invoke(ctx, method, args, reply, opts...); err != nil {
		return p.explain(ctx, i, err)
	}
	i.answered.Store(true)
	return nil
}

// NewStream implements grpc.ClientConnInterface.
func (p *plugin) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	i, err := p.get(ctx)
	if err != nil {
		return nil, err
	}
	stream, err := i.conn.NewStream(ctx, desc, method, opts...)
	if err != nil {
		return nil, p.explain(ctx, i, err)
	}
	i.calls.Add(1)
	context.AfterFunc(stream.Context(), func() { i.calls.Add(-1) })
	return &explainedStream{stream, ctx, p, i}, nil
}

// explainedStream is a stream whose errors are translated by explain.
type explainedStream struct {
	grpc.ClientStream
	call     context.Context // of the caller; the stream's own context ends with the stream
	plugin   *plugin
	instance *instance
}

// SendMsg implements grpc.ClientStream.
func (s *explainedStream) SendMsg(message any) error {
	return s.plugin.explain(s.call, s.instance, s.ClientStream.SendMsg(message))
}

// RecvMsg implements grpc.ClientStream.
func (s *explainedStream) RecvMsg(message any) error {
	err := s.ClientStream.RecvMsg(message)
	if errors.Is(err, io.EOF) {
		s.instance.answered.Store(true)
	}
	return s.plugin.explain(s.call, s.instance, err)
}

// explain translates the gRPC error of a call into a description of the plugin's failure. It returns the
// plugin's own errors unchanged, and every error once ctx is done.
func (p *plugin) explain(ctx context.Context, i *instance, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	means := error(nil)
	switch status.Code(err) {
	case codes.Unavailable, codes.Canceled:
		means = i.exitOf(ctx)
	case codes.Unimplemented:
		means = i.missingMethod(err)
	case codes.ResourceExhausted:
		means = tooLarge(err)
	}
	if means == nil {
		return err
	}
	return fmt.Errorf("%s: %w", p, means)
}

// missingMethod returns an error if the gRPC status err shows that the plugin lacks a method or the whole
// contract. It recognizes the messages of gRPC in Go and in other languages.
func (i *instance) missingMethod(err error) error {
	if text := status.Convert(err).Message(); !strings.HasPrefix(text, "unknown method ") && text != "Method not found!" {
		return i.wrongKind(err)
	}
	return fmt.Errorf("does not serve all of %s (is it a plugin of another kind?): %w", i.service, pluginerr.ErrUnsupported)
}

// checkTime limits the wait, after a call was cut off, for the answer to a ping and for the exit of an
// unreachable process.
const checkTime = 5 * time.Second

// exitOf returns how the process exited after a call was cut off. It returns nil if the process is alive,
// which means that the plugin returned the error itself.
func (i *instance) exitOf(ctx context.Context) error {
	if !i.process.gone() && i.reachable(ctx) {
		return nil
	}
	select {
	case <-i.process.done:
	case <-time.After(checkTime):
		i.process.kill(errUnreachable)
	case <-ctx.Done():
	}
	select {
	case <-i.process.done:
		return i.process.exitError()
	case <-ctx.Done():
		return nil
	}
}

// reachable reports whether the process still accepts calls, even if it answers slowly.
func (i *instance) reachable(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	code := status.Code(i.ping(ctx))
	return code != codes.Unavailable && (code != codes.Canceled || ctx.Err() != nil) // Canceled: closed connection
}

// messageSizes matches gRPC's error for a message that exceeds the limit of this side.
var messageSizes = lazyregexp.New(`^(?:grpc: )?(trying to send|received) message larger than max \((\d+) vs\. (\d+)\)`)

// tooLarge returns an error that names the message that was too large. It returns nil if the plugin's own
// limit was exceeded.
func tooLarge(err error) error {
	found := messageSizes.FindStringSubmatch(status.Convert(err).Message())
	if found == nil {
		return nil
	}
	what := "the answer"
	if found[1] != "received" {
		what = "the request"
	}
	return fmt.Errorf("%s has %s bytes, the limit is %s: %w", what, found[2], found[3], pluginerr.ErrTooLarge)
}
