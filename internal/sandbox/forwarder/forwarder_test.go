package forwarder_test

import (
	"bufio"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/sandbox/forwarder"
)

// The credential is chosen in the CLI's order, and the agent gets placeholders for
// the variables that the CLI would have used.
func TestFind(t *testing.T) {
	login := loginFile("AT0", "RT0", time.Hour)
	for _, tt := range []struct {
		name        string
		env         []string
		file        string
		key, bearer string
		held        []string // variables with the placeholder
	}{
		{"key", []string{"ANTHROPIC_API_KEY=K", "CLAUDE_CODE_OAUTH_TOKEN=O"}, login, "K", "", []string{"ANTHROPIC_API_KEY"}},
		{"token", []string{"ANTHROPIC_AUTH_TOKEN=A", "CLAUDE_CODE_OAUTH_TOKEN=O"}, login, "", "A", []string{"ANTHROPIC_AUTH_TOKEN"}},
		{"token and key", []string{"ANTHROPIC_AUTH_TOKEN=A", "ANTHROPIC_API_KEY=K"}, "", "K", "A", []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"}},
		{"oauth", []string{"CLAUDE_CODE_OAUTH_TOKEN=O"}, login, "", "O", []string{"CLAUDE_CODE_OAUTH_TOKEN"}},
		{"login", nil, login, "", "AT0", []string{"CLAUDE_CODE_OAUTH_TOKEN"}},
		{"off", []string{"CLAUDE_CODE_USE_BEDROCK=0"}, login, "", "AT0", []string{"CLAUDE_CODE_OAUTH_TOKEN"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			api, home := newAPI(t), t.TempDir()
			if tt.file != "" {
				write(t, filepath.Join(home, ".claude", ".credentials.json"), tt.file)
			}
			found, err := forwarder.Find(variables(append(tt.env, "ANTHROPIC_BASE_URL="+api.URL+"/gate")...), home)
			check(t, err)
			f := startWith(t, found, nil)
			if status, body := post(f, "hello"); status != 200 || body != "fine" {
				t.Fatalf("%d %s", status, body)
			}
			seen, bodies := api.requests()
			got := seen[0].Header
			if got.Get("X-Api-Key") != tt.key || strings.TrimPrefix(got.Get("Authorization"), "Bearer ") != tt.bearer {
				t.Errorf("sent %q", got)
			}
			if seen[0].RequestURI != "/gate/v1/messages?beta=true" || bodies[0] != "hello" || "http://"+seen[0].Host != api.URL {
				t.Errorf("sent %s to %s: %q", seen[0].RequestURI, seen[0].Host, bodies[0])
			}
			var held []string
			for _, kv := range f.Env() {
				if name, value, _ := strings.Cut(kv, "="); value == placeholder(f) {
					held = append(held, name)
				}
			}
			if !slices.Equal(held, tt.held) || !slices.Contains(f.Env(), "ANTHROPIC_BASE_URL="+f.URL()) {
				t.Errorf("the agent gets %q", f.Env())
			}
			if plan := slices.Contains(f.Env(), "CLAUDE_CODE_SUBSCRIPTION_TYPE=max"); plan != (tt.bearer == "AT0") || slices.Contains(f.Env(), "CLAUDE_CODE_RATE_LIMIT_TIER=") {
				t.Errorf("the kind of the subscription: %q", f.Env())
			}
		})
	}
}

// Login methods that cannot be forwarded are distinguished from missing and invalid logins.
func TestFindNothing(t *testing.T) {
	for _, tt := range []struct {
		name, env, settings, login string
		want                       error
		text                       string
	}{
		{name: "nothing", want: forwarder.ErrNoLogin, text: "claude auth login"},
		{name: "bedrock", env: "CLAUDE_CODE_USE_BEDROCK=1", want: forwarder.ErrNotForwarded, text: "CLAUDE_CODE_USE_BEDROCK"},
		{name: "vertex", env: "CLAUDE_CODE_USE_VERTEX=true", want: forwarder.ErrNotForwarded, text: "CLAUDE_CODE_USE_VERTEX"},
		{name: "helper", settings: `{"apiKeyHelper":"/bin/key"}`, want: forwarder.ErrNotForwarded, text: "apiKeyHelper"},
		{name: "logged out", login: `{"mcpOAuth":{}}`, want: forwarder.ErrNoLogin, text: "claude auth login"},
		{name: "null", login: `null`, want: forwarder.ErrNoLogin, text: "claude auth login"},
		{name: "garbage", login: `{"claudeAiOauth":{"accessToken":"SECRET`, text: "not valid JSON"},
		{name: "too big", login: strings.Repeat(" ", 2<<20), text: "regular file"},
		{name: "url", env: "ANTHROPIC_BASE_URL=ftp://SECRET@x", text: "ANTHROPIC_BASE_URL"},
		{name: "url with a user", env: "ANTHROPIC_BASE_URL=https://me:SECRET@x", text: "ANTHROPIC_BASE_URL"},
		{name: "url that is none", env: "ANTHROPIC_BASE_URL=https://SECRET%zz", text: "ANTHROPIC_BASE_URL"},
		{name: "url without a host", env: "ANTHROPIC_BASE_URL=https:///SECRET", text: "ANTHROPIC_BASE_URL"},
		{name: "url with a query", env: "ANTHROPIC_BASE_URL=https://x?key=SECRET", text: "ANTHROPIC_BASE_URL"},
		{name: "url with a fragment", env: "ANTHROPIC_BASE_URL=https://x#SECRET", text: "ANTHROPIC_BASE_URL"},
		{name: "headers", env: "ANTHROPIC_CUSTOM_HEADERS=SECRET", text: "line 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home := t.TempDir()
			if tt.settings != "" {
				write(t, filepath.Join(home, ".claude", "settings.json"), tt.settings)
			}
			if tt.login != "" {
				write(t, filepath.Join(home, ".claude", ".credentials.json"), tt.login)
			}
			login, err := forwarder.Find(variables(tt.env), home)
			if err == nil || login != nil || !strings.Contains(err.Error(), tt.text) || strings.Contains(err.Error(), "SECRET") {
				t.Fatalf("%v, %v", login, err)
			}
			for _, kind := range []error{forwarder.ErrNoLogin, forwarder.ErrNotForwarded} {
				if errors.Is(err, kind) != errors.Is(tt.want, kind) {
					t.Errorf("%v is %v: %v", err, kind, errors.Is(err, kind))
				}
			}
		})
	}
}

