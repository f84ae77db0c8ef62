package egress

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestTunnelAndForward(t *testing.T) {
	ca := newAuthority(t)
	secure := ca.serve(t, "secure.test", http.HandlerFunc(hello))
	open := plain(t, hello)
	var seen refused
	p := listen(t, Options{
		Allow:     patterns(t, "secure.test:"+secure, "open.test:"+open),
		Resolver:  names(t, map[string][]string{"secure.test": {"127.0.0.1"}, "open.test": {"127.0.0.1"}}),
		OnRefused: seen.add, ConfigFile: "~/.config/coven/config.yaml",
	})
	c := client(t, p, ca.pool)
	for url, want := range map[string]string{
		"https://secure.test:" + secure + "/a":  "hello secure.test:" + secure + " /a",
		"http://open.test:" + open + "/b?c;d=%": "hello open.test:" + open + " /b?c;d=%",
		"http://OPEN.test.:" + open + "/":       "hello open.test:" + open + " /",
	} {
		if status, body, err := get(c, url); status != 200 || body != want || err != nil {
			t.Errorf("%s: %d %q %v, want %q", url, status, body, err, want)
		}
	}
	const line = `coven: evil.test is not allowed: it is not on the list of hosts; to allow it, add "evil.test" to sandbox.network in ~/.config/coven/config.yaml`
	for range 2 {
		if status, body, err := get(c, "http://evil.test/"); status != 403 || body != line+"\n" || err != nil {
			t.Errorf("%d %q %v", status, body, err)
		}
		if _, _, err := get(c, "https://evil.test/"); err == nil || !strings.Contains(err.Error(), line) {
			t.Errorf("%v", err)
		}
	}
	if _, _, err := get(c, "https://secure.test/"); err == nil || !strings.Contains(err.Error(), "403") && !strings.Contains(err.Error(), "not allowed") {
		t.Errorf("another port: %v", err)
	}
	if got := seen.String(); got != "evil.test secure.test" {
		t.Errorf("refused: %s", got)
	}
}

// The proxy requires the token.
func TestToken(t *testing.T) {
	port := plain(t, hello)
	p := listen(t, Options{Allow: patterns(t, "127.0.0.1:"+port)})
	for _, login := range []string{
		"X: y", "Proxy-Authorization: Basic Y292ZW46", "Proxy-Authorization: Bearer " + p.token, "Proxy-Authorization: " + p.token,
		"Authorization: Basic Y292ZW46eA==",
	} {
		for _, first := range []string{"GET http://127.0.0.1:" + port + "/ HTTP/1.1", "CONNECT 127.0.0.1:" + port + " HTTP/1.1"} {
			c := rawDial(t, p)
			c.say(t, p, first, "Host: x", login, "_")
			if status, _, body := c.hear(t, http.MethodGet); status != 407 || !strings.Contains(body, "only for programs that coven started") {
				t.Errorf("%s, %s: %d %s", first, login, status, body)
			}
		}
	}
	// A program may send the token on the same connection after it was asked for it.
	c := rawDial(t, p)
	c.say(t, p, "CONNECT 127.0.0.1:"+port+" HTTP/1.1", "Host: x", "_")
	if status, _, _ := c.hear(t, http.MethodGet); status != 407 {
		t.Error(status)
	}
	c.say(t, p, "CONNECT 127.0.0.1:"+port+" HTTP/1.1", "Host: x", "LOGIN", "_")
	if status, _, _ := c.hear(t, http.MethodConnect); status != 200 {
		t.Error(status)
	}
}

// Credentials for the proxy are not forwarded; all other headers are.
func TestHeaders(t *testing.T) {
	port := plain(t, func(w http.ResponseWriter, r *http.Request) {
		var names []string
		for name := range r.Header {
			names = append(names, name)
		}
		slices.Sort(names)
		body, _ := io.ReadAll(r.Body)
		w.Header()["X-Reply"] = []string{"a", "b"}
		w.WriteHeader(http.StatusTeapot)
		_, _ = fmt.Fprintf(w, "%s %s %s %v %s", r.Method, r.Host, r.RequestURI, names, body)
	})
	p := listen(t, Options{Allow: patterns(t, "127.0.0.1:"+port)})
	c := rawDial(t, p)
	c.say(t, p, "POST http://127.0.0.1:"+port+"/%2e%2F?a=b;c HTTP/1.1", "Host: elsewhere.test", "LOGIN", "Proxy-Connection: keep-alive",
		"Authorization: Bearer x", "X-Custom: y", "Content-Length: 4", "_", "body")
	status, _, body := c.hear(t, http.MethodPost)
	if want := "POST 127.0.0.1:" + port + " /%2e%2F?a=b;c [Authorization Content-Length X-Custom] body"; status != 418 || body != want {
		t.Errorf("%d %s, want %s", status, body, want)
	}
}

