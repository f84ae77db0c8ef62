package egress

import (
	"bufio"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// office is the user's own proxy. It requires a login, resolves all names to this machine, and
// records the requests.
type office struct {
	mu    sync.Mutex
	asked []string
}

func (o *office) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	o.asked = append(o.asked, r.Method+" "+r.Host)
	o.mu.Unlock()
	if r.Header.Get("Proxy-Authorization") != "Basic "+base64.StdEncoding.EncodeToString([]byte("ann:s e:cret")) {
		w.WriteHeader(http.StatusProxyAuthRequired)
		return
	}
	_, port, _ := net.SplitHostPort(r.Host)
	if r.Method != http.MethodConnect {
		(&httputil.ReverseProxy{Rewrite: func(pr *httputil.ProxyRequest) {
			pr.Out.URL.Host = "127.0.0.1:" + port
			pr.Out.Host = pr.In.Host
		}}).ServeHTTP(w, r)
		return
	}
	up, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer up.Close() //nolint:errcheck // the test is over either way
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer c.Close() //nolint:errcheck // the test is over either way
	_, _ = io.WriteString(c, "HTTP/1.1 200 Fine\r\nX: y\r\n\r\n")
	go func() {
		_, _ = io.Copy(up, c)
		_ = up.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(c, up)
}

func (o *office) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.asked, ", ")
}

// The user's proxy is used with its login, except for NO_PROXY, and only for hosts on the list.
func TestUpstream(t *testing.T) {
	ca := newAuthority(t)
	secure, open := ca.serve(t, "secure.test", http.HandlerFunc(hello)), plain(t, hello)
	for _, scheme := range []string{"http", "https"} {
		t.Run(scheme, func(t *testing.T) {
			var asked office
			address := "127.0.0.1:" + plain(t, asked.ServeHTTP)
			if scheme == "https" {
				address = "proxy.test:" + ca.serve(t, "proxy.test", &asked)
			}
			address = strings.Replace(address, "proxy.test", "localhost", 1)
			via := scheme + "://ann:s%20e%3Acret@" + address
			p := listen(t, Options{
				Allow:    patterns(t, "secure.test:"+secure, "open.test:"+open, "direct.test:"+open),
				Environ:  []string{"https_proxy=" + via, "ALL_PROXY=" + via, "NO_PROXY=direct.test"},
				Resolver: names(t, map[string][]string{"direct.test": {"127.0.0.1"}}),
			})
			if scheme == "https" {
				trust(t, p, ca)
			}
			c := client(t, p, ca.pool)
			for url, want := range map[string]string{
				"https://secure.test:" + secure + "/": "hello secure.test:" + secure + " /", "http://open.test:" + open + "/": "hello open.test:" + open + " /",
				"http://direct.test:" + open + "/": "hello direct.test:" + open + " /",
			} {
				if status, body, err := get(c, url); status != 200 || body != want || err != nil {
					t.Errorf("%s: %d %q %v", url, status, body, err)
				}
			}
			if _, body, err := get(c, "https://secure.test:"+secure+"/?"+strings.Repeat("x", 100<<10)); len(body) < 100<<10 || err != nil {
				t.Errorf("%d bytes, %v", len(body), err)
			}
			if _, _, err := get(c, "https://evil.test/"); err == nil || !strings.Contains(err.Error(), "not on the list") {
				t.Error(err)
			}
			if got := asked.String(); strings.Contains(got, "evil") || strings.Contains(got, "direct") || !strings.Contains(got, "CONNECT secure.test:"+secure) || !strings.Contains(got, "GET open.test:"+open) {
				t.Errorf("the user's proxy was asked for %s", got)
			}
		})
	}
}

// trust makes a proxy accept the certificate of the user's proxy for any name.
func trust(t *testing.T, p *Proxy, ca *authority) {
	t.Helper()
	config := client(t, p, ca.pool).Transport.(*http.Transport).TLSClientConfig.Clone()
	config.InsecureSkipVerify = true
	p.upstream.tls, p.chained.TLSClientConfig = config, config
}

// With the user's proxy, addresses are checked if they are known.
func TestUpstreamAddresses(t *testing.T) {
	var asked office
	p := listen(t, Options{
		Allow:   patterns(t, "10.0.0.5", "localhost:1"),
		Environ: []string{"ALL_PROXY=http://127.0.0.1:" + plain(t, asked.ServeHTTP)},
	})
	for address, want := range map[string]string{
		"169.254.169.254:80": "not on the list", "10.0.0.6:80": "not on the list", "10.0.0.5:80": "it answered 407", "localhost:1": "refused",
	} {
		conn := rawDial(t, p)
		conn.say(t, p, "CONNECT "+address+" HTTP/1.1", "Host: x", "LOGIN", "_")
		if status, phrase, _ := conn.hear(t, http.MethodConnect); status == 200 || !strings.Contains(phrase, want) {
			t.Errorf("%s: %d %s, want %s", address, status, phrase, want)
		}
	}
	if asked.String() != "CONNECT 10.0.0.5:80" {
		t.Error(asked.String())
	}
}