// Only the few requests of a CLI with the placeholder reach the API.
func TestRefuses(t *testing.T) {
	api := newAPI(t)
	f, _ := start(t, "ANTHROPIC_API_KEY=SECRET", "ANTHROPIC_BASE_URL="+api.URL)
	other, _ := start(t, "ANTHROPIC_API_KEY=SECRET", "ANTHROPIC_BASE_URL="+api.URL)
	mine := "Bearer " + placeholder(f)
	for _, tt := range []struct {
		name, method, target string
		header               http.Header
		host                 string
		status               int
	}{
		{name: "no placeholder", status: 401},
		{name: "another session's", header: http.Header{"X-Api-Key": {placeholder(other)}}, status: 401},
		{name: "empty", header: http.Header{"X-Api-Key": {""}, "Authorization": {"Bearer "}}, status: 401},
		{name: "the credential", header: http.Header{"X-Api-Key": {"SECRET"}}, status: 401},
		{name: "a second key", header: http.Header{"Authorization": {mine}, "X-Api-Key": {"SECRET"}}, status: 401},
		{name: "basic", header: http.Header{"Authorization": {"Basic " + placeholder(f)}}, status: 401},
		{name: "a name for loopback", header: http.Header{"Authorization": {mine}}, host: "evil.example", status: 403},
		{name: "localhost", header: http.Header{"Authorization": {mine}}, host: "localhost", status: 403},
		{name: "a key of its own", target: "/api/oauth/claude_cli/create_api_key", header: http.Header{"Authorization": {mine}}, status: 403},
		{name: "a refresh", target: "/v1/oauth/token", header: http.Header{"Authorization": {mine}}, status: 403},
		{name: "files", target: "/v1/files", header: http.Header{"Authorization": {mine}}, status: 403},
		{name: "dots", target: "/v1/messages/../oauth/token", header: http.Header{"Authorization": {mine}}, status: 403},
		{name: "encoded dots", target: "/v1/messages/%2e%2e/oauth", header: http.Header{"Authorization": {mine}}, status: 403},
		{name: "an encoded slash", target: "/v1%2fmessages", header: http.Header{"Authorization": {mine}}, status: 403},
		{name: "two slashes", target: "//evil.example/v1/messages", header: http.Header{"Authorization": {mine}}, status: 403},
		{name: "a user", target: "/@evil.example/v1/messages", header: http.Header{"Authorization": {mine}}, status: 403},
		{name: "delete", method: "DELETE", header: http.Header{"Authorization": {mine}}, status: 403},
		{name: "trace", method: "TRACE", header: http.Header{"Authorization": {mine}}, status: 403},
		{name: "upgrade", header: http.Header{"Authorization": {mine}, "Connection": {"Upgrade"}, "Upgrade": {"websocket"}}, status: 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			method, target := tt.method, tt.target
			if method == "" {
				method = http.MethodPost
			}
			if target == "" {
				target = "/v1/messages"
			}
			req, err := http.NewRequest(method, f.URL()+target, nil)
			check(t, err)
			req.Header, req.Host = tt.header, tt.host
			if req.Header == nil {
				req.Header = http.Header{}
			}
			status, body := do(req)
			if status != tt.status {
				t.Errorf("%d %s", status, body)
			}
			if _, message := problem(t, body); strings.Contains(message, "SECRET") || strings.Contains(message, placeholder(f)) {
				t.Errorf("the answer holds the secret: %s", message)
			}
		})
	}
	if seen, _ := api.requests(); len(seen) != 0 {
		t.Errorf("forwarded: %s %s", seen[0].Method, seen[0].RequestURI)
	}
}

