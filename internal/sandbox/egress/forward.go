package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"
)

// access is the checked target of a request, stored in the context of its outgoing request.
type access struct {
	target       target
	mayBePrivate bool
}

type accessKey struct{}

// transports returns the transports for plain HTTP: a direct one to the host, possibly through the user's SOCKS
// proxy, and one to the user's HTTP proxy. Direct connections are pooled by host and port, and hosts are checked before
// each request. A reused connection was checked against the same pattern.
func (p *Proxy) transports() (direct, chained *http.Transport) {
	shared := func() *http.Transport {
		return &http.Transport{
			DisableCompression: true, MaxIdleConns: 32, IdleConnTimeout: time.Minute,
			ExpectContinueTimeout: time.Second, MaxResponseHeaderBytes: 1 << 20,
		}
	}
	direct, chained = shared(), shared()
	direct.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		a := ctx.Value(accessKey{}).(access)
		return p.connect(ctx, "http", a.target, a.mayBePrivate)
	}
	chained.Proxy = func(r *http.Request) (*url.URL, error) { return p.upstream.choose(r.URL) }
	chained.DialContext = (&net.Dialer{Timeout: p.limits.ConnectTimeout}).DialContext
	chained.TLSClientConfig = p.upstream.tls
	return direct, chained
}

// forward sends a plain HTTP request to the target, and the response to the program.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request, t target, mayBePrivate bool) {
	u := url.URL{Scheme: "http", Host: t.host.String()}
	if t.port != 80 {
		u.Host = t.host.dial(t.port)
	}
	proxy, err := p.upstream.choose(&u)
	if err != nil {
		p.fail(w, r, t, err)
		return
	}
	transport := p.direct
	if proxy != nil && !isSocks(proxy) {
		transport = p.chained
	}
	forwarder := httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.Out.URL.Host, pr.Out.Host = u.Host, u.Host
			pr.Out.URL.RawQuery = pr.In.URL.RawQuery
		},
		ModifyResponse: func(response *http.Response) error {
			if response.StatusCode == http.StatusProxyAuthRequired {
				return errUpstreamLogin(proxy)
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) { p.fail(w, r, t, err) },
	}
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = &endedBody{ReadCloser: r.Body}
	}
	forwarder.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), accessKey{}, access{t, mayBePrivate})))
}

// endedBody is a request body that is not read after its end: net/http may have closed it
// by then, and the transport would cut off the response.
type endedBody struct {
	io.ReadCloser
	ended error
}

func (b *endedBody) Read(p []byte) (int, error) {
	if b.ended != nil {
		return 0, b.ended
	}
	n, err := b.ReadCloser.Read(p)
	b.ended = err
	return n, err
}

// errUpstreamLogin returns the error for a user's proxy that rejects its credentials.
func errUpstreamLogin(proxy *url.URL) error {
	if proxy == nil {
		return errors.New("the host answered as a proxy that needs credentials")
	}
	return fmt.Errorf("your proxy %s does not accept the credentials in HTTP_PROXY", proxy.Host)
}
