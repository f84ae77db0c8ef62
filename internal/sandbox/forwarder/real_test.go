package forwarder_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/fake/fakeapi"
	"github.com/coven-run/coven/internal/sandbox/forwarder"
)

// realScript makes the agent print all of its environment that it can see.
const realScript = `
conversations:
- match: Print it
  turns:
  - tools: [{name: Bash, input: {command: "env; cat /proc/self/environ /proc/$PPID/environ 2>/dev/null | tr '\\0' '\\n'; cat $HOME/.claude/.credentials.json"}}]
  - text: "It said ${LAST_TOOL_RESULT}"
- match: Say hi
  turns:
  - text: hi
`

// realClaude returns the path of the real CLI.
func realClaude(t *testing.T) string {
	t.Helper()
	cli := os.Getenv("COVEN_REAL_CLAUDE")
	if _, err := os.Stat(cli); err != nil {
		if os.Getenv("COVEN_REQUIRE_REAL_CLAUDE") != "" {
			t.Fatalf("the real claude is required: %v", err)
		}
		t.Skip("the real claude is not here: make stories brings it")
	}
	cli, err := filepath.Abs(cli)
	check(t, err)
	return cli
}

// play serves a fake model with an API that checks credentials.
func (a *api) play(t *testing.T) {
	t.Helper()
	scenario, err := fakeapi.Parse([]byte(realScript))
	check(t, err)
	fake, err := fakeapi.New(scenario)
	check(t, err)
	t.Cleanup(func() { check(t, fake.Close()) })
	target, err := url.Parse(fake.URL)
	check(t, err)
	a.answer = (&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, FlushInterval: -1}).ServeHTTP
}

// claude runs the CLI with a prompt and returns its output.
func claude(t *testing.T, cli, prompt string, env ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, cli, "-p", prompt, "--output-format", "stream-json", "--verbose", "--setting-sources", "", "--tools", "Bash", "--allowedTools", "Bash")
	cmd.Dir = t.TempDir()
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "IS_SANDBOX=1", "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"CLAUDE_CODE_MAX_RETRIES=4", "TMPDIR=" + t.TempDir(),
	}, env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return string(out)
}

// TestRealClaude runs the real CLI with a forwarder: it works, the API gets the
// credential, and the agent's shell sees only the placeholder.
func TestRealClaude(t *testing.T) {
	cli := realClaude(t)
	for _, tt := range []struct {
		name string
		env  []string
		sent string
	}{
		{"key", []string{"ANTHROPIC_API_KEY=SECRET-KEY"}, "SECRET-KEY"},
		{"token", []string{"ANTHROPIC_AUTH_TOKEN=SECRET-TOKEN"}, "SECRET-TOKEN"},
		{"login", nil, "AT1"}, // refreshed
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := newAccount(t, loginFile("AT0", "RT0", -time.Hour))
			a.api.accepted = nil
			a.api.play(t)
			login, err := forwarder.Find(variables(append(tt.env, "ANTHROPIC_BASE_URL="+a.api.URL)...), a.home)
			check(t, err)
			if tt.env == nil {
				forwarder.SetTokenEndpoint(login, a.tokens.URL)
			}
			f := startWith(t, login, nil)
			out := claude(t, cli, "Print it", append(f.Env(), "HOME="+t.TempDir(), "HTTP_PROXY=http://127.0.0.1:1", "HTTPS_PROXY=http://127.0.0.1:1")...)
			if !strings.Contains(out, "It said ") || !strings.Contains(out, placeholder(f)) {
				t.Errorf("the agent did not get through:\n%s", out)
			}
			for _, secret := range []string{tt.sent, "AT0", "RT0", "RT1"} {
				if strings.Contains(out, secret) {
					t.Errorf("the agent printed %s", secret)
				}
			}
			seen, _ := a.api.requests()
			for _, r := range seen {
				if got := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") + r.Header.Get("X-Api-Key"); got != tt.sent {
					t.Errorf("%s %s carried %q", r.Method, r.RequestURI, got)
				}
			}
			if len(seen) < 2 {
				t.Errorf("%d requests", len(seen))
			}
		})
	}
}

