package egress

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpproxy"
	"golang.org/x/net/proxy"
)

// upstream is the user's own proxy.
type upstream struct {
	// choose returns the proxy for a URL, or nil.
	choose func(*url.URL) (*url.URL, error)
	// tls configures the connection to the proxy itself. Nil means the system's certificates.
	tls *tls.Config
}

// newUpstream reads the proxy variables of an environment. ALL_PROXY is the default for the
// others.
func newUpstream(environ []string) (*upstream, error) {
	env := map[string]string{}
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	value := func(name string) string { return cmp.Or(env[name], env[strings.ToLower(name)]) }
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		if err := checkProxy(value(name)); err != nil {
			return nil, fmt.Errorf("the variable %s (or %s): %w", name, strings.ToLower(name), err)
		}
	}
	config := httpproxy.Config{
		HTTPProxy:  cmp.Or(value("HTTP_PROXY"), value("ALL_PROXY")),
		HTTPSProxy: cmp.Or(value("HTTPS_PROXY"), value("ALL_PROXY")),
		NoProxy:    value("NO_PROXY"),
	}
	return &upstream{choose: config.ProxyFunc()}, nil
}

// checkProxy returns an error, without credentials, unless the value is the URL of a proxy.
func checkProxy(value string) error {
	if value == "" {
		return nil
	}
	if !strings.Contains(value, "://") {
		value = "http://" + value
	}
	u, err := url.Parse(value)
	switch {
	case err != nil || u.Hostname() == "":
		return errors.New("it is not the URL of a proxy, such as http://proxy.example.com:3128")
	case defaultPorts[u.Scheme] == "":
		return fmt.Errorf("proxies of the kind %s:// are not supported; use http, https or socks5", u.Scheme)
	}
	return nil
}

// defaultPorts maps the supported schemes of proxies to their default ports.
var defaultPorts = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}

// connect connects to the target through a proxy.
func (u *upstream) connect(ctx context.Context, via *url.URL, t target) (net.Conn, error) {
	c, err := u.through(ctx, via, t)
	if err != nil {
		return nil, fmt.Errorf("your proxy %s: %w", via.Host, err)
	}
	return c, nil
}

func (u *upstream) through(ctx context.Context, via *url.URL, t target) (net.Conn, error) {
	address := net.JoinHostPort(via.Hostname(), cmp.Or(via.Port(), defaultPorts[via.Scheme]))
	var dialer net.Dialer
	if isSocks(via) {
		socks, err := proxy.FromURL(&url.URL{Scheme: via.Scheme, User: via.User, Host: address}, &dialer)
		if err != nil {
			return nil, err
		}
		return socks.(proxy.ContextDialer).DialContext(ctx, "tcp", t.host.dial(t.port))
	}
	c, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if via.Scheme == "https" {
		config := u.tls.Clone()
		if config == nil {
			config = &tls.Config{}
		}
		config.ServerName = via.Hostname()
		c = tls.Client(c, config)
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	tunnel, err := requestTunnel(c, via.User, t)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = c.Close() // the first error is more useful
		return nil, err
	}
	return tunnel, nil
}

func isSocks(via *url.URL) bool { return strings.HasPrefix(via.Scheme, "socks5") }

// maxUpstreamHeader limits the response of a proxy to CONNECT in bytes.
const maxUpstreamHeader = 64 << 10

// requestTunnel sends CONNECT to a proxy and reads its response.
func requestTunnel(c net.Conn, login *url.Userinfo, t target) (net.Conn, error) {
	address := t.host.dial(t.port)
	request := "CONNECT " + address + " HTTP/1.1\r\nHost: " + address + "\r\n"
	if login != nil {
		password, _ := login.Password()
		request += "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(login.Username()+":"+password)) + "\r\n"
	}
	if _, err := io.WriteString(c, request+"\r\n"); err != nil {
		return nil, err
	}
	limited := &io.LimitedReader{R: c, N: maxUpstreamHeader}
	reader := bufio.NewReader(limited)
	response, err := http.ReadResponse(reader, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return nil, fmt.Errorf("it did not answer CONNECT: %w", err)
	}
	if err := response.Body.Close(); err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answered %s", response.Status)
	}
	limited.N = math.MaxInt64
	return &bufferedConn{c, reader}, nil
}

// bufferedConn is a connection whose first bytes are in a buffer.
type bufferedConn struct {
	net.Conn
	reader *bufio.Reader
}

// Read implements io.Reader.
func (c *bufferedConn) Read(b []byte) (int, error) { return c.reader.Read(b) }

// CloseWrite signals the end of data to the peer.
func (c *bufferedConn) CloseWrite() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return c.Close()
	}
	return half.CloseWrite()
}
