// Package fault is the former name of package pluginerr. It is kept for one
// release.
//
// Deprecated: use pluginerr.
package fault

import "github.com/coven-run/coven/plugins/pluginerr"

// The sentinels of package pluginerr. They are the same values: errors.Is finds
// them under either name.
//
// Deprecated: use pluginerr.
var (
	ErrUnsupported = pluginerr.ErrUnsupported
	ErrInvalid     = pluginerr.ErrInvalid
	ErrTooLarge    = pluginerr.ErrTooLarge
	ErrGone        = pluginerr.ErrGone
)
