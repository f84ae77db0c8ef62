package egress

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// Requests of other kinds, or for hosts that are not on the list, are refused
// without making a connection.
func TestRefusedRequests(t *testing.T) {
	var mu sync.Mutex
	var reached []string
	port := plain(t, func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		reached = append(reached, r.Method+" "+r.RequestURI)
	})
	p := listen(t, Options{Allow: patterns(t, "allowed.test:"+port, "*.wild.test:"+port), Resolver: names(t, map[string][]string{
		"allowed.test": {"127.0.0.1"}, "a.wild.test": {"127.0.0.1"}, "2130706433": {"127.0.0.1"},
	})})
	own := fmt.Sprint(p.address.Port())
	for _, c := range []struct {
		first  string
		status int
		reason string
	}{
		{"CONNECT localhost:22", 403, "not on the list"},
		{"CONNECT 127.0.0.1:" + port, 403, "not on the list"},
		{"CONNECT [::1]:" + port, 403, "not on the list"},
		{"CONNECT [::ffff:127.0.0.1]:" + port, 403, "not on the list"},
		{"CONNECT 127.0.0.1:" + own, 403, "not on the list"},
		{"CONNECT 169.254.169.254:80", 403, "not on the list"},
		{"CONNECT 0.0.0.0:" + port, 403, "not on the list"},
		{"CONNECT [::]:" + port, 403, "not on the list"},
		{"CONNECT allowed.test:443", 403, "not on the list"},
		{"CONNECT allowed.test.evil.test:" + port, 403, "not on the list"},
		{"CONNECT wild.test:" + port, 403, "not on the list"},
		{"CONNECT a.wild.test:" + port, 403, "its address 127.0.0.1 is private"},
		{"CONNECT 2130706433:" + port, 400, "not a valid address"},
		{"CONNECT 0x7f000001:" + port, 400, "not a valid address"},
		{"CONNECT 0177.0.0.1:" + port, 400, "not a valid address"},
		{"CONNECT 127.1:" + port, 400, "not a valid address"},
		{"CONNECT 127.0.0.1.:" + port, 403, "not on the list"},
		{"CONNECT [fe80::1%25lo]:" + port, 400, "zone"},
		{"CONNECT allowed.test", 400, "needs a port"},
		{"CONNECT allowed.test:", 400, "needs a port"},
		{"CONNECT allowed.test:0", 400, "port"},
		{"CONNECT allowed.test:99999", 400, "port"},
		{"CONNECT allowed.test:-1", 400, ""},
		{"CONNECT allowed.test:" + port + "/path", 400, "only"},
		{"CONNECT allowed.test:" + port + "?x", 400, "only"},
		{"CONNECT user@allowed.test:" + port, 400, "user name"},
		{"CONNECT allowed.test:" + port + "@evil.test:" + port, 400, ""},
		{"CONNECT http://allowed.test:" + port + "/", 400, ""},
		{"CONNECT /", 400, "names no host"},
		{"CONNECT *", 400, ""},
		{"CONNECT allowed..test:" + port, 400, "1 to 63"},
		{"CONNECT " + strings.Repeat("a.", 200) + "test:443", 400, "253"},
		{"CONNECT b\xc3\xbccher.test:443", 403, "xn--bcher-kva.test is not allowed"},
		{"GET /", 400, "names no host"},
		{"GET *", 400, ""},
		{"OPTIONS *", 400, "names no host"},
		{"PRI * HTTP/2.0", 400, ""},
		{"GET https://allowed.test:" + port + "/", 400, "only http:// URLs"},
		{"GET ftp://allowed.test:" + port + "/", 400, "only http:// URLs"},
		{"GET file:///etc/passwd", 400, "names no host"},
		{"GET http:allowed.test:" + port, 400, "names no host"},
		{"GET http:///path", 400, "names no host"},
		{"GET http://user:password@allowed.test:" + port + "/", 400, "user name"},
		{"GET http://allowed.test:" + port + "@evil.test/", 400, ""},
		{"GET http://evil.test/", 403, "not on the list"},
		{"GET http://evil.test#@allowed.test:" + port + "/", 400, ""},
		{"GET http://allowed.test:" + port + ".evil.test/", 400, ""},
		{"GET http://%61llowed.test:" + port + "/", 400, ""},
		{"GET http://127.0.0.1:" + own + "/", 403, "not on the list"},
		{"GET http://[::ffff:7f00:1]:" + port + "/", 403, "not on the list"},
		{"GET http://0x7f.1:" + port + "/", 400, "not a valid address"},
	} {
		if !strings.HasSuffix(c.first, "HTTP/2.0") {
			c.first += " HTTP/1.1"
		}
		conn := rawDial(t, p)
		// An allowed host in the Host header has no effect.
		conn.say(t, p, c.first, "Host: allowed.test:"+port, "LOGIN", "_")
		if status, phrase, body := conn.hear(t, http.MethodGet); status != c.status || !strings.Contains(body, c.reason) || strings.Contains(phrase+body, p.token) {
			t.Errorf("%s: %d %s%s, want %d %s", c.first, status, phrase, body, c.status, c.reason)
		}
	}
	// Useless advice is not given.
	for address, fixable := range map[string]bool{"169.254.169.254:80": false, "[::]:80": false, "10.0.0.1:80": true} {
		conn := rawDial(t, p)
		conn.say(t, p, "CONNECT "+address+" HTTP/1.1", "Host: x", "LOGIN", "_")
		if _, phrase, _ := conn.hear(t, http.MethodGet); strings.Contains(phrase, "sandbox.network") != fixable {
			t.Errorf("%s: %s", address, phrase)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(reached) > 0 {
		t.Errorf("the server was reached: %s", reached)
	}
}

// Ambiguous bodies and lengths do not reach a host.
func TestSmuggling(t *testing.T) {
	var mu sync.Mutex
	var reached []string
	port := plain(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		reached = append(reached, r.URL.Path)
		hello(w, r)
	})
	p := listen(t, Options{Allow: patterns(t, "127.0.0.1:"+port)})
	url := "http://127.0.0.1:" + port
	inner := []string{"GET /smuggled HTTP/1.1", "Host: x", "_"}
	for name, c := range map[string]struct {
		status int // of the first response
		lines  []string
	}{
		"two lengths":              {400, []string{"POST " + url + "/ HTTP/1.1", "Host: x", "LOGIN", "Content-Length: 5", "Content-Length: 0", "_"}},
		"a bad length":             {400, []string{"POST " + url + "/ HTTP/1.1", "Host: x", "LOGIN", "Content-Length: +5", "_"}},
		"an unknown encoding":      {501, []string{"POST " + url + "/ HTTP/1.1", "Host: x", "LOGIN", "Transfer-Encoding: xchunked", "_"}},
		"two encodings":            {501, []string{"POST " + url + "/ HTTP/1.1", "Host: x", "LOGIN", "Transfer-Encoding: gzip, chunked", "_"}},
		"a space before a colon":   {400, []string{"POST " + url + "/ HTTP/1.1", "Host: x", "LOGIN", "Transfer-Encoding : chunked", "_"}},
		"two hosts":                {400, []string{"POST " + url + "/ HTTP/1.1", "Host: x", "Host: y", "LOGIN", "_"}},
		"CONNECT with a length":    {400, []string{"CONNECT 127.0.0.1:" + port + " HTTP/1.1", "Host: x", "LOGIN", "Content-Length: 5", "_"}},
		"CONNECT with an encoding": {400, []string{"CONNECT 127.0.0.1:" + port + " HTTP/1.1", "Host: x", "LOGIN", "Transfer-Encoding: chunked", "_"}},
	} {
		conn := rawDial(t, p)
		conn.say(t, p, append(c.lines, inner...)...)
		if status, _, body := conn.hear(t, http.MethodGet); status != c.status {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	// A length in addition to chunks is dropped: the rest is a separate request, which is checked.
	conn := rawDial(t, p)
	conn.say(t, p, append([]string{
		"POST " + url + "/chunks HTTP/1.1", "Host: x", "LOGIN", "Content-Length: 100", "Transfer-Encoding: chunked", "_", "0", "_",
	}, inner...)...)
	if status, _, body := conn.hear(t, http.MethodPost); status != 200 {
		t.Error(status, body)
	}
	if r, err := http.ReadResponse(conn.in, nil); err == nil && r.StatusCode != http.StatusProxyAuthRequired && r.StatusCode != http.StatusBadRequest {
		t.Error(r.Status)
	}
	mu.Lock()
	defer mu.Unlock()
	if strings.Join(reached, " ") != "/chunks" {
		t.Errorf("the server was reached: %s", reached)
	}
}

// Each request on a connection is checked.
func TestPipelining(t *testing.T) {
	port := plain(t, hello)
	var seen refused
	p := listen(t, Options{Allow: patterns(t, "127.0.0.1:"+port), OnRefused: seen.add})
	url := "http://127.0.0.1:" + port
	conn := rawDial(t, p)
	conn.say(t, p, "GET "+url+"/1 HTTP/1.1", "Host: x", "LOGIN", "_", "GET http://evil.test/ HTTP/1.1", "Host: 127.0.0.1:"+port, "LOGIN", "_",
		"GET "+url+"/2 HTTP/1.1", "Host: x", "LOGIN", "_", "GET "+url+"/3 HTTP/1.1", "Host: x", "_")
	for _, want := range []int{200, 403, 200, 407} {
		if status, _, body := conn.hear(t, http.MethodGet); status != want {
			t.Errorf("%d %s, want %d", status, body, want)
		}
	}
	if seen.String() != "evil.test" {
		t.Error(seen.String())
	}
}

// The addresses of a name are checked, even if the name is on the list.
func TestResolvedAddresses(t *testing.T) {
	port := plain(t, hello)
	hosts := map[string][]string{
		"metadata.test": {"169.254.169.254"}, "metadata6.test": {"fe80::1"}, "mapped.test": {"::ffff:169.254.169.254"},
		"nat64.test": {"64:ff9b::a9fe:a9fe"}, "zero.test": {"0.0.0.0"}, "private.test": {"127.0.0.1"},
		"both.test": {"169.254.169.254", "127.0.0.1"}, "own.test": {"127.0.0.1"},
	}
	list := patterns(t, "*.test:"+port)
	for name := range hosts {
		if name != "private.test" {
			list = append(list, patterns(t, name+":"+port)...)
		}
	}
	var seen refused
	p := listen(t, Options{Allow: list, Resolver: names(t, hosts), OnRefused: seen.add})
	p.list = append(p.list, patterns(t, fmt.Sprintf("own.test:%d", p.address.Port()))...)
	for address, reason := range map[string]string{
		"metadata.test:" + port: "its address 169.254.169.254 is link-local", "metadata6.test:" + port: "its address fe80::1 is link-local",
		"mapped.test:" + port: "169.254.169.254 is link-local", "nat64.test:" + port: "64:ff9b::a9fe:a9fe is link-local",
		"zero.test:" + port: "its address 0.0.0.0 is link-local", "private.test:" + port: "its address 127.0.0.1 is private; to allow it, add",
		fmt.Sprintf("own.test:%d", p.address.Port()): "it is coven's network proxy",
	} {
		for _, method := range []string{"CONNECT ", "GET http://"} {
			conn := rawDial(t, p)
			conn.say(t, p, method+address+" HTTP/1.1", "Host: x", "LOGIN", "_")
			status, _, body := conn.hear(t, http.MethodGet)
			fixable := strings.Contains(body, "sandbox.network")
			if status != 403 || !strings.Contains(body, reason) || fixable != strings.HasPrefix(address, "private.") {
				t.Errorf("%s%s: %d %s, want %s", method, address, status, body, reason)
			}
		}
	}
	// Only the allowed addresses are used.
	conn := rawDial(t, p)
	conn.say(t, p, "GET http://both.test:"+port+"/ HTTP/1.1", "Host: x", "LOGIN", "_")
	if status, _, body := conn.hear(t, http.MethodGet); status != 200 {
		t.Error(status, body)
	}
	if n := len(strings.Fields(seen.String())); n != 7 {
		t.Errorf("%d hosts were reported: %s", n, seen.String())
	}
}

// Requests to hosts that reset, respond with garbage or stop in the middle fail individually.
func TestBrokenHosts(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		status int
	}{
		"reset":       {"", 502},
		"nonsense":    {"SSH-2.0-OpenSSH\r\n", 502},
		"large":       {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2<<20), 502},
		"login":       {"HTTP/1.1 407 Login\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n", 502},
		"two lengths": {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 502},
		"fine":        {"HTTP/1.1 204 Fine\r\n\r\n", 204},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp4", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			var running sync.WaitGroup
			defer running.Wait()
			defer l.Close() //nolint:errcheck // the test is over either way
			running.Go(func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					running.Go(func() { once(conn, c.answer) })
				}
			})
			p := listen(t, Options{Allow: patterns(t, l.Addr().String())})
			conn := rawDial(t, p)
			conn.say(t, p, "GET http://"+l.Addr().String()+"/ HTTP/1.1", "Host: x", "LOGIN", "_")
			if status, _, body := conn.hear(t, http.MethodGet); status != c.status {
				t.Errorf("%d %s", status, body)
			}
		})
	}
}

// once reads a request, answers it and resets the connection.
func once(c net.Conn, answer string) {
	if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
		_, _ = io.WriteString(c, answer)
	}
	if answer == "" {
		_ = c.(*net.TCPConn).SetLinger(0)
	}
	c.Close() //nolint:errcheck // the test is over either way
}
