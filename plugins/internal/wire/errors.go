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

// sentinels maps status codes to sentinel errors.
func sentinels() map[codes.Code]error {
	return map[codes.Code]error{
		codes.Unimplemented:      pluginerr.ErrUnsupported,
		codes.InvalidArgument:    pluginerr.ErrInvalid,
		codes.ResourceExhausted:  pluginerr.ErrTooLarge,
		codes.Aborted:            pluginerr.ErrTransient,
		codes.Unauthenticated:    pluginerr.ErrLogin,
		codes.OutOfRange:         pluginerr.ErrModel,
		codes.FailedPrecondition: pluginerr.ErrAccount,
		codes.Unavailable:        pluginerr.ErrGone,
		codes.DeadlineExceeded:   context.DeadlineExceeded,
		codes.Canceled:           context.Canceled,
		codes.NotFound:           fs.ErrNotExist,
		codes.PermissionDenied:   fs.ErrPermission,
	}
}

// toWire converts err to a gRPC status with the code of its sentinel.
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

// remoteError is an error of the other side. It wraps its sentinel.
type remoteError struct {
	text     string
	sentinel error
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.sentinel }

// maxErrorText is the size limit of the other side's message, in bytes.
const maxErrorText = 4 << 10

// fromWire converts the gRPC error of a call. If ctx is done, it returns the cause of
// ctx.
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
	case s.Code() == codes.Unavailable: // the message comes from gRPC and describes the connection
		return fmt.Errorf("%w (%s)", sentinel, text)
	}
	return &remoteError{text: text, sentinel: sentinel}
}

// clockSkew allows for the clock of the other side, which may end a call shortly before
// the deadline.
const clockSkew = time.Second

// contextCause returns the cause of ctx if it is done. If the other side observed the deadline first, it
// waits for ctx.
func contextCause(ctx context.Context, code codes.Code) error {
	if code == codes.Canceled || code == codes.DeadlineExceeded {
		if end, ok := ctx.Deadline(); ok && time.Until(end) < clockSkew {
			<-ctx.Done()
		}
	}
	return context.Cause(ctx)
}