func TestEnv(t *testing.T) {
	p := listen(t, Options{})
	env := p.Env()
	url := "http://coven:" + p.token + "@" + p.address.String()
	for _, want := range []string{
		"HTTP_PROXY=" + url, "http_proxy=" + url, "HTTPS_PROXY=" + url, "https_proxy=" + url, "ALL_PROXY=" + url, "all_proxy=" + url,
		"NO_PROXY=localhost,127.0.0.1,::1,[::1]", "no_proxy=localhost,127.0.0.1,::1,[::1]", "NODE_USE_ENV_PROXY=1",
	} {
		if !slices.Contains(env, want) {
			t.Errorf("%s is missing in %s", want, env)
		}
	}
	other := listen(t, Options{})
	if other.token == p.token || len(p.token) < 20 || !p.address.Addr().IsLoopback() {
		t.Error(p.URL(), other.URL())
	}
}

// Close and the context end tunnels, requests and incomplete requests.
func TestClose(t *testing.T) {
	silent := silence(t)
	for name, end := range map[string]func(*Proxy, context.CancelFunc){
		"Close":   func(p *Proxy, _ context.CancelFunc) { _ = p.Close() },
		"context": func(_ *Proxy, cancel context.CancelFunc) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			p, err := Listen(ctx, Options{Allow: patterns(t, silent)})
			if err != nil {
				t.Fatal(err)
			}
			tunnel, request, half := rawDial(t, p), rawDial(t, p), rawDial(t, p)
			tunnel.say(t, p, "CONNECT "+silent+" HTTP/1.1", "LOGIN", "Host: x", "_")
			tunnel.hear(t, http.MethodConnect)
			request.say(t, p, "GET http://"+silent+"/ HTTP/1.1", "LOGIN", "Host: x", "_")
			half.say(t, p, "GET http://"+silent+"/ HTTP/1.1")
			end(p, cancel)
			for _, c := range []*rawConn{tunnel, request, half} {
				c.ended(t)
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
			if _, err := net.Dial("tcp", p.address.String()); err == nil {
				t.Error("the port is still open")
			}
		})
	}
}

// silence starts a server that accepts connections but sends nothing, and returns its address.
func silence(t *testing.T) string {
	t.Helper()
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
			running.Go(func() {
				_, _ = io.Copy(io.Discard, c)
				c.Close() //nolint:errcheck // the test is over either way
			})
		}
	})
	t.Cleanup(func() {
		l.Close() //nolint:errcheck // the test is over either way
		running.Wait()
	})
	return l.Addr().String()
}

// The directions of a tunnel end independently, and large transfers in both directions are complete.
func TestTunnelCopies(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // the test is over either way
	const size = 8 << 20
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()                //nolint:errcheck // the test is over either way
		n, _ := io.Copy(io.Discard, c) // until the program has sent everything
		_, _ = io.CopyN(c, zeros{}, n)
	}()
	p := listen(t, Options{Allow: patterns(t, l.Addr().String())})
	c := rawDial(t, p)
	// The first bytes arrive with the request, as some TLS clients send them.
	c.say(t, p, "CONNECT "+l.Addr().String()+" HTTP/1.1", "LOGIN", "Host: x", "_", "early")
	c.hear(t, http.MethodConnect)
	if _, err := io.CopyN(c, zeros{}, size); err != nil {
		t.Fatal(err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, c.in); n != size+int64(len("early\r\n")) || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

// Responses are streamed.
func TestStreaming(t *testing.T) {
	next := make(chan struct{})
	port := plain(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "18")
		for range 3 {
			_, _ = fmt.Fprint(w, "event\n")
			w.(http.Flusher).Flush()
			<-next
		}
	})
	p := listen(t, Options{Allow: patterns(t, "127.0.0.1:"+port)})
	r, err := client(t, p, nil).Get("http://127.0.0.1:" + port)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close() //nolint:errcheck // the test is over either way
	for range 3 {
		line := make([]byte, 6)
		if _, err := io.ReadFull(r.Body, line); err != nil || string(line) != "event\n" {
			t.Fatal(string(line), err)
		}
		next <- struct{}{}
	}
}

func TestUnreachable(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	l.Close() //nolint:errcheck // the test is over either way
	p := listen(t, Options{
		Allow: patterns(t, closed, "nowhere.test"), Resolver: names(t, nil), Limits: Limits{ConnectTimeout: patience},
	})
	for address, want := range map[string]string{closed: "connection refused", "nowhere.test:443": "no such host"} {
		c := rawDial(t, p)
		c.say(t, p, "CONNECT "+address+" HTTP/1.1", "LOGIN", "Host: x", "_")
		if status, phrase, body := c.hear(t, http.MethodConnect); status != 502 || !strings.Contains(phrase, want) || !strings.HasPrefix(phrase, "coven: cannot connect to "+address) || body != phrase+"\n" {
			t.Errorf("%s: %d %s %s", address, status, phrase, body)
		}
		c = rawDial(t, p)
		c.say(t, p, "GET http://"+address+"/ HTTP/1.1", "LOGIN", "Host: x", "_")
		if status, _, body := c.hear(t, http.MethodGet); address == closed && (status != 502 || !strings.Contains(body, want)) {
			t.Errorf("%s: %d %s", address, status, body)
		}
	}
}