// raw sends bytes to a forwarder and returns the whole response.
func raw(t *testing.T, f *forwarder.Forwarder, text string) string {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(f.URL(), "http://"))
	check(t, err)
	defer func() { _ = conn.Close() }()
	check(t, conn.SetDeadline(time.Now().Add(patience)))
	text = strings.NewReplacer("HOST", strings.TrimPrefix(f.URL(), "http://"), "MINE", placeholder(f)).Replace(text)
	_, err = io.WriteString(conn, text)
	check(t, err)
	check(t, conn.(*net.TCPConn).CloseWrite())
	out, _ := io.ReadAll(conn) // a reset counts as a response
	return string(out)
}

// Ambiguous requests reach the API as at most one request, with the right placeholder, or not at all.
func TestSmuggling(t *testing.T) {
	hidden := "POST /v1/oauth/token HTTP/1.1\r\nHost: HOST\r\nX-Api-Key: MINE\r\nContent-Length: 0\r\n\r\n"
	for name, text := range map[string]string{
		"length and chunks":   "POST /v1/messages HTTP/1.1\r\nHost: HOST\r\nX-Api-Key: MINE\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		"two lengths":         "POST /v1/messages HTTP/1.1\r\nHost: HOST\r\nX-Api-Key: MINE\r\nContent-Length: 0\r\nContent-Length: 9\r\n\r\n" + hidden,
		"a strange encoding":  "POST /v1/messages HTTP/1.1\r\nHost: HOST\r\nX-Api-Key: MINE\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + hidden,
		"a folded header":     "POST /v1/messages HTTP/1.1\r\nHost: HOST\r\nX-Api-Key: MINE\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n" + hidden,
		"the next, without":   "POST /v1/messages HTTP/1.1\r\nHost: HOST\r\nX-Api-Key: MINE\r\nContent-Length: 0\r\n\r\nPOST /v1/messages HTTP/1.1\r\nHost: HOST\r\nContent-Length: 0\r\n\r\n",
		"a whole address":     "POST http://evil.example/v1/messages HTTP/1.1\r\nHost: HOST\r\nX-Api-Key: MINE\r\nContent-Length: 0\r\n\r\n",
		"a tunnel":            "CONNECT evil.example:443 HTTP/1.1\r\nHost: HOST\r\nX-Api-Key: MINE\r\n\r\n",
		"no host":             "POST /v1/messages HTTP/1.0\r\nX-Api-Key: MINE\r\nContent-Length: 0\r\n\r\n",
		"two hosts":           "POST /v1/messages HTTP/1.1\r\nHost: HOST\r\nHost: evil.example\r\nX-Api-Key: MINE\r\nContent-Length: 0\r\n\r\n",
		"a header too long":   "POST /v1/messages HTTP/1.1\r\nHost: HOST\r\nX-Api-Key: MINE\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n",
		"connection strips":   "POST /v1/messages HTTP/1.1\r\nHost: HOST\r\nX-Api-Key: MINE\r\nConnection: X-Api-Key, Authorization\r\nContent-Length: 0\r\n\r\n",
		"proxy authorization": "POST /v1/messages HTTP/1.1\r\nHost: HOST\r\nX-Api-Key: MINE\r\nProxy-Authorization: Bearer x\r\nCookie: a=b\r\nX-Forwarded-Host: evil\r\nContent-Length: 0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			api := newAPI(t)
			f, _ := start(t, "ANTHROPIC_API_KEY=SECRET", "ANTHROPIC_BASE_URL="+api.URL)
			out := raw(t, f, text)
			if strings.Contains(out, "SECRET") {
				t.Errorf("the answer holds the credential: %s", out)
			}
			api.Close() // wait for a request that is still in flight
			seen, _ := api.requests()
			if len(seen) > 1 {
				t.Errorf("%d requests were forwarded", len(seen))
			}
			for _, r := range seen {
				if r.URL.Path != "/v1/messages" || r.Header.Get("X-Api-Key") != "SECRET" || r.Header.Get("Cookie")+r.Header.Get("X-Forwarded-Host")+r.Header.Get("Proxy-Authorization") != "" {
					t.Errorf("forwarded: %s %q", r.RequestURI, r.Header)
				}
			}
		})
	}
}

