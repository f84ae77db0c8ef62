package forwarder_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/sandbox/forwarder"
)

// patience limits waiting for an expected event.
const patience = time.Minute

// helperEnv turns the test binary into another process with a forwarder. Its value is the
// number of requests to send.
const helperEnv = "FORWARDER_TEST_REQUESTS"

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) != "" {
		os.Exit(helper())
	}
	os.Exit(m.Run())
}

// helper sends requests through its own forwarder and prints the responses.
func helper() int {
	if os.Getenv("FULL_DISK") != "" { // no file can grow
		signal.Ignore(syscall.SIGXFSZ)
		limit := syscall.Rlimit{Cur: 100, Max: 100}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	login, err := forwarder.Find(os.Getenv, os.Getenv("HOME"))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	if url := os.Getenv("TOKEN_ENDPOINT"); url != "" {
		forwarder.SetTokenEndpoint(login, url)
	}
	f, err := forwarder.Start(context.Background(), forwarder.Options{Login: login})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer func() { _ = f.Close() }()
	count := 0
	_, _ = fmt.Sscan(os.Getenv(helperEnv), &count)
	for range count {
		status, body := post(f, "{}")
		fmt.Println(status, body)
	}
	return 0
}

// run starts the test binary as another process, waits for it, and returns its output.
func run(t *testing.T, requests int, env ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append([]string{fmt.Sprintf("%s=%d", helperEnv, requests), "PATH=" + os.Getenv("PATH")}, env...)
	out, _ := cmd.CombinedOutput() // fails if the process was killed
	return string(out)
}

// variables returns a getenv function for the variables.
func variables(kv ...string) func(string) string {
	return func(name string) string {
		for _, entry := range kv {
			if key, value, _ := strings.Cut(entry, "="); key == name {
				return value
			}
		}
		return ""
	}
}

// api is a fake model API.
type api struct {
	*httptest.Server
	mu       sync.Mutex
	seen     []*http.Request
	bodies   []string
	refused  map[string]bool // bearer tokens that get status 401
	accepted map[string]bool // if not nil, all other bearer tokens get status 401
	answer   http.HandlerFunc
}

func newAPI(t *testing.T) *api {
	t.Helper()
	a := &api{refused: map[string]bool{}}
	a.Server = httptest.NewServer(a)
	t.Cleanup(a.Close)
	return a
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	a.mu.Lock()
	a.seen, a.bodies = append(a.seen, r), append(a.bodies, string(body))
	bearer := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	refused := a.refused[bearer] || a.accepted != nil && !a.accepted[bearer]
	answer := a.answer
	a.mu.Unlock()
	switch {
	case refused:
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"type":"error","error":{"type":"authentication_error","message":"refused"}}`)
	case answer != nil:
		answer(w, r)
	default:
		_, _ = io.WriteString(w, "fine")
	}
}

// requests returns the requests that have reached the API, and clears them.
func (a *api) requests() ([]*http.Request, []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	seen, bodies := a.seen, a.bodies
	a.seen, a.bodies = nil, nil
	return seen, bodies
}

// start starts a forwarder to an API, with a credential from the environment.
func start(t *testing.T, env ...string) (*forwarder.Forwarder, *forwarder.Login) {
	t.Helper()
	login, err := forwarder.Find(variables(env...), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return startWith(t, login, nil), login
}

func startWith(t *testing.T, login *forwarder.Login, report func(error)) *forwarder.Forwarder {
	t.Helper()
	f, err := forwarder.Start(t.Context(), forwarder.Options{Login: login, Report: report})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// placeholder returns a forwarder's placeholder.
func placeholder(f *forwarder.Forwarder) string {
	for _, kv := range f.Env() {
		if _, value, _ := strings.Cut(kv, "="); strings.HasPrefix(value, "coven-placeholder-") {
			return value
		}
	}
	return ""
}

// post sends an agent's request and returns the response.
func post(f *forwarder.Forwarder, body string) (int, string) {
	req, err := http.NewRequest(http.MethodPost, f.URL()+"/v1/messages?beta=true", strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	req.Header.Set("Authorization", "Bearer "+placeholder(f))
	return do(req)
}

func do(req *http.Request) (int, string) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return resp.StatusCode, err.Error()
	}
	return resp.StatusCode, string(text)
}

// problem returns the type and message of an error in the API's format.
func problem(t *testing.T, body string) (kind, message string) {
	t.Helper()
	var e struct {
		Type  string
		Error struct{ Type, Message string }
	}
	if err := json.Unmarshal([]byte(body), &e); err != nil || e.Type != "error" || e.Error.Type == "" || e.Error.Message == "" {
		t.Errorf("not an error of the API: %q", body)
	}
	return e.Error.Type, e.Error.Message
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// write writes a file and creates its directory.
func write(t *testing.T, path, text string) {
	t.Helper()
	check(t, os.MkdirAll(filepath.Dir(path), 0o700))
	check(t, os.WriteFile(path, []byte(text), 0o600))
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	check(t, err)
	return string(raw)
}
