package web

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/event"
)

// Another user of the machine, who reaches the port, gets the page for a login and nothing else.
func TestAttackWithoutToken(t *testing.T) {
	s := newSite(t)
	for _, path := range []string{"/", "/costs", "/task/app-1", "/task/app-1/log", "/events", "/events?task=app-1&session=s1", "/nope", "/login", "/login?code=", "/login?code=x"} {
		text := s.get(path, http.StatusUnauthorized)
		if strings.Contains(text, "app-1") || strings.Contains(text, "Add a flag") {
			t.Errorf("%s shows tasks", path)
		}
	}
	answer, _ := s.request(http.MethodPost, "/do/R", "nonce=x", "Sec-Fetch-Site: same-origin")
	if answer.StatusCode != http.StatusUnauthorized || s.source.commands() != "[]" {
		t.Error(answer.StatusCode, s.source.commands())
	}
	for _, cookie := range []string{"", "x", "..", "9999999999.x.y", "9999999999.x." + prove(nil, "login", s.host, "9999999999", "x")} {
		s.get("/", http.StatusUnauthorized, "Cookie: "+s.cookieName()+"="+cookie)
	}
}

func (s *site) cookieName() string {
	return s.guard.cookie(&http.Request{Host: s.host})
}

// DNS rebinding: a name of the attacker leads to this server, with a cookie or without.
func TestAttackRebinding(t *testing.T) {
	s := newSite(t).login()
	for _, host := range []string{"evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example", "169.254.1.1", "[::2]", "127.0.0.2", ""} {
		for _, path := range []string{"/", "/assets/page.js", "/login?code=" + s.guard.Code(), "/events"} {
			if host != "" {
				s.get(path, http.StatusMisdirectedRequest, "Host: "+host)
			}
		}
	}
	if len(s.logins) != 1 {
		t.Error("a rebound name used a code")
	}
	port := s.host[strings.LastIndexByte(s.host, ':'):]
	s.get("/", http.StatusUnauthorized, "Host: localhost"+port) // its cookie is another
	s.get("/login", http.StatusUnauthorized, "Host: [::1]"+port)
}

// A page of another site sends a form, or reads the stream, with the cookie of the person.
func TestAttackCrossSite(t *testing.T) {
	s := newSite(t).login()
	for _, header := range []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Origin: http://evil.example", "Origin: null", "Origin: https://" + s.host, "Origin: http://127.0.0.1:1"} {
		for _, path := range []string{"/", "/events", "/events?task=app-1&session=s1", "/assets/page.js", "/login?code=" + s.guard.Code()} {
			s.get(path, http.StatusForbidden, header)
		}
		form := "nonce=" + s.nonce("/", "/do/R")
		if answer, _ := s.request(http.MethodPost, "/do/R", form, header); answer.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d", header, answer.StatusCode)
		}
	}
	nonce := s.nonce("/", "/do/R")
	for _, test := range []struct {
		form    string
		headers []string
		status  int
	}{
		{"nonce=" + nonce, nil, http.StatusForbidden},                                                 // no proof of the origin
		{"", []string{"Sec-Fetch-Site: same-origin"}, http.StatusForbidden},                           // no nonce
		{"nonce=x.y.z", []string{"Sec-Fetch-Site: same-origin"}, http.StatusForbidden},                // invalid
		{"nonce=" + s.ownNonce("/tasks"), []string{"Origin: http://" + s.host}, http.StatusForbidden}, // of another form
		{"nonce=" + nonce, []string{"Origin: http://" + s.host}, http.StatusSeeOther},
		{"nonce=" + nonce, []string{"Origin: http://" + s.host}, http.StatusConflict}, // again
	} {
		if answer, text := s.request(http.MethodPost, "/do/R", test.form, test.headers...); answer.StatusCode != test.status {
			t.Errorf("%s %v: %d, want %d: %s", test.form, test.headers, answer.StatusCode, test.status, text)
		}
	}
	if got := s.source.commands(); got != `[["run"]]` {
		t.Error("started", got)
	}
	for _, method := range []string{http.MethodOptions, http.MethodPut, http.MethodDelete, http.MethodPatch, "CONNECT"} {
		answer, _ := s.request(method, "/do/R", "")
		if answer.StatusCode != http.StatusMethodNotAllowed || answer.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %d", method, answer.StatusCode)
		}
	}
	old := s.nonce("/", "/do/R")
	s.source.later(loginLife)
	if answer, _ := s.request(http.MethodPost, "/do/R", "nonce="+old, "Origin: http://"+s.host); answer.StatusCode != http.StatusUnauthorized {
		t.Error("the cookie and the form outlive their time:", answer.StatusCode)
	}
}

