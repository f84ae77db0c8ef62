// Package pluginerr holds the errors that cross the wire between coven and its
// plugins: each is a Go sentinel on both sides and a gRPC status code between.
//
// A plugin returns one of them, wrapped in words (fmt.Errorf("...: %w",
// pluginerr.ErrUnsupported)), and coven finds it with errors.Is; the same holds for what
// a plugin is told by coven's services. Any other error arrives as its words.
package pluginerr

import "errors"

// The sentinels. Beside them context.DeadlineExceeded, context.Canceled,
// fs.ErrNotExist and fs.ErrPermission keep their meaning across the wire.
var (
	// ErrUnsupported says that the other side cannot do this at all.
	ErrUnsupported = errors.New("not supported")
	// ErrInvalid says that what was sent is not what the contract allows.
	ErrInvalid = errors.New("not valid")
	// ErrTooLarge says that a message is larger than its bound.
	ErrTooLarge = errors.New("too large")
	// ErrGone says that the other side's process has ended, or cannot be reached.
	ErrGone = errors.New("the process has gone")
)
