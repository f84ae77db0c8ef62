package forwarder

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"sync/atomic"
)

// Limits of bodies that are buffered to be sent again with another credential. The API
// accepts 32 MB. A larger body is streamed; if the API refuses the credential,
// the CLI repeats the request.
const (
	maxKept      = 32 << 20 // bytes of one body
	maxKeptTotal = 96 << 20 // bytes of all bodies of a forwarder
)

// credential is the credential of an API request. At least one of the fields is set.
type credential struct {
	key    string // X-Api-Key
	bearer string // Authorization: Bearer
}

// source provides credentials.
type source interface {
	// current returns the current credential. It refreshes a credential that is about to expire.
	current(ctx context.Context) (credential, error)
	// after returns another credential after the API has refused one. ok is false if
	// there is no other.
	after(ctx context.Context, refused credential) (next credential, ok bool)
	// renewable reports whether after can return a credential.
	renewable() bool
}

// fixed is a credential that does not change.
type fixed struct{ credential credential }

func (f *fixed) current(context.Context) (credential, error)                  { return f.credential, nil }
func (f *fixed) after(context.Context, credential) (next credential, ok bool) { return next, false }
func (f *fixed) renewable() bool                                              { return false }

// sender adds the credential to requests. If a credential is refused and there is another
// one, it sends the request again.
type sender struct {
	login *Login
	kept  *atomic.Int64 // bytes
}

func newSender(login *Login) *sender { return &sender{login, new(atomic.Int64)} }

// RoundTrip implements http.RoundTripper.
func (s *sender) RoundTrip(req *http.Request) (*http.Response, error) {
	// Read the body first: net/http detects a disconnected client only after that.
	body, release, err := s.keep(req)
	if err != nil {
		return nil, err
	}
	defer release()
	used, err := s.login.source.current(req.Context())
	if err != nil {
		return nil, err
	}
	resp, err := s.send(req, used)
	if err != nil || resp.StatusCode != http.StatusUnauthorized || body == nil {
		return resp, err
	}
	next, ok := s.login.source.after(req.Context(), used)
	if !ok {
		return resp, nil
	}
	_ = resp.Body.Close()
	req = req.Clone(req.Context())
	req.Body = io.NopCloser(bytes.NewReader(body))
	return s.send(req, next)
}

// send sends a request with a credential.
func (s *sender) send(req *http.Request, used credential) (*http.Response, error) {
	req = req.Clone(req.Context())
	if used.key != "" {
		req.Header.Set("X-Api-Key", used.key)
	}
	if used.bearer != "" {
		req.Header.Set("Authorization", "Bearer "+used.bearer)
	}
	maps.Copy(req.Header, s.login.further.header)
	resp, err := s.login.transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	// The transport adds unfiltered trailers to its own response value, so return a copy.
	out := *resp
	out.Trailer = nil
	return &out, nil
}

// keep reads the body of a request if it may have to be sent again and is within the
// limits. Otherwise body is nil.
func (s *sender) keep(req *http.Request) (body []byte, release func(), err error) {
	release = func() {}
	if !s.login.source.renewable() {
		return nil, release, nil
	}
	if req.Body == nil || req.Body == http.NoBody {
		return []byte{}, release, nil
	}
	size := req.ContentLength
	if size < 0 {
		size = maxKept
	}
	if size > maxKept || s.kept.Add(size) > maxKeptTotal {
		if size <= maxKept {
			s.kept.Add(-size)
		}
		return nil, release, nil
	}
	release = func() { s.kept.Add(-size) }
	body, err = io.ReadAll(io.LimitReader(req.Body, size))
	if err != nil {
		release()
		return nil, nil, refusal{http.StatusBadRequest, "invalid_request_error", "the request ended early"}
	}
	if req.ContentLength < 0 && len(body) == maxKept { // there may be more
		req.Body = readCloser{io.MultiReader(bytes.NewReader(body), req.Body), req.Body}
		return nil, release, nil
	}
	req.Body = readCloser{bytes.NewReader(body), req.Body}
	return body, release, nil
}

// readCloser combines a reader and a closer.
type readCloser struct {
	io.Reader
	io.Closer
}