// The code of the address works once, is removed from the address, and no page gives its address away. Headers keep scripts,
// frames and caches out.
func TestAttackAddress(t *testing.T) {
	s := newSite(t)
	path := strings.TrimPrefix(s.LoginURL(s.host, "a/../b <c>"), "http://"+s.host)
	s.get(path, http.StatusUnauthorized, "Sec-Purpose: prefetch;prerender") // does not use it
	answer, _ := s.request(http.MethodGet, path, "")
	cookie := answer.Header.Get("Set-Cookie")
	if answer.StatusCode != http.StatusSeeOther || answer.Header.Get("Location") != "/task/a%2F..%2Fb%20%3Cc%3E" {
		t.Error(answer.StatusCode, answer.Header)
	}
	for _, want := range []string{"HttpOnly", "SameSite=Strict", "Path=/"} {
		if !strings.Contains(cookie, want) {
			t.Errorf("no %s: %s", want, cookie)
		}
	}
	if strings.Contains(cookie, s.options.Token) || strings.Contains(cookie, s.guard.Code()) {
		t.Error("the cookie is the secret")
	}
	s.get(path, http.StatusUnauthorized)
	for _, path := range []string{"/", "/costs", "/task/app-1", "/login", "/assets/page.js", "/nope"} {
		answer, text := s.request(http.MethodGet, path, "")
		for name, want := range map[string]string{
			"Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Cross-Origin-Resource-Policy": "same-origin",
			"Cross-Origin-Opener-Policy": "same-origin", "Content-Security-Policy": policy, "Access-Control-Allow-Origin": "",
		} {
			if got := answer.Header.Get(name); got != want {
				t.Errorf("%s: %s: %q", path, name, got)
			}
		}
		if strings.Contains(text, s.options.Token) || strings.Contains(text, s.guard.Code()) {
			t.Errorf("%s contains the secret", path)
		}
	}
	for _, never := range []string{"unsafe", "http:", "https:", "data:", "*"} {
		if strings.Contains(policy, never) {
			t.Error("the policy has", never)
		}
	}
}

// Names and texts of agents are text: titles, findings, steps, receipts, questions, paths, branches.
func TestAttackScript(t *testing.T) {
	s := newSite(t).login()
	inline := regexp.MustCompile(`(?i)<script>|<img|<style|\sstyle=|<[^>]*\son[a-z]+=|javascript:`)
	for _, path := range []string{"/", "/costs", "/task/app-1", "/task/app-2", "/task/app-3", "/task/" + url.PathEscape("a/../b <c>"), "/task/" + url.PathEscape(script)} {
		answer, text := s.request(http.MethodGet, path, "")
		if strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") && inline.MatchString(text) {
			t.Errorf("%s: %s", path, inline.FindString(text))
		}
		if path != "/task/"+url.PathEscape(script) && strings.ContainsAny(text, "\x1b\u202e\u200b") {
			t.Errorf("%s has control characters", path)
		}
	}
	writeEvents(t, s, "s1", 0, script, "two\r\nid: 99\n\ndata: x")
	events := s.follow(t, "task=app-1&session=s1", "")
	for events.Scan() {
		line := events.Text()
		if strings.ContainsAny(line, "\x1b\u202e\u200b\r") || line == "id: 99" || line == "data: x" {
			t.Errorf("%q", line)
		}
		if line == "id: 2" {
			break
		}
	}
}

