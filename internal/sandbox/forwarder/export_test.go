package forwarder

import (
	"io"
	"net/http"
	"time"
)

// SetTokenEndpoint sets the endpoint for refreshes of a login.
func SetTokenEndpoint(l *Login, url string) { l.source.(*oauth).endpoint = url }

// SetPatience sets a login's time limit for the token endpoint, and its pause after a failure.
func SetPatience(l *Login, patience, pause time.Duration) {
	o := l.source.(*oauth)
	o.patience, o.pause = patience, pause
}

// MaxConnections and MaxKept are limits.
const (
	MaxConnections = maxConnections
	MaxKept        = maxKept
	HeaderTimeout  = headerTimeout
)

// RetryNow ends a login's pause after a failure.
func RetryNow(l *Login) {
	o := l.source.(*oauth)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.paused = time.Time{}
}

// NewPacedBody returns a request body as used by a forwarder.
func NewPacedBody(body io.ReadCloser, w http.ResponseWriter) io.Reader {
	return &pacedBody{ReadCloser: body, control: http.NewResponseController(w)}
}

// ErrInvalidGrant means that the user must log in again.
var ErrInvalidGrant error = errInvalidGrant

// TryLock acquires a directory lock.
func TryLock(path string) (held func() bool, release func(), err error) {
	lock, err := tryLock(path, time.Hour)
	if err != nil {
		return nil, nil, err
	}
	return lock.held, lock.release, nil
}
