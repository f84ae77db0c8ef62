package embedding_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coven-run/coven/internal/search/embedding"
)

// endpoint serves vectors that count the letters a, b and c.
func endpoint(t *testing.T, answer func(texts []string) string) (e *embedding.Endpoint, asked *atomic.Int32) {
	t.Helper()
	asked = &atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Model string
			Input []string
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.Model != "small" || r.URL.Path != "/v1/embeddings" || r.Header.Get("Authorization") != "Bearer key" {
			t.Errorf("%s %v %v %v", r.URL, body, r.Header, err)
		}
		asked.Add(int32(len(body.Input)))
		w.Header().Set("Content-Type", "application/json")
		text := answer(body.Input)
		if code := 0; strings.HasPrefix(text, "status ") {
			_, _ = fmt.Sscanf(text, "status %d", &code)
			w.WriteHeader(code)
		}
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(server.Close)
	return &embedding.Endpoint{URL: server.URL + "/v1", Model: "small", Key: "key"}, asked
}

func letters(texts []string) string {
	var all []string
	for i := range texts { // in another order than in the request
		n := len(texts) - 1 - i
		all = append(all, fmt.Sprintf(`{"object":"embedding","index":%d,"embedding":[%d,%d,%d]}`, n, strings.Count(texts[n], "a"), strings.Count(texts[n], "b"), strings.Count(texts[n], "c")))
	}
	return `{"object":"list","model":"small","data":[` + strings.Join(all, ",") + `]}`
}

// wide answers with vectors of the given number of components.
func wide(texts []string, numbers int) string {
	var all []string
	for i := range texts {
		all = append(all, fmt.Sprintf(`{"index":%d,"embedding":[1%s]}`, i, strings.Repeat(",0", numbers-1)))
	}
	return `{"data":[` + strings.Join(all, ",") + `]}`
}

// The cache is bounded.
func TestKept(t *testing.T) {
	t.Parallel()
	e, asked := endpoint(t, func(texts []string) string { return wide(texts, 1<<13) })
	ask := func(first, n int) int32 {
		before := asked.Load()
		texts := make([]string, n)
		for i := range texts {
			texts[i] = fmt.Sprint(first + i)
		}
		if _, err := e.Similarities(t.Context(), "0", texts); err != nil {
			t.Fatal(err)
		}
		return asked.Load() - before
	}
	if all, again, others, first := ask(0, 700), ask(0, 700), ask(1000, 700), ask(1, 1); all < 700 || again != 0 || others != 700 || first == 0 {
		t.Errorf("asked for %d, %d, %d, %d texts", all, again, others, first)
	}
}

func TestSimilarities(t *testing.T) {
	t.Parallel()
	e, asked := endpoint(t, letters)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := e.Similarities(over, "a", []string{"b"}); err == nil { // a canceled request is no failure of the endpoint
		t.Error(got)
	}
	got, err := e.Similarities(t.Context(), "aab", []string{"aaaabb", "c", "a", "bbbb"})
	if err != nil || len(got) != 4 || got[0] < 0.999 || got[1] != 0 || got[2] < got[3] {
		t.Errorf("%v %v", got, err)
	}
	again, err := e.Similarities(t.Context(), "aab", []string{"c", "aaaabb", "ab"})
	if err != nil || again[0] != got[1] || again[1] != got[0] || asked.Load() != 6 {
		t.Errorf("%v %v, asked for %d texts", again, err, asked.Load())
	}
}