// A response is streamed, including its pauses and a broken end.
func TestStream(t *testing.T) {
	api := newAPI(t)
	next, gone := make(chan struct{}), make(chan struct{})
	api.answer = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "event: one\n\n")
		_ = http.NewResponseController(w).Flush()
		switch r.Header.Get("X-Then") {
		case "die":
			<-next
			panic(http.ErrAbortHandler)
		case "wait":
			<-r.Context().Done()
			close(gone)
		}
	}
	f, _ := start(t, "ANTHROPIC_API_KEY=K", "ANTHROPIC_BASE_URL="+api.URL)
	ask := func(ctx context.Context, then string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.URL()+"/v1/messages", strings.NewReader("{}"))
		check(t, err)
		req.Header = http.Header{"X-Api-Key": {placeholder(f)}, "X-Then": {then}}
		resp, err := http.DefaultClient.Do(req)
		check(t, err)
		line, err := bufio.NewReaderSize(resp.Body, 16).ReadString('\n')
		if line != "event: one\n" || err != nil {
			t.Fatalf("%q, %v", line, err)
		}
		return resp
	}
	broken := ask(t.Context(), "die")
	close(next) // only now, so the part before was not held back
	if rest, err := io.ReadAll(broken.Body); err == nil {
		t.Errorf("a broken answer ended well: %q", rest)
	}
	_ = broken.Body.Close()
	ctx, cancel := context.WithCancel(t.Context())
	left := ask(ctx, "wait")
	cancel()
	_ = left.Body.Close()
	select {
	case <-gone:
	case <-time.After(patience):
		t.Error("the API was not told that the client has gone")
	}
}