// Paths do not lead out of the assets and the sessions.
func TestAttackPaths(t *testing.T) {
	s := newSite(t).login()
	for _, path := range []string{"/assets/../server.go", "/assets/..%2f..%2fgo.mod", "/assets/%2e%2e/guard.go", "/task/..%2f..%2fetc/log", "/task/..", "/task/%2e%2e%2fprivate", "//etc/passwd", "/task/app-1/../../x"} {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.host)
		if err != nil {
			t.Fatal(err)
		}
		cookies := s.client.Jar.Cookies(&url.URL{Scheme: "http", Host: s.host, Path: "/"})
		_, err = io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: "+s.host+"\r\nCookie: "+cookies[0].String()+"\r\nConnection: close\r\n\r\n")
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(conn)
		if err != nil || bytes.HasPrefix(text, []byte("HTTP/1.1 200")) || bytes.Contains(text, []byte("package web")) || bytes.Contains(text, []byte("root:")) {
			t.Errorf("%s: %s %v", path, text, err)
		}
		_ = conn.Close()
	}
	for _, query := range []string{"task=app-1&session=../private", "task=app-1&session=s2", "task=..&session=..", "task=app-5&session="} {
		s.get("/events?"+query, http.StatusNoContent)
	}
}

// The journal in the directory of a session is a link to a file elsewhere.
func TestAttackLink(t *testing.T) {
	s := newSite(t).login()
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("the secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(s.dir, "s1"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(s.dir, "s1", "events.jsonl")); err != nil {
		t.Fatal(err)
	}
	if text := s.get("/task/app-1/log", http.StatusInternalServerError); strings.Contains(text, "secret\n") && strings.Contains(text, "the secret") {
		t.Error(text)
	}
	if text := s.get("/events?task=app-1&session=s1", http.StatusOK); strings.Contains(text, "secret") {
		t.Error(text)
	}
}

// 1,000 connections that never send a request do not keep the person out.
func TestAttackSlowConnections(t *testing.T) {
	s := newSite(t).login()
	for range 1000 {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.host)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // of the attacker
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: "); err != nil {
			t.Log(err) // it was closed
		}
	}
	s.client.CloseIdleConnections()
	began := time.Now()
	s.get("/", http.StatusOK)
	t.Log("the board after", time.Since(began))
	s.lobby.mu.Lock()
	defer s.lobby.mu.Unlock()
	if len(s.lobby.waiting) > maxWaiting {
		t.Error(len(s.lobby.waiting), "connections wait")
	}
}

// Large headers and forms are refused.
func TestAttackSize(t *testing.T) {
	s := newSite(t).login()
	s.get("/", http.StatusRequestHeaderFieldsTooLarge, "X-Big: "+strings.Repeat("x", 2*maxHeader))
	form := "nonce=" + s.nonce("/", "/tasks") + "&title=" + strings.Repeat("x", maxBody)
	if answer, text := s.request(http.MethodPost, "/tasks", form, "Sec-Fetch-Site: same-origin"); answer.StatusCode != http.StatusBadRequest || s.source.commands() != "[]" {
		t.Error(answer.StatusCode, text)
	}
	s.mu.Lock()
	s.streams = maxStreams
	s.mu.Unlock()
	s.get("/events", http.StatusServiceUnavailable)
}

// A page that is read-only refuses every POST, and offers none.
func TestAttackReadOnly(t *testing.T) {
	s := newSite(t, func(o *Options) { o.ReadOnly = true }).login()
	for _, path := range []string{"/do/R", "/tasks", "/task/app-1/do/a", "/task/app-1/do/r", "/task/app-2/questions/1/a", "/task/app-3/do/b", "/login"} {
		form := url.Values{"nonce": {s.ownNonce(path)}, "text": {"x"}, "title": {"x"}, "token": {s.options.Token}}
		if answer, _ := s.request(http.MethodPost, path, form.Encode(), "Sec-Fetch-Site: same-origin"); answer.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d", path, answer.StatusCode)
		}
	}
	for _, path := range []string{"/", "/task/app-1", "/task/app-2", "/task/app-3", "/costs"} {
		if text := s.get(path, http.StatusOK); strings.Contains(text, "<form") {
			t.Errorf("%s has a form", path)
		}
	}
	if got := s.source.commands(); got != "[]" {
		t.Error("started", got)
	}
}

