package egress

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// quiet is the logger of servers whose handshakes fail intentionally.
var quiet = log.New(io.Discard, "", 0)

// patience limits how long a test waits for an immediate event.
const patience = 30 * time.Second

// names starts a DNS server for hosts and returns its resolver.
func names(t *testing.T, hosts map[string][]string) *net.Resolver {
	t.Helper()
	server, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		buffer := make([]byte, 4096)
		for {
			n, from, err := server.ReadFrom(buffer)
			if err != nil {
				return
			}
			if answer, err := resolve(buffer[:n], hosts); err == nil {
				_, _ = server.WriteTo(answer, from)
			}
		}
	})
	t.Cleanup(func() {
		_ = server.Close()
		running.Wait()
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp4", server.LocalAddr().String())
	}}
}

func resolve(packet []byte, hosts map[string][]string) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(packet); err != nil {
		return nil, err
	}
	m.Response, m.Additionals = true, nil
	q := m.Questions[0]
	addrs, known := hosts[strings.TrimSuffix(q.Name.String(), ".")]
	if !known {
		m.RCode = dnsmessage.RCodeNameError
	}
	for _, text := range addrs {
		addr := netip.MustParseAddr(text)
		r := dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET}}
		switch {
		case addr.Is4() && q.Type == dnsmessage.TypeA:
			r.Body = &dnsmessage.AResource{A: addr.As4()}
		case addr.Is6() && q.Type == dnsmessage.TypeAAAA:
			r.Body = &dnsmessage.AAAAResource{AAAA: addr.As16()}
		default:
			continue
		}
		m.Answers = append(m.Answers, r)
	}
	return m.Pack()
}

// patterns parses the entries of a list.
func patterns(t *testing.T, texts ...string) []Pattern {
	t.Helper()
	var all []Pattern
	for _, text := range texts {
		p, err := ParsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

// listen starts a proxy that is closed at the end of the test.
func listen(t *testing.T, o Options) *Proxy {
	t.Helper()
	p, err := Listen(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// refused collects the hosts that a proxy reports.
type refused struct {
	mu    sync.Mutex
	hosts []string
}

func (r *refused) add(host string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hosts = append(r.hosts, host)
}

func (r *refused) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.hosts, " ")
}

// authority issues the tests' certificates.
type authority struct {
	file string // PEM
	pool *x509.CertPool
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{filepath.Join(t.TempDir(), "ca.pem"), x509.NewCertPool(), cert, key}
	a.pool.AddCert(cert)
	if err := os.WriteFile(a.file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return a
}

// serve starts a TLS server for a name and returns its port.
func (a *authority) serve(t *testing.T, name string, handler http.Handler) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	server.Config.ErrorLog = quiet
	server.StartTLS()
	t.Cleanup(server.Close)
	return portOf(server.URL)
}

// plain starts a server without TLS and returns its port.
func plain(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return portOf(server.URL)
}

func portOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		panic(err)
	}
	return u.Port()
}

// client returns an HTTP client that uses the proxy.
func client(t *testing.T, p *Proxy, roots *x509.CertPool) *http.Client {
	t.Helper()
	proxy, err := url.Parse(p.URL())
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{Proxy: http.ProxyURL(proxy), TLSClientConfig: &tls.Config{RootCAs: roots}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

// get returns the status and the body of a page.
func get(c *http.Client, url string) (int, string, error) {
	r, err := c.Get(url)
	if err != nil {
		return 0, "", err
	}
	defer r.Body.Close() //nolint:errcheck // the test is over either way
	body, err := io.ReadAll(r.Body)
	return r.StatusCode, string(body), err
}

// rawConn is a connection to the proxy for arbitrary data.
type rawConn struct {
	*net.TCPConn
	in *bufio.Reader
}

func rawDial(t *testing.T, p *Proxy) *rawConn {
	t.Helper()
	c, err := net.Dial("tcp", p.address.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return &rawConn{c.(*net.TCPConn), bufio.NewReader(c)}
}

// say writes lines. LOGIN stands for the header with the token, and _ for an empty line.
func (c *rawConn) say(t *testing.T, p *Proxy, lines ...string) {
	t.Helper()
	login := "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("coven:"+p.token))
	var text strings.Builder
	for _, line := range lines {
		switch line {
		case "LOGIN":
			line = login
		case "_":
			line = ""
		}
		text.WriteString(line + "\r\n")
	}
	if _, err := io.WriteString(c, text.String()); err != nil {
		t.Fatal(err)
	}
}

// hear returns the status, the reason phrase and the body of a response.
func (c *rawConn) hear(t *testing.T, method string) (int, string, string) {
	t.Helper()
	r, err := http.ReadResponse(c.in, &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	_, phrase, _ := strings.Cut(r.Status, " ")
	if method == http.MethodConnect && r.StatusCode == http.StatusOK {
		return r.StatusCode, phrase, ""
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, phrase, string(body)
}

// ended waits until the proxy has closed the connection.
func (c *rawConn) ended(t *testing.T) {
	t.Helper()
	if _, err := io.Copy(io.Discard, c.in); isTimeout(err) {
		t.Error("the connection is still open")
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return err != nil && errors.As(err, &timeout) && timeout.Timeout()
}

func hello(w http.ResponseWriter, r *http.Request) {
	_, _ = fmt.Fprintf(w, "hello %s %s", r.Host, r.URL)
}