// HTTP/1.0 and WebSockets over plain HTTP are supported.
func TestOldAndUpgraded(t *testing.T) {
	port := plain(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			hello(w, r)
			return
		}
		c, buffer, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer c.Close() //nolint:errcheck // the test is over either way
		_, _ = fmt.Fprint(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		line, _ := buffer.ReadString('\n')
		_, _ = fmt.Fprint(c, "echo "+line)
	})
	p := listen(t, Options{Allow: patterns(t, "127.0.0.1:"+port)})
	old := rawDial(t, p)
	old.say(t, p, "GET http://127.0.0.1:"+port+"/ HTTP/1.0", "LOGIN", "_")
	if status, _, body := old.hear(t, http.MethodGet); status != 200 || !strings.HasPrefix(body, "hello") {
		t.Error(status, body)
	}
	old.ended(t)
	old = rawDial(t, p)
	old.say(t, p, "CONNECT 127.0.0.1:"+port+" HTTP/1.0", "LOGIN", "_")
	if status, _, _ := old.hear(t, http.MethodConnect); status != 200 {
		t.Error(status)
	}
	socket := rawDial(t, p)
	socket.say(t, p, "GET http://127.0.0.1:"+port+"/ HTTP/1.1", "Host: x", "LOGIN", "Connection: Upgrade", "Upgrade: websocket", "_")
	if r, err := http.ReadResponse(socket.in, nil); err != nil || r.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(r, err)
	}
	socket.say(t, p, "ping")
	if line, err := socket.in.ReadString('\n'); line != "echo ping\r\n" || err != nil {
		t.Error(line, err)
	}
	socket.ended(t)
}

// Connections that send nothing, too slowly or too much are closed, and further ones wait.
func TestLimits(t *testing.T) {
	t.Parallel()
	p := listen(t, Options{Limits: Limits{Connections: 2, HeaderBytes: 4096, HeaderTimeout: 300 * time.Millisecond}})
	t.Run("nothing", func(t *testing.T) { rawDial(t, p).ended(t) })
	t.Run("slow header", func(t *testing.T) {
		c := rawDial(t, p)
		for range 500 {
			if _, err := io.WriteString(c, "X"); err != nil {
				return
			}
			<-time.After(20 * time.Millisecond)
		}
		t.Error("the connection is still open")
	})
	t.Run("many", func(t *testing.T) {
		var waiting []*rawConn
		for range 10 {
			waiting = append(waiting, rawDial(t, p))
		}
		for _, c := range waiting {
			c.ended(t)
		}
	})
	t.Run("large header", func(t *testing.T) {
		c := rawDial(t, p)
		go func() { _, _ = io.WriteString(c, "GET http://x/ HTTP/1.1\r\nX: "+strings.Repeat("x", 1<<20)) }()
		if line, _ := c.in.ReadString('\n'); line != "" && !strings.Contains(line, " 431 ") {
			t.Error(line)
		}
	})
}

// Idle tunnels and requests end.
func TestIdle(t *testing.T) {
	t.Parallel()
	silent := silence(t)
	p := listen(t, Options{Allow: patterns(t, silent), Limits: Limits{IdleTimeout: time.Second}})
	for _, lines := range [][]string{
		{"CONNECT " + silent + " HTTP/1.1", "LOGIN", "Host: x", "_"},
		{"POST http://" + silent + "/ HTTP/1.1", "LOGIN", "Host: x", "Content-Length: 1000", "_", "x"},
	} {
		c := rawDial(t, p)
		c.say(t, p, lines...)
		c.ended(t)
	}
	// Active ones stay open for longer.
	echo := plain(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	p = listen(t, Options{Allow: patterns(t, "127.0.0.1:"+echo), Limits: Limits{IdleTimeout: 4 * time.Second}})
	c := rawDial(t, p)
	c.say(t, p, "POST http://127.0.0.1:"+echo+"/ HTTP/1.1", "LOGIN", "Host: x", "Content-Length: 50", "_")
	for range 50 {
		if _, err := io.WriteString(c, "x"); err != nil {
			t.Fatal(err)
		}
		<-time.After(100 * time.Millisecond)
	}
	if status, _, body := c.hear(t, http.MethodPost); status != 200 {
		t.Error(status, body)
	}
}

// A name that is not on the list is not resolved, because that would already leak data to its name server.
func TestNoNameIsLeaked(t *testing.T) {
	var asked atomic.Bool
	p := listen(t, Options{Allow: patterns(t, "example.test"), Resolver: &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		asked.Store(true)
		return nil, io.ErrUnexpectedEOF
	}}})
	for address, want := range map[string]bool{"secret.evil.test:443": false, "example.test.:22": false, "example.test:443": true} {
		asked.Store(false)
		c := rawDial(t, p)
		c.say(t, p, "CONNECT "+address+" HTTP/1.1", "Host: x", "LOGIN", "_")
		c.hear(t, http.MethodConnect)
		if asked.Load() != want {
			t.Errorf("%s: resolved: %v", address, !want)
		}
	}
}
