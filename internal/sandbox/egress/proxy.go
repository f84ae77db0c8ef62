package egress

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// Options configures a Proxy.
type Options struct {
	// Allow lists the hosts: Defaults, and the user's own patterns.
	Allow []Pattern
	// Environ is the user's environment, in the format of os.Environ. Its HTTP_PROXY,
	// HTTPS_PROXY, ALL_PROXY and NO_PROXY, in upper or lower case, apply to the connections of the
	// proxy.
	Environ []string
	// ConfigFile is the name of the user's configuration file in refusals. It defaults to
	// "your configuration file".
	ConfigFile string
	// OnRefused is called once for each refused host, for at most 1,000 hosts. The
	// host is formatted as an entry of sandbox.network. Calls are serialized, and connections
	// wait for them. May be nil.
	OnRefused func(host string)
	// Resolver resolves names. It defaults to net.DefaultResolver.
	Resolver *net.Resolver
	Limits   Limits
}

// Limits limits the use of the proxy by programs. A zero value stands for the default in parentheses.
type Limits struct {
	Connections    int           // number of open connections; further ones wait (256)
	HeaderBytes    int           // size of a request's header (64 KiB)
	HeaderTimeout  time.Duration // until a request's header was received (15 s)
	ConnectTimeout time.Duration // until the host is connected (30 s)
	IdleTimeout    time.Duration // without traffic in either direction (15 min)
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Connections:    cmp.Or(l.Connections, 256),
		HeaderBytes:    cmp.Or(l.HeaderBytes, 64<<10),
		HeaderTimeout:  cmp.Or(l.HeaderTimeout, 15*time.Second),
		ConnectTimeout: cmp.Or(l.ConnectTimeout, 30*time.Second),
		IdleTimeout:    cmp.Or(l.IdleTimeout, 15*time.Minute),
	}
}

// user is the user name in the proxy's URL. The password is the token.
const user = "coven"

// Proxy is a running proxy.
type Proxy struct {
	list     list
	limits   Limits
	resolver *net.Resolver
	upstream *upstream
	refusals refusals
	address  netip.AddrPort
	token    string

	server  *http.Server
	direct  *http.Transport // for plain HTTP to the host
	chained *http.Transport // for plain HTTP through the user's proxy

	cancel  context.CancelFunc
	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
}

// Listen starts a proxy on a free port of 127.0.0.1. It ends with ctx or Close. Listen returns an error
// if it cannot open a port, or if a proxy variable of the user is invalid.
func Listen(ctx context.Context, o Options) (*Proxy, error) {
	up, err := newUpstream(o.Environ)
	if err != nil {
		return nil, err
	}
	var config net.ListenConfig
	socket, err := config.Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open a port for the network proxy: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	p := &Proxy{
		list: o.Allow, limits: o.Limits.withDefaults(), resolver: o.Resolver, upstream: up,
		refusals: refusals{file: o.ConfigFile, report: o.OnRefused},
		address:  socket.Addr().(*net.TCPAddr).AddrPort(), token: rand.Text(), cancel: cancel,
	}
	p.direct, p.chained = p.transports()
	p.server = &http.Server{
		Handler:                      http.HandlerFunc(p.serve),
		ReadHeaderTimeout:            p.limits.HeaderTimeout,
		IdleTimeout:                  p.limits.IdleTimeout,
		MaxHeaderBytes:               p.limits.HeaderBytes,
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     log.New(io.Discard, "", 0),
		ConnContext:                  connContext,
	}
	limited := newListener(ctx, socket, p.limits)
	p.running.Go(func() {
		_ = p.server.Serve(limited) // returns when Close closes the listener
	})
	p.running.Go(func() {
		<-ctx.Done()
		_ = p.server.Close() // the error cannot be reported
	})
	return p, nil
}

// Close ends the proxy and closes all its connections.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	err := p.server.Close()
	p.running.Wait()
	p.direct.CloseIdleConnections()
	p.chained.CloseIdleConnections()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// begin counts a request that Close waits for. It returns false after Close.
func (p *Proxy) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.running.Add(1)
	return true
}

// serve handles one request. Connections are reused, so every request is checked.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	if !p.begin() {
		panic(http.ErrAbortHandler)
	}
	defer p.running.Done()
	if !p.authorized(r) {
		w.Header().Set("Proxy-Authenticate", `Basic realm="coven"`)
		answer(w, http.StatusProxyAuthRequired, "coven: this proxy is only for programs that coven started")
		return
	}
	t, err := targetOf(r)
	if err != nil {
		answer(w, http.StatusBadRequest, "coven: invalid request to the network proxy: "+err.Error())
		return
	}
	mayBePrivate, err := p.list.check(t)
	switch {
	case err != nil:
		p.fail(w, r, t, err)
	case r.Method == http.MethodConnect:
		p.tunnel(w, r, t, mayBePrivate)
	default:
		p.forward(w, r, t, mayBePrivate)
	}
}

// authorized reports whether the request has the token.
func (p *Proxy) authorized(r *http.Request) bool {
	name, token, ok := (&http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}).BasicAuth()
	return ok && name == user && subtle.ConstantTimeCompare([]byte(token), []byte(p.token)) == 1
}
