package wire

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/coven-run/coven/plugins/pluginerr"
)

// sentinels are the sentinels and their codes.
func sentinels() map[codes.Code]error {
	return map[codes.Code]error{
		codes.Unimplemented:     pluginerr.ErrUnsupported,
		codes.InvalidArgument:   pluginerr.ErrInvalid,
		codes.ResourceExhausted: pluginerr.ErrTooLarge,
		codes.Unavailable:       pluginerr.ErrGone,
		codes.DeadlineExceeded:  context.DeadlineExceeded,
		codes.Canceled:          context.Canceled,
		codes.NotFound:          fs.ErrNotExist,
		codes.PermissionDenied:  fs.ErrPermission,
	}
}

// toWire is what a server returns for err: the code of the sentinel that it
// wraps, and its words.
func toWire(err error) error {
	if err == nil {
		return nil
	}
	for code, sentinel := range sentinels() {
		if errors.Is(err, sentinel) {
			return status.Error(code, err.Error())
		}
	}
	return status.Error(codes.Unknown, err.Error())
}

// remoteError is an error of the other side: its words and what it is.
type remoteError struct {
	text     string
	sentinel error
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.sentinel }

// maxErrorText bounds, in bytes, what the other side's error may say.
const maxErrorText = 4 << 10

// fromWire is what a client returns for err of a call in ctx. When ctx is done,
// its cause is why.
func fromWire(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if cause := contextCause(ctx, status.Code(err)); cause != nil {
		return cause
	}
	s, ok := status.FromError(err)
	if !ok {
		return err
	}
	text := s.Message()
	if len(text) > maxErrorText {
		text = text[:maxErrorText] + "..."
	}
	sentinel, known := sentinels()[s.Code()]
	switch {
	case !known:
		return errors.New(text)
	case s.Code() == codes.Unavailable: // the words are those of gRPC: sockets and connections
		return fmt.Errorf("%w (%s)", sentinel, text)
	}
	return &remoteError{text: text, sentinel: sentinel}
}

// clockSkew is how long before its end a context counts as over for the other side,
// which has a clock of its own and may be the first to end the call.
const clockSkew = time.Second

// contextCause is the cause of a context that is done, or was for the other side.
func contextCause(ctx context.Context, code codes.Code) error {
	if code == codes.Canceled || code == codes.DeadlineExceeded {
		if end, ok := ctx.Deadline(); ok && time.Until(end) < clockSkew {
			<-ctx.Done()
		}
	}
	return context.Cause(ctx)
}