// A slow API does not time out: the CLI has its own time limits.
// A request with an endless header does.
func TestSlow(t *testing.T) {
	api := newAPI(t)
	api.answer = func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(forwarder.HeaderTimeout + 2*time.Second):
			_, _ = io.WriteString(w, "at last")
		case <-r.Context().Done():
		}
	}
	f, _ := start(t, "ANTHROPIC_API_KEY=K", "ANTHROPIC_BASE_URL="+api.URL)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(f.URL(), "http://"))
	check(t, err)
	defer func() { _ = conn.Close() }()
	_, err = io.WriteString(conn, "POST /v1/messages HTTP/1.1\r\nX: ")
	check(t, err)
	if status, body := post(f, "{}"); status != 200 || body != "at last" {
		t.Errorf("%d %s", status, body)
	}
	check(t, conn.SetReadDeadline(time.Now().Add(patience)))
	if _, err := io.ReadAll(conn); err != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("a connection without a request stays open")
	}
}

// Close ends a request with an endless response.
func TestClose(t *testing.T) {
	api := newAPI(t)
	started := make(chan struct{})
	api.answer = func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		close(started)
		<-r.Context().Done()
	}
	f, _ := start(t, "ANTHROPIC_API_KEY=K", "ANTHROPIC_BASE_URL="+api.URL)
	ended := make(chan struct{})
	go func() { defer close(ended); _, _ = post(f, "{}") }()
	<-started
	check(t, f.Close())
	<-ended
	if status, body := post(f, "{}"); status != 0 {
		t.Errorf("a closed forwarder answered %d %s", status, body)
	}
	check(t, f.Close())
}

// A large request arrives whole.
func TestBigBody(t *testing.T) {
	api := newAPI(t)
	f, _ := start(t, "ANTHROPIC_API_KEY=K", "ANTHROPIC_BASE_URL="+api.URL)
	body := strings.Repeat("0123456789abcdef", 3<<20)
	if status, text := post(f, body); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	if _, bodies := api.requests(); bodies[0] != body {
		t.Errorf("%d bytes of %d arrived", len(bodies[0]), len(body))
	}
}

// Response headers that could reveal the credential are removed.
func TestCleans(t *testing.T) {
	api := newAPI(t)
	api.answer = func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Set-Cookie", "session=1")
		h.Set("X-Debug", "key was "+r.Header.Get("X-Api-Key"))
		h.Set("X-Gateway-Debug", r.Header.Get("X-Gateway"))
		h.Set("Alt-Svc", `h3=":443"`)
		h.Set("Request-Id", "r1")
		h.Set("Trailer", "X-Late")
		w.WriteHeader(http.StatusEarlyHints)
		_, _ = io.WriteString(w, "ok")
		h.Set("X-Late", r.Header.Get("X-Api-Key"))
	}
	f, _ := start(t, "ANTHROPIC_API_KEY=SECRET", "ANTHROPIC_BASE_URL="+api.URL, "ANTHROPIC_CUSTOM_HEADERS=X-Gateway: GATEWAYSECRET\nX-Team: a")
	req, err := http.NewRequest(http.MethodGet, f.URL()+"/v1/models/claude-x", nil)
	check(t, err)
	req.Header.Set("X-Api-Key", placeholder(f))
	resp, err := http.DefaultClient.Do(req)
	check(t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	check(t, err)
	if string(body) != "ok" || resp.Header.Get("Request-Id") != "r1" {
		t.Errorf("%s %q", body, resp.Header)
	}
	all := fmt.Sprint(resp.Header, resp.Trailer)
	for _, never := range []string{"SECRET", "Set-Cookie", "Alt-Svc"} {
		if strings.Contains(all, never) {
			t.Errorf("the answer has %s: %s", never, all)
		}
	}
	seen, _ := api.requests()
	if seen[0].Header.Get("X-Gateway") != "GATEWAYSECRET" || seen[0].Header.Get("X-Team") != "a" {
		t.Errorf("the user's own headers were not sent: %q", seen[0].Header)
	}
}

