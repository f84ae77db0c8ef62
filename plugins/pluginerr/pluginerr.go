// Package pluginerr defines the errors that coven and its plugins exchange. Each is a
// Go sentinel on both sides and a gRPC status code on the wire.
//
// A plugin wraps one of them with fmt.Errorf and %w, and coven recognizes it with errors.Is. The same holds
// for errors that coven's services return to a plugin. All other errors arrive as plain text.
package pluginerr

import "errors"

// The sentinels. In addition, context.DeadlineExceeded, context.Canceled,
// fs.ErrNotExist and fs.ErrPermission keep their meaning across the wire.
var (
	// ErrUnsupported means that the other side does not implement the operation.
	ErrUnsupported = errors.New("not supported")
	// ErrInvalid means that a message violates the contract.
	ErrInvalid = errors.New("not valid")
	// ErrTooLarge means that a message exceeds its size limit.
	ErrTooLarge = errors.New("too large")
	// ErrTransient means that the same call may succeed soon: a server failed, or a
	// connection broke.
	ErrTransient = errors.New("failed for now")
	// ErrLogin means that a server refuses the user's credential, or that the credential is missing.
	ErrLogin = errors.New("login refused")
	// ErrModel means that a server has no such model.
	ErrModel = errors.New("no such model")
	// ErrAccount means that a server refuses the user's account, for example because it has no credit.
	ErrAccount = errors.New("account refused")
	// ErrGone means that the other side's process has exited or cannot be reached.
	ErrGone = errors.New("process is gone")
)
