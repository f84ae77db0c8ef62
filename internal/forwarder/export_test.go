package forwarder

import (
	"io"
	"net/http"
	"time"
)

// SetTokenEndpoint makes a login refresh itself elsewhere.
func SetTokenEndpoint(l *Login, url string) { l.source.(*oauth).endpoint = url }

// SetPatience sets how long a login waits for the token endpoint, and after a failure.
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

// RetryNow makes a login forget when it failed.
func RetryNow(l *Login) {
	o := l.source.(*oauth)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.paused = time.Time{}
}

// NewPacedBody returns the body of a request to a forwarder.
func NewPacedBody(body io.ReadCloser, w http.ResponseWriter) io.Reader {
	return &pacedBody{ReadCloser: body, control: http.NewResponseController(w)}
}

// ErrInvalidGrant means that the login has to be made again.
var ErrInvalidGrant error = errInvalidGrant

// TryLock takes a lock that is a directory.
func TryLock(path string) (held func() bool, release func(), err error) {
	lock, err := tryLock(path, time.Hour)
	if err != nil {
		return nil, nil, err
	}
	return lock.held, lock.release, nil
}