// A redirect is not followed, because the credential is for one host.
func TestRedirect(t *testing.T) {
	api, elsewhere := newAPI(t), newAPI(t)
	api.answer = func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	}
	f, _ := start(t, "ANTHROPIC_API_KEY=SECRET", "ANTHROPIC_BASE_URL="+api.URL)
	status, body := post(f, "{}")
	if kind, _ := problem(t, body); status != 502 || kind != "api_error" {
		t.Errorf("%d %s", status, body)
	}
	if seen, _ := elsewhere.requests(); len(seen) != 0 {
		t.Error("the redirect was followed")
	}
}

// If the API changes the protocol unasked, the agent does not get the connection.
func TestSwitchedProtocol(t *testing.T) {
	api := newAPI(t)
	api.answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusSwitchingProtocols) }
	f, _ := start(t, "ANTHROPIC_API_KEY=SECRET", "ANTHROPIC_BASE_URL="+api.URL)
	if status, body := post(f, "{}"); status != http.StatusBadGateway || !strings.Contains(body, "changed the protocol") {
		t.Errorf("%d %s", status, body)
	}
}

// If the API is unreachable, the CLI gets an error in the API's format.
func TestUnreachable(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	f, _ := start(t, "ANTHROPIC_API_KEY=SECRET", "ANTHROPIC_BASE_URL="+server.URL)
	status, body := post(f, "{}")
	if kind, message := problem(t, body); status != 502 || kind != "api_error" || !strings.Contains(message, strings.TrimPrefix(server.URL, "http://")) {
		t.Errorf("%d %s", status, body)
	}
}

// The number of an agent's idle connections is limited, and further ones are served when some
// end.
func TestConnections(t *testing.T) {
	api := newAPI(t)
	f, _ := start(t, "ANTHROPIC_API_KEY=K", "ANTHROPIC_BASE_URL="+api.URL)
	var open []net.Conn
	for range forwarder.MaxConnections {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(f.URL(), "http://"))
		check(t, err)
		defer func() { _ = conn.Close() }()
		open = append(open, conn)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.URL()+"/v1/messages", strings.NewReader("{}"))
	check(t, err)
	req.Header.Set("X-Api-Key", placeholder(f))
	if status, body := do(req); status != 0 {
		t.Errorf("one connection too many was served: %d %s", status, body)
	}
	for _, conn := range open {
		check(t, conn.Close())
	}
	if status, body := post(f, "{}"); status != 200 {
		t.Errorf("%d %s", status, body)
	}
}

// Formatting a value does not print its secrets.
func TestPrintsNothing(t *testing.T) {
	f, login := start(t, "ANTHROPIC_API_KEY=SECRET1", "ANTHROPIC_AUTH_TOKEN=SECRET2", "ANTHROPIC_CUSTOM_HEADERS=X: SECRET3")
	for _, text := range []string{fmt.Sprintf("%v %+v %#v %s", login, login, login, login), fmt.Sprintf("%v %+v %#v %+v", f, f, f, *login), fmt.Sprint(f.Env())} {
		if strings.Contains(text, "SECRET") {
			t.Error(text)
		}
	}
}

// The CLI does not use the user's proxy for the forwarder.
func TestNoProxy(t *testing.T) {
	for _, tt := range []struct{ upper, lower, want string }{
		{"", "", "127.0.0.1"},
		{"a.example, 127.0.0.1", "b.example", "a.example,127.0.0.1,b.example"},
		{"", "b.example,*", "*"},
	} {
		f, _ := start(t, "ANTHROPIC_API_KEY=K", "NO_PROXY="+tt.upper, "no_proxy="+tt.lower)
		if env := f.Env(); !slices.Contains(env, "NO_PROXY="+tt.want) || !slices.Contains(env, "no_proxy="+tt.want) {
			t.Errorf("%+v: %q", tt, env)
		}
	}
}