// After ten failed logins in a minute, none is accepted, also with the token.
func TestAttackGuesses(t *testing.T) {
	s := newSite(t)
	sign := func(token string, status int) {
		t.Helper()
		answer, text := s.request(http.MethodPost, "/login", "token="+token, "Sec-Fetch-Site: same-origin")
		if answer.StatusCode != status {
			t.Errorf("%d, want %d: %s", answer.StatusCode, status, text)
		}
	}
	sign(s.options.Token, http.StatusSeeOther)
	for i := range maxFailed {
		if i%2 == 0 {
			s.get("/login?code=guess", http.StatusUnauthorized)
			continue
		}
		sign("guess", http.StatusUnauthorized)
	}
	sign(s.options.Token, http.StatusTooManyRequests)
	s.get("/login?code="+s.guard.Code(), http.StatusTooManyRequests)
	s.get("/", http.StatusOK) // who is logged in stays so
	s.source.later(failedWithin)
	sign(s.options.Token, http.StatusSeeOther)
}

// Beyond loopback there is TLS, with a certificate that stays the same, and its names only.
func TestAttackNetwork(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "private")
	hosts := []string{"127.0.0.1", "coven.example"}
	now := time.Now()
	c, err := Certificate(dir, hosts, now)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Certificate(dir, hosts[:1], now)
	if err != nil || Fingerprint(again) != Fingerprint(c) || len(Fingerprint(c)) != 95 {
		t.Error(err, Fingerprint(c))
	}
	for _, other := range []struct {
		hosts []string
		at    time.Time
	}{{[]string{"192.0.2.1"}, now}, {hosts, now.Add(2 * certificateLife)}} {
		fresh, err := Certificate(dir, other.hosts, other.at)
		if err != nil || Fingerprint(fresh) == Fingerprint(c) {
			t.Error(err, other)
		}
	}
	s := newSite(t, func(o *Options) { o.Certificate = c })
	pool := x509.NewCertPool()
	pool.AddCert(c.Leaf)
	s.client.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	get := func(address, host string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		if host != "" {
			r.Host = host
		}
		answer, err := s.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		return answer
	}
	answer := get(s.LoginURL(s.host, ""), "")
	if cookie := answer.Header.Get("Set-Cookie"); answer.StatusCode != http.StatusSeeOther || !strings.HasPrefix(cookie, "__Host-") || !strings.Contains(cookie, "Secure") {
		t.Error(answer.StatusCode, cookie)
	}
	for host, status := range map[string]int{"": http.StatusOK, "coven.example": http.StatusUnauthorized, "localhost": http.StatusMisdirectedRequest, "192.168.1.1": http.StatusMisdirectedRequest} {
		if got := get("https://"+s.host+"/", host).StatusCode; got != status {
			t.Errorf("%q: %d", host, got)
		}
	}
	if got := get("http://"+s.host+"/", "").StatusCode; got != http.StatusBadRequest {
		t.Error("without TLS:", got)
	}
}

// writeEvents appends events to the journal of a session, after the given number of events.
func writeEvents(t *testing.T, s *site, id string, after int, texts ...string) {
	t.Helper()
	dir := filepath.Join(s.dir, id)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	j, err := event.Open(filepath.Join(dir, "events.jsonl"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(j.Events()); n != after {
		t.Fatal(n, "events")
	}
	for _, text := range texts {
		if err := j.Append(event.Event{Type: event.Warning, Session: id, Task: "t"}, event.Text{Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// follow opens a stream, and returns its lines. It ends with the test.
func (s *site) follow(t *testing.T, query, last string) *bufio.Scanner {
	t.Helper()
	body := s.open(t, query, last)
	t.Cleanup(func() { _ = body.Close() })
	return bufio.NewScanner(body)
}

func (s *site) open(t *testing.T, query, last string) io.ReadCloser {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.host+"/events?"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	answer, err := s.client.Do(r)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatal(answer, err)
	}
	return answer.Body
}