// Errors of the user's proxy contain its name but not its credentials.
func TestUpstreamFails(t *testing.T) {
	var asked office
	good := "127.0.0.1:" + plain(t, asked.ServeHTTP)
	closed := httptest.NewServer(nil)
	closed.Close()
	silent := silence(t)
	for name, c := range map[string]struct{ via, connect, forward string }{
		"wrong password": {"http://ann:wrong@" + good, "your proxy " + good + ": it answered 407", "your proxy " + good + " does not accept the credentials"},
		"closed":         {"http://ann:wrong@" + portless(closed.URL), "your proxy " + portless(closed.URL) + ": dial", "connection refused"},
		"not TLS":        {"https://ann:wrong@" + good, "first record does not look like a TLS handshake", "first record does not look like a TLS handshake"},
		"silent":         {"http://ann:wrong@" + silent, "your proxy " + silent, ""},
		"no socks":       {"socks5://ann:wrong@" + good, "your proxy " + good, "your proxy " + good},
	} {
		t.Run(name, func(t *testing.T) {
			limits := Limits{}
			if name == "silent" || name == "no socks" {
				limits = Limits{ConnectTimeout: patience / 60}
			}
			p := listen(t, Options{Allow: patterns(t, "x.test"), Environ: []string{"ALL_PROXY=" + c.via}, Limits: limits})
			conn := rawDial(t, p)
			conn.say(t, p, "CONNECT x.test:443 HTTP/1.1", "Host: x", "LOGIN", "_")
			if status, phrase, _ := conn.hear(t, http.MethodConnect); status != 502 || !strings.Contains(phrase, c.connect) || strings.Contains(phrase, "wrong") {
				t.Errorf("%d %s", status, phrase)
			}
			if c.forward == "" {
				return
			}
			conn = rawDial(t, p)
			conn.say(t, p, "GET http://x.test/ HTTP/1.1", "Host: x", "LOGIN", "_")
			if status, _, body := conn.hear(t, http.MethodGet); status != 502 || !strings.Contains(body, c.forward) || strings.Contains(body, "wrong") {
				t.Errorf("%d %s", status, body)
			}
		})
	}
}

func portless(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		panic(err)
	}
	return u.Host
}

func TestUpstreamVariables(t *testing.T) {
	for kv, want := range map[string]string{
		"HTTP_PROXY=ftp://ann:secret@proxy.test": "the variable HTTP_PROXY (or http_proxy): proxies of the kind ftp:// are not supported",
		"https_proxy=http://ann:secret@":         "the variable HTTPS_PROXY (or https_proxy): it is not the URL of a proxy",
		"ALL_PROXY=socks4://x:1":                 "the variable ALL_PROXY (or all_proxy): proxies of the kind socks4://",
		"HTTP_PROXY=http://a b:secret@x":         "it is not the URL of a proxy",
	} {
		p, err := Listen(t.Context(), Options{Environ: []string{kv}})
		if err == nil {
			_ = p.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %s", kv, err, want)
		}
	}
	up, err := newUpstream([]string{"HTTP_PROXY=one:1", "http_proxy=two:2", "HTTPS_PROXY=", "all_proxy=socks5h://three:3", "no_proxy=.corp,10.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]string{
		"http://x.test": "http://one:1", "https://x.test": "socks5h://three:3", "https://a.corp": "<nil>", "https://10.1.2.3": "<nil>", "https://localhost": "<nil>",
	} {
		u, err := url.Parse(target)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := up.choose(u); fmt.Sprint(got) != want || err != nil {
			t.Errorf("%s: %v %v, want %s", target, got, err, want)
		}
	}
}

// A SOCKS5 proxy receives the host name and the user's login.
func TestSocks(t *testing.T) {
	ca := newAuthority(t)
	secure, open := ca.serve(t, "secure.test", http.HandlerFunc(hello)), plain(t, hello)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { socks(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		running.Wait()
	})
	p := listen(t, Options{
		Allow:   patterns(t, "secure.test:"+secure, "open.test:"+open),
		Environ: []string{"ALL_PROXY=socks5h://ann:secret@" + l.Addr().String()},
	})
	c := client(t, p, ca.pool)
	for _, url := range []string{"https://secure.test:" + secure, "http://open.test:" + open} {
		if status, body, err := get(c, url); status != 200 || !strings.HasPrefix(body, "hello") || err != nil {
			t.Errorf("%s: %d %s %v", url, status, body, err)
		}
	}
	c.CloseIdleConnections()
	_ = p.Close()
}

// socks serves one SOCKS5 connection with a login (RFC 1928, RFC 1929).
func socks(c net.Conn) {
	defer c.Close() //nolint:errcheck // the test is over either way
	in := bufio.NewReader(c)
	field := func() string {
		n, _ := in.ReadByte()
		b := make([]byte, n)
		_, _ = io.ReadFull(in, b)
		return string(b)
	}
	skip := func(n int) { _, _ = in.Discard(n) }
	skip(1)
	field()
	_, _ = c.Write([]byte{5, 2})
	skip(1)
	if field() != "ann" || field() != "secret" {
		return
	}
	_, _ = c.Write([]byte{1, 0})
	skip(4) // version, connect, reserved, type of address: name
	name := field()
	port := make([]byte, 2)
	if _, err := io.ReadFull(in, port); err != nil || !strings.HasSuffix(name, ".test") {
		return
	}
	up, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", binary.BigEndian.Uint16(port)))
	if err != nil {
		return
	}
	defer up.Close() //nolint:errcheck // the test is over either way
	_, _ = c.Write([]byte{5, 0, 0, 1, 127, 0, 0, 1, 0, 1})
	go func() {
		_, _ = io.Copy(up, in)
		_ = up.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(c, up)
}