func TestWithholds(t *testing.T) {
	_, login := start(t, "ANTHROPIC_API_KEY=K")
	for name, want := range map[string]bool{
		"ANTHROPIC_API_KEY": true, "ANTHROPIC_AUTH_TOKEN": true, "ANTHROPIC_BASE_URL": true, "ANTHROPIC_CUSTOM_HEADERS": true,
		"CLAUDE_CODE_OAUTH_TOKEN": true, "CLAUDE_CODE_OAUTH_REFRESH_TOKEN": true, "CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR": true,
		"CLAUDE_CODE_CLIENT_KEY_PASSPHRASE": true, "ANTHROPIC_IDENTITY_TOKEN_FILE": true, "ANTHROPIC_FOUNDRY_API_KEY": true,
		"CLAUDE_CODE_SESSION_ACCESS_TOKEN": true, "ANTHROPIC_UNIX_SOCKET": true,
		"ANTHROPIC_MODEL": false, "ANTHROPIC_SMALL_FAST_MODEL": false, "CLAUDE_CODE_MAX_OUTPUT_TOKENS": false,
		"CLAUDE_CODE_MAX_RETRIES": false, "CLAUDE_CONFIG_DIR": false, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": false, "MONKEY": false,
		"ANTHROPIC_DEFAULT_SONNET_MODEL": false, "CLAUDE_CODE_IDLE_TOKEN_THRESHOLD": true,
	} {
		if got := login.Withholds(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Requests to the API use the user's proxy.
func TestProxy(t *testing.T) {
	proxy := newAPI(t)
	out := run(t, 1, "HTTP_PROXY="+proxy.URL, "ANTHROPIC_BASE_URL=http://api.example.invalid", "ANTHROPIC_API_KEY=K", "HOME="+t.TempDir())
	seen, _ := proxy.requests()
	if len(seen) != 1 || seen[0].RequestURI != "http://api.example.invalid/v1/messages?beta=true" || seen[0].Header.Get("X-Api-Key") != "K" || !strings.Contains(out, "200 fine") {
		t.Errorf("%s\n%v", out, seen)
	}
}

// The user's extra certificates are accepted for the API. Unreadable ones are ignored.
func TestExtraCerts(t *testing.T) {
	api := newAPI(t)
	server := httptest.NewUnstartedServer(api.Config.Handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	certs := filepath.Join(t.TempDir(), "certs.pem")
	write(t, certs, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	for path, want := range map[string]bool{certs: true, certs + ".missing": false, "": false} {
		f, _ := start(t, "ANTHROPIC_API_KEY=K", "ANTHROPIC_BASE_URL="+server.URL, "NODE_EXTRA_CA_CERTS="+path)
		if status, body := post(f, "hello"); (status == http.StatusOK) != want {
			t.Errorf("%q: %d %s", path, status, body)
		}
	}
}

// closingBody is a request body that net/http closes when the response starts.
type closingBody struct{ text string }

func (b *closingBody) Read(p []byte) (int, error) {
	if b.text == "" {
		return 0, http.ErrBodyReadAfterClose
	}
	n := copy(p, b.text)
	b.text = b.text[n:]
	if b.text == "" {
		return n, io.EOF
	}
	return n, nil
}

func (*closingBody) Close() error { return nil }

// A body that has ended stays ended: the transport reads once more, and an error then would cut off
// the response.
func TestBodyEndsOnce(t *testing.T) {
	body := forwarder.NewPacedBody(&closingBody{"question"}, httptest.NewRecorder())
	for range 2 {
		if text, err := io.ReadAll(body); err != nil || len(text) != 0 && string(text) != "question" {
			t.Errorf("%q, %v", text, err)
		}
	}
}
