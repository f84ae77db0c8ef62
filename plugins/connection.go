package plugins

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/coven-run/coven/plugins/pluginerr"
)

// A member is the connection that package wire speaks through: each call goes to
// the process that lives then, and what gRPC says of a broken one becomes what
// happened to the plugin.
//
// A call whose ctx ends returns at once, or when what coven does for it has ended.
// The plugin is told, and may go on all the same; that is left to it, since gRPC
// has no word for "I have stopped", others use the same process, and nothing of
// what it does is heard any more: the token of the call is void.

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

// explainedStream is a stream whose errors say what happened to the plugin.
type explainedStream struct {
	grpc.ClientStream
	call     context.Context // of the caller: the stream's own ends with the stream
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

// explain says what err of a call means; an error that is the plugin's own, or
// that of ctx, is left as it is.
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

// missingMethod says that the plugin lacks a method of its contract, in the words of
// gRPC in Go or in any other language; nil: it has it, and says err itself.
func (i *instance) missingMethod(err error) error {
	if text := status.Convert(err).Message(); !strings.HasPrefix(text, "unknown method ") && text != "Method not found!" {
		return i.wrongKind(err)
	}
	return fmt.Errorf("it does not serve all of %s (is it a plugin of another kind?): %w", i.service, pluginerr.ErrUnsupported)
}

// checkTime is how long a plugin may take to show, after a call was cut off, that
// it lives, and how long to end when it cannot be reached.
const checkTime = 5 * time.Second

// exitOf says what became of the process after a call was cut off; nil: it lives,
// and that is its own answer.
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

// reachable says whether the process still takes calls, be it that it does not
// answer them at once.
func (i *instance) reachable(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	code := status.Code(i.ping(ctx))
	return code != codes.Unavailable && (code != codes.Canceled || ctx.Err() != nil) // Canceled: the connection is closed
}

// messageSizes are the words of gRPC about a message that this side does not send or take.
var messageSizes = regexp.MustCompile(`^(?:grpc: )?(trying to send|received) message larger than max \((\d+) vs\. (\d+)\)`)

// tooLarge says which message err found too large; nil: one of the plugin's.
func tooLarge(err error) error {
	found := messageSizes.FindStringSubmatch(status.Convert(err).Message())
	if found == nil {
		return nil
	}
	what := "its answer"
	if found[1] != "received" {
		what = "what it is asked"
	}
	return fmt.Errorf("%s has %s bytes, at most %s are taken: %w", what, found[2], found[3], pluginerr.ErrTooLarge)
}