// Invalid answers are rejected.
func TestLies(t *testing.T) {
	t.Parallel()
	vector := func(values string) func([]string) string {
		return func([]string) string {
			return `{"data":[{"index":0,"embedding":[1,0]},{"index":1,"embedding":` + values + `}]}`
		}
	}
	for name, answer := range map[string]func([]string) string{
		"nothing":     func([]string) string { return `{"data":[]}` },
		"one only":    func([]string) string { return `{"data":[{"index":0,"embedding":[1]}]}` },
		"twice":       func([]string) string { return `{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}` },
		"far":         func([]string) string { return `{"data":[{"index":7,"embedding":[1]},{"index":-1,"embedding":[1]}]}` },
		"no numbers":  vector(`[]`),
		"zeros":       vector(`[0,0]`),
		"another dim": vector(`[1,0,0]`),
		"huge":        vector(`[1e200,1e200]`),
		"texts":       vector(`["1","0"]`),
		"base64":      vector(`"AACAPwAAAAA="`),
		"too large":   vector(`[1` + strings.Repeat("0", 1<<10) + `,0]`),
		"an array":    func([]string) string { return `[[1,0],[1,0]]` },
		"cut off":     func([]string) string { return `{"data":[{"index":0,"embedding":[1,` },
		"no JSON":     func([]string) string { return `<html>` },
		"refusal":     func([]string) string { return "status 401" },
		"null":        func([]string) string { return `null` },
		"many":        func(texts []string) string { return wide(texts, 1<<14) },
		"long text":   func([]string) string { return "<html>" + strings.Repeat("key ", 1<<10) },
	} {
		e, _ := endpoint(t, answer)
		if got, err := e.Similarities(t.Context(), "a", []string{"b"}); err == nil {
			t.Errorf("%s: %v", name, got)
		} else if len(err.Error()) > 300 || strings.Contains(err.Error(), "key") {
			t.Errorf("%s: %.400v", name, err)
		}
	}
	gone := &embedding.Endpoint{URL: "http://127.0.0.1:1/v1", Model: "small"}
	if got, err := gone.Similarities(t.Context(), "a", []string{"b"}); err == nil {
		t.Error(got)
	}
}

// Requests follow the published API, and sloppy answers are accepted.
func TestWire(t *testing.T) {
	t.Parallel()
	var header http.Header
	var body, path string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		header, body, path = r.Header, string(raw), r.URL.Path
		_, _ = io.WriteString(w, `{"new":[],"data":[{"index":1.0,"embedding":[0,2]},{"embedding":[1,0],"object":null}],"usage":null}`)
	}))
	t.Cleanup(server.Close)
	for _, url := range []string{server.URL, server.URL + "/"} {
		e := &embedding.Endpoint{URL: url, Model: "small"} // without a key
		got, err := e.Similarities(t.Context(), "<a>", []string{"b"})
		if err != nil || !slices.Equal(got, []float64{0}) {
			t.Errorf("%v %v", got, err)
		}
		var sent map[string]any
		if err := json.Unmarshal([]byte(body), &sent); err != nil || !reflect.DeepEqual(sent, map[string]any{"model": "small", "input": []any{"<a>", "b"}}) {
			t.Errorf("%v: %s", err, body)
		}
		if path != "/embeddings" || header.Get("Content-Type") != "application/json" || header["Authorization"] != nil {
			t.Errorf("%s %v", path, header)
		}
	}
}

// Passages are sent only to the user's address, and an endless answer is an error.
func TestHostileEndpoint(t *testing.T) {
	t.Parallel()
	var elsewhere, asked atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	t.Cleanup(other.Close)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if strings.HasPrefix(r.URL.Path, "/moved/") {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, err := w.Write([]byte(`{"data":[`))
		for err == nil {
			_, err = w.Write([]byte(strings.Repeat(" ", 1<<16)))
		}
	}))
	t.Cleanup(server.Close)
	for path, want := range map[string]string{"/moved": "redirects", "/endless": "larger than 32 MB"} {
		e := &embedding.Endpoint{URL: server.URL + path, Model: "small", Key: "key"}
		for range 2 { // a failed endpoint is not asked again for a while
			if _, err := e.Similarities(t.Context(), "a", []string{"b"}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
	if elsewhere.Load() > 0 || asked.Load() != 2 {
		t.Errorf("asked %d times, and %d times elsewhere", asked.Load(), elsewhere.Load())
	}
}

// raw serves raw HTTP bytes and then waits until the client closes the connection.
func raw(t *testing.T, answer string) *embedding.Endpoint {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close() //nolint:errcheck // the test is over
		_, _ = io.WriteString(conn, answer)
		_, _ = io.Copy(io.Discard, conn)
	}))
	t.Cleanup(server.Close)
	return &embedding.Endpoint{URL: server.URL, Model: "small"}
}

// An endpoint that switches to another protocol and then waits is an error.
func TestSwitching(t *testing.T) {
	t.Parallel()
	e := raw(t, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
	if _, err := e.Similarities(t.Context(), "a", []string{"b"}); err == nil || !strings.Contains(err.Error(), "answered 101") {
		t.Error(err)
	}
}

// An error quotes only the beginning of an answer that is not HTTP.
func TestLongError(t *testing.T) {
	t.Parallel()
	e := raw(t, "HTTP/1.1 "+strings.Repeat("x", 1<<20)+"\r\n\r\n")
	if _, err := e.Similarities(t.Context(), "a", []string{"b"}); err == nil || len(err.Error()) > 600 {
		t.Errorf("%.600v", err)
	}
}