// TestRealRace lets the user's CLI and several coven processes refresh the same
// login concurrently. Each refresh token is sent once, and all processes end with a valid login.
func TestRealRace(t *testing.T) {
	cli := realClaude(t)
	a := newAccount(t, loginFile("AT0", "RT0", -time.Hour))
	a.api.play(t)
	a.tokens.answer = func(_ http.ResponseWriter, r *http.Request, grant func()) {
		select { // time for the other processes to find the lock
		case <-time.After(500 * time.Millisecond):
		case <-r.Context().Done():
		}
		grant()
	}
	proxy, certs := interceptor(t, a.tokens)
	for round := range 3 {
		access, refresh := a.savedTokens(t)
		check(t, os.WriteFile(a.file, []byte(loginFile(access, refresh, -time.Hour)), 0o600))
		f := startWith(t, a.login(t), nil)
		var all sync.WaitGroup
		all.Go(func() {
			out := claude(t, cli, "Say hi", "HOME="+a.home, "ANTHROPIC_BASE_URL="+a.api.URL, "HTTPS_PROXY="+proxy, "NO_PROXY=127.0.0.1", "NODE_EXTRA_CA_CERTS="+certs)
			if !strings.Contains(out, `"result":"hi"`) {
				t.Errorf("round %d: the user's own CLI:\n%s", round, out)
			}
		})
		starts := time.Duration(round) * 700 * time.Millisecond // the CLI takes about a second to start
		for range 2 {
			all.Go(func() {
				<-time.After(starts)
				if out := run(t, 1, a.env()...); !strings.HasPrefix(out, "200") && !strings.HasPrefix(out, "400") { // 400: the fake model does not know "{}"
					t.Errorf("round %d: coven: %s", round, out)
				}
			})
		}
		all.Go(func() {
			<-time.After(starts)
			if status, body := post(f, "{}"); status == 401 || status >= 500 {
				t.Errorf("round %d: forwarder: %d %s", round, status, body)
			}
		})
		all.Wait()
	}
	if asked, twice := a.tokens.count(); twice != 0 || asked < 3 {
		t.Errorf("%d refresh tokens were sent, %d of them again", asked, twice)
	}
	t.Logf("refreshed by %q", a.tokens.by)
	if _, refresh := a.savedTokens(t); refresh != fmt.Sprintf("RT%d", a.tokens.next) {
		t.Errorf("%s is saved, %d is the present one", refresh, a.tokens.next)
	}
	for _, lock := range []string{".claude/.oauth_refresh.lock", ".claude.lock", ".claude/.storage-write.lock"} {
		if _, err := os.Stat(filepath.Join(a.home, lock)); err == nil {
			t.Errorf("%s is left", lock)
		}
	}
}

// interceptor returns a proxy that redirects all hosts to a token endpoint, and the file
// with its certificate.
func interceptor(t *testing.T, tokens http.Handler) (proxy, certs string) {
	t.Helper()
	certs, leaf := certificates(t, "platform.claude.com", "api.anthropic.com")
	mux := http.NewServeMux()
	mux.Handle("/v1/oauth/token", tokens)
	hosts := httptest.NewUnstartedServer(mux)
	hosts.Config.ErrorLog = log.New(io.Discard, "", 0) // the CLI may exit while connecting
	hosts.TLS = &tls.Config{Certificates: []tls.Certificate{leaf}}
	hosts.StartTLS()
	t.Cleanup(hosts.Close)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		out, err := net.Dial("tcp", hosts.Listener.Addr().String())
		if err != nil {
			return
		}
		defer func() { _ = out.Close() }()
		in, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = in.Close() }()
		_, _ = io.WriteString(in, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
		_, _ = io.Copy(in, out)
	}))
	t.Cleanup(server.Close)
	return server.URL, certs
}

// certificates creates a certificate for hosts, and a file with the certificate of its issuer.
func certificates(t *testing.T, hosts ...string) (file string, leaf tls.Certificate) {
	t.Helper()
	sign := func(template, parent *x509.Certificate, key, by *ecdsa.PrivateKey) []byte {
		template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(time.Now().UnixNano()), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
		der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
		check(t, err)
		return der
	}
	issuerKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	issuer := &x509.Certificate{Subject: pkix.Name{CommonName: "issuer"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	issuerDER := sign(issuer, issuer, issuerKey, issuerKey)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	der := sign(&x509.Certificate{Subject: pkix.Name{CommonName: hosts[0]}, DNSNames: hosts, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, issuer, key, issuerKey)
	file = filepath.Join(t.TempDir(), "issuer.pem")
	check(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: issuerDER}), 0o600))
	return file, tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
