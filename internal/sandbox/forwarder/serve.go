package forwarder

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"time"
)

// refusal is an error response of the forwarder itself.
type refusal struct {
	status  int
	kind    string // error type of the API
	message string
}

func (r refusal) Error() string { return r.message }

// write sends the refusal in the API's error format.
func (r refusal) write(w http.ResponseWriter) {
	body, err := json.Marshal(map[string]any{
		"type": "error", "error": map[string]string{"type": r.kind, "message": "coven: " + r.message},
	})
	if err != nil {
		body = []byte(`{"type":"error","error":{"type":"api_error","message":"coven"}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(r.status)
	_, _ = w.Write(body) // the client may be gone
}

// ServeHTTP implements http.Handler.
func (f *Forwarder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !f.begin() {
		return
	}
	defer f.requests.Done()
	w = finalWriter{w}
	if err := f.check(r); err != nil {
		// Do not read the rest of the request, which may be arbitrarily long.
		w.Header().Set("Connection", "close")
		err.write(w)
		return
	}
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = &pacedBody{ReadCloser: r.Body, control: http.NewResponseController(w)}
	}
	f.proxy.ServeHTTP(w, r)
}

// check returns the reason for refusing a request, or nil.
func (f *Forwarder) check(r *http.Request) *refusal {
	switch {
	// A page in a browser may reach loopback under another host name.
	case r.URL.IsAbs() || r.URL.Host != "" || r.Host != f.host:
		return &refusal{http.StatusForbidden, "permission_error", "this is not the address of the forwarder"}
	case r.Header.Get("Upgrade") != "":
		return &refusal{http.StatusBadRequest, "invalid_request_error", "the protocol cannot be changed"}
	case !f.authorized(r.Header):
		return &refusal{http.StatusUnauthorized, "authentication_error", "the placeholder of this session is missing or wrong"}
	case !f.login.allows(r):
		return &refusal{http.StatusForbidden, "permission_error", "agents may not call " + r.Method + " " + strconv.Quote(r.URL.Path)}
	}
	return nil
}

// authorized reports whether the request contains the placeholder and no other
// credential.
func (f *Forwarder) authorized(header http.Header) bool {
	given := append([]string{}, header["X-Api-Key"]...)
	for _, value := range header["Authorization"] {
		scheme, token, _ := strings.Cut(value, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return false
		}
		given = append(given, token)
	}
	for _, value := range given {
		hash := sha256.Sum256([]byte(value))
		if subtle.ConstantTimeCompare(hash[:], f.accepted[:]) != 1 {
			return false
		}
	}
	return len(given) > 0
}

// credentialHeaders are request headers that are not forwarded. The sender
// (transport.go) adds the real ones.
var credentialHeaders = []string{"Authorization", "X-Api-Key", "Cookie", "Proxy-Authorization"}

// rewrite sets the request's URL to the API.
func (f *Forwarder) rewrite(r *httputil.ProxyRequest) {
	target := f.login.upstream.JoinPath(r.In.URL.Path)
	target.RawQuery = r.Out.URL.RawQuery
	r.Out.URL, r.Out.Host = target, ""
	for _, name := range credentialHeaders {
		r.Out.Header.Del(name)
	}
}

// unwantedHeaders are response headers that could contain a credential or redirect
// the client.
var unwantedHeaders = []string{
	"Authorization", "X-Api-Key", "Set-Cookie", "Www-Authenticate", "Proxy-Authenticate",
	"Authentication-Info", "Alt-Svc", "Location", "Refresh", "Trailer",
}

// clean removes headers from a response that must not reach the agent.
func (f *Forwarder) clean(resp *http.Response) error {
	switch {
	case resp.StatusCode == http.StatusSwitchingProtocols:
		return refusal{http.StatusBadGateway, "api_error", "the API changed the protocol"}
	case resp.StatusCode/100 == 3 && resp.StatusCode != http.StatusNotModified:
		return refusal{http.StatusBadGateway, "api_error", "the API redirected the request; check ANTHROPIC_BASE_URL"}
	}
	for _, name := range unwantedHeaders {
		resp.Header.Del(name)
	}
	secrets := f.secrets(resp.Request.Header)
	for name, values := range resp.Header {
		if containsAny(values, secrets) {
			resp.Header.Del(name)
		}
	}
	return nil
}

// shortSecret is the minimum length of a custom header value that is treated as a credential.
const shortSecret = 8

// secrets returns the credentials in the headers of a request to the API.
func (f *Forwarder) secrets(header http.Header) []string {
	var secrets []string
	for _, name := range credentialHeaders {
		for _, value := range header[name] {
			secrets = append(secrets, strings.TrimPrefix(value, "Bearer "))
		}
	}
	for _, values := range f.login.further.header {
		for _, value := range values {
			if len(value) >= shortSecret {
				secrets = append(secrets, value)
			}
		}
	}
	return secrets
}

func containsAny(values, parts []string) bool {
	for _, value := range values {
		for _, part := range parts {
			if part != "" && strings.Contains(value, part) {
				return true
			}
		}
	}
	return false
}

// fail answers a request that could not be forwarded. It sends only error texts from coven
// itself.
func (f *Forwarder) fail(w http.ResponseWriter, r *http.Request, err error) {
	var known refusal
	var lost *loginError
	switch {
	case errors.As(err, &known):
	case errors.As(err, &lost):
		known = lost.refusal()
	case errors.Is(err, ErrNoLogin):
		known = (&loginError{text: ErrNoLogin.Error()}).refusal()
	case r.Context().Err() != nil || errors.Is(err, context.Canceled):
		panic(http.ErrAbortHandler) // the client is gone
	default:
		known = refusal{http.StatusBadGateway, "api_error", "cannot reach " + f.login.upstream.Host}
	}
	known.write(w)
}

// finalWriter drops informational responses (1xx), because clean does not process their headers.
type finalWriter struct{ http.ResponseWriter }

func (w finalWriter) WriteHeader(status int) {
	if status >= http.StatusOK {
		w.ResponseWriter.WriteHeader(status)
	}
}

// Unwrap makes the methods of the writer available to http.ResponseController.
func (w finalWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// pacedBody is the body of a request with a limited time between reads.
//
// After its end it repeats the last error: the transport reads once more to check whether the body is
// longer than announced. By then net/http may have closed the body, because the response has
// started, and the transport would treat that error as a failed request and cut off the response.
type pacedBody struct {
	io.ReadCloser
	control *http.ResponseController
	ended   error
}

func (b *pacedBody) Read(p []byte) (int, error) {
	if b.ended != nil {
		return 0, b.ended
	}
	_ = b.control.SetReadDeadline(time.Now().Add(bodyPause)) // without deadlines there is no time limit
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		_ = b.control.SetReadDeadline(time.Time{})
		b.ended = err
	}
	return n, err
}
