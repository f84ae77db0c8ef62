// Package forwarder lets an agent use a model API without access to its credential.
//
// A forwarder is an HTTP server on loopback, one per agent run. The agent's CLI gets the
// forwarder's address and a placeholder instead of the credential (Env). The forwarder
// removes the placeholder from each request, adds the credential, and sends the request
// to the API. Find finds the credential like the CLI does; it never leaves this process.
//
// Rules:
//
//   - A request must be addressed to the forwarder, contain its placeholder,
//     and be one of the few kinds that a CLI needs (see claude.go). Any other request
//     gets an error in the API's format, and nothing is sent. So an agent
//     cannot, for example, create an API key with the login.
//   - The forwarder determines the API's address and path, never the request.
//   - Requests and responses are streamed. Only if the credential can be refreshed, the
//     body of a request is buffered, up to a limit, until the API has accepted the credential.
//   - Response headers that could reveal the credential are removed. Redirects are
//     not followed.
//   - No credential is logged, printed, or part of an error.
//   - Connections, headers and pauses are limited, so an agent can exhaust only its own
//     forwarder.
//
// Everything specific to Claude Code (variables, files, endpoints) is in claude.go.
package forwarder

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
	"time"

	"golang.org/x/net/netutil"
)

// Limits of a forwarder.
const (
	maxConnections = 64
	maxHeader      = 64 << 10         // bytes
	headerTimeout  = 10 * time.Second // for the header of a request
	bodyPause      = time.Minute      // between two parts of a request body
	idleTimeout    = 10 * time.Minute // between two requests on a connection
)

// Options configures a forwarder.
type Options struct {
	// Login is the account for the requests. Several forwarders may share it.
	Login *Login
	// Report is called for a problem that the user should know and that is not part
	// of a response, such as a refreshed login that cannot be saved. It must be safe for
	// concurrent use. May be nil.
	Report func(error)
}

// Forwarder is a running forwarder.
type Forwarder struct {
	login       *Login
	placeholder string
	accepted    [sha256.Size]byte // hash of the placeholder
	host        string            // 127.0.0.1:PORT
	port        int
	server      *http.Server
	proxy       *httputil.ReverseProxy
	cancel      context.CancelFunc // cancels the requests
	stop        func() bool        // prevents ctx from calling Close
	requests    sync.WaitGroup
	closing     sync.Mutex // held while closed changes or a request starts
	closed      bool
}

// Start starts a forwarder. It serves until Close is called or ctx ends.
func Start(ctx context.Context, opts Options) (*Forwarder, error) {
	if opts.Login == nil {
		return nil, errors.New("start forwarder: no login")
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start forwarder: %w", err)
	}
	placeholder := "coven-placeholder-" + rand.Text()
	f := &Forwarder{
		login: opts.Login, placeholder: placeholder, accepted: sha256.Sum256([]byte(placeholder)),
		host: listener.Addr().String(), port: listener.Addr().(*net.TCPAddr).Port,
	}
	if opts.Report != nil {
		opts.Login.reports.add(f, opts.Report)
	}
	quiet := log.New(io.Discard, "", 0) // net/http would print parts of requests
	f.proxy = &httputil.ReverseProxy{
		Rewrite: f.rewrite, ModifyResponse: f.clean, ErrorHandler: f.fail, ErrorLog: quiet,
		Transport: newSender(opts.Login), FlushInterval: -1,
	}
	life, cancel := context.WithCancel(ctx)
	f.cancel = cancel
	f.server = &http.Server{
		Handler: f, ErrorLog: quiet, BaseContext: func(net.Listener) context.Context { return life }, MaxHeaderBytes: maxHeader,
		ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
	}
	limited := netutil.LimitListener(listener, maxConnections) // further connections wait
	go func() { _ = f.server.Serve(limited) }()
	f.stop = context.AfterFunc(ctx, func() { _ = f.Close() })
	return f, nil
}

// URL returns the address of the forwarder: "http://127.0.0.1:PORT".
func (f *Forwarder) URL() string { return "http://" + f.host }

// Port returns the port of the forwarder on this machine's loopback.
func (f *Forwarder) Port() int { return f.port }

// Env returns the CLI's variables for the forwarder, as KEY=VALUE: its
// address, the placeholder, and NO_PROXY, which must override the user's. None of them is
// secret, because the placeholder is worthless without this forwarder.
func (f *Forwarder) Env() []string { return f.login.env(f.URL(), f.placeholder) }

// Close cancels all requests and frees the port. It waits up to 45 seconds for a running refresh of
// the login, because the response must be saved.
func (f *Forwarder) Close() error {
	f.stop()
	f.closing.Lock()
	f.closed = true
	f.closing.Unlock()
	f.cancel()
	err := f.server.Close()
	f.requests.Wait()
	f.login.reports.remove(f)
	f.login.transport.CloseIdleConnections()
	if err != nil {
		return fmt.Errorf("stop forwarder: %w", err)
	}
	return nil
}

// begin counts a request. It returns false if the forwarder is closed.
func (f *Forwarder) begin() bool {
	f.closing.Lock()
	defer f.closing.Unlock()
	if !f.closed {
		f.requests.Add(1)
	}
	return !f.closed
}

// String keeps the placeholder and the login out of logs.
func (f *Forwarder) String() string { return "forwarder at " + f.URL() }

// GoString is like String.
func (f *Forwarder) GoString() string { return f.String() }
