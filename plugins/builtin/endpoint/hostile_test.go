package endpoint_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/plugins/builtin/openai"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/provider"
)

// raw serves raw HTTP bytes. If hold is set, it then keeps each connection open until the client closes it.
// It returns the URL and a channel that receives each such close.
func raw(t *testing.T, answer string, hold bool) (string, <-chan struct{}) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	closed := make(chan struct{}, 10)
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close() //nolint:errcheck // the test is over
				buffer := make([]byte, 1<<16)
				_, _ = c.Read(buffer)
				_, _ = io.WriteString(c, answer)
				for hold && err == nil {
					_, err = c.Read(buffer)
				}
				closed <- struct{}{}
			}()
		}
	}()
	return "http://" + listener.Addr().String(), closed
}

const ok = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"

// If a server stops sending at any point, the turn and the connection end with the context.
func TestCancelAnywhere(t *testing.T) {
	for name, answer := range map[string]string{
		"nothing":       "",
		"half a line":   "HTTP/1.1 200",
		"headers":       ok,
		"comments":      ok + ":\n: ping\n\n\n\n",
		"half an event": ok + "data: {",
		"a refusal":     "HTTP/1.1 500 No\r\n\r\n{",
		"a page":        ok + "<html>",
		"switching":     "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
		"gzip":          "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b",
		"a chunk":       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\n",
		"continue":      "HTTP/1.1 100 Continue\r\n\r\n",
	} {
		for _, p := range pluginsOf(t) {
			url, closed := raw(t, answer, true)
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			done := make(chan error, 1)
			go func() {
				_, err := p.ask(ctx, url)
				done <- err
			}()
			select {
			case err := <-done:
				if name == "switching" && err != nil {
					break // an immediate error is correct, too
				}
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s %s: %v", p.api.Name, name, err)
				}
			case <-time.After(10 * time.Second):
				t.Errorf("%s %s: the turn goes on", p.api.Name, name)
				cancel()
				continue
			}
			select {
			case <-closed:
			case <-time.After(10 * time.Second):
				t.Errorf("%s %s: the connection stays open", p.api.Name, name)
			}
			cancel()
		}
	}
}

// Errors quote a server's text only in part, and never contain the credential.
func TestLongErrors(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for name, answer := range map[string]string{
		"type":         "HTTP/1.1 400 No\r\n\r\n" + `{"error":{"type":"bad ` + key + " " + long[:60000] + `"}}`,
		"code":         "HTTP/1.1 400 No\r\n\r\n" + `{"error":{"code":"bad ` + key + `"}}`,
		"at the cut":   "HTTP/1.1 400 No\r\n\r\n" + `{"error":{"message":"` + strings.Repeat("y", 495) + key + `"}}`,
		"status":       "HTTP/1.1 " + long + key + "\r\n\r\n",
		"header":       "HTTP/1.1 200 OK\r\nContent-Type: " + long + "/" + key + "\r\n\r\n<html>",
		"location":     "HTTP/1.1 307 No\r\nLocation: ://%zz" + key + long + "\r\n\r\n",
		"chunk":        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + key + "\r\n",
		"large header": "HTTP/1.1 200 OK\r\nX: " + strings.Repeat(long, 12) + "\r\n\r\n",
	} {
		for _, p := range pluginsOf(t) {
			url, _ := raw(t, answer, false)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			_, err := p.ask(ctx, url)
			cancel()
			if err == nil || len(err.Error()) > 700 || strings.Contains(err.Error(), key[:5]) {
				t.Errorf("%s %s: %d bytes: %.700v", p.api.Name, name, len(fmt.Sprint(err)), err)
			}
		}
	}
}

// The size of a decompressed answer is limited.
func TestBomb(t *testing.T) {
	var bomb bytes.Buffer
	packed := gzip.NewWriter(&bomb)
	_, _ = packed.Write([]byte("data: "))
	for range 100 {
		_, _ = packed.Write(make([]byte, 1<<20))
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	for _, p := range pluginsOf(t) {
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb.Bytes())
		})
		if _, err := p.ask(t.Context(), url); err == nil || !strings.Contains(err.Error(), "it sent an event of more than 16 MB") {
			t.Errorf("%s: %v", p.api.Name, err)
		}
	}
}

// Invalid times from a server are ignored.
func TestRetryAfter(t *testing.T) {
	for name, values := range map[string][]string{
		"Retry-After":    {"1e300", "inf", "-inf", "NaN", "-5", "99999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT", "1e10"},
		"Retry-After-Ms": {"1e300", "inf", "-inf", "NaN", "-5", "1e20"},
	} {
		for _, value := range values {
			p := pluginsOf(t)[0]
			url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set(name, value)
				w.WriteHeader(http.StatusTooManyRequests)
			})
			events, err := p.ask(t.Context(), url)
			if err != nil || len(events) != 2 {
				t.Fatal(events, err)
			}
			negative := strings.HasPrefix(value, "-") || value == "NaN"
			if after := events[0].(provider.Limit).After; after < 0 || after > 366*24*time.Hour || negative != (after == 0) {
				t.Errorf("%s: %s: %v", name, value, after)
			}
		}
	}
}

// Numbers of tokens are never negative.
func TestNegativeUsage(t *testing.T) {
	for _, number := range []string{"-5", "-9007199254740992", "1e300", "9223372036854775808"} {
		for api, text := range map[string]string{
			"openai":    stream(`{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":` + number + `,"completion_tokens":` + number + `,"total_tokens":5,"prompt_tokens_details":{"cached_tokens":` + number + `,"cache_write_tokens":` + number + `}}}`),
			"anthropic": stream(`{"type":"message_start","message":{"usage":{"input_tokens":`+number+`,"output_tokens":`+number+`,"cache_read_input_tokens":`+number+`}}}`, `{"type":"message_stop"}`),
		} {
			events, err := asked(t, api, "text/event-stream", text)
			if err != nil || len(events) == 0 {
				t.Fatal(err)
			}
			u := events[len(events)-1].(model.End).Usage
			if min(u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens) < 0 || u.InputTokens > math.MaxInt64/2 {
				t.Errorf("%s %s: %+v", api, number, u)
			}
		}
	}
}

// A server that keeps the connection open after a complete answer does not delay the turn.
func TestHeldAfterTheEnd(t *testing.T) {
	for _, p := range pluginsOf(t) {
		url, _ := raw(t, ok+p.stream, true)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		if events, err := p.ask(ctx, url); err != nil || len(events) == 0 {
			t.Errorf("%s: %v after %d events", p.api.Name, err, len(events))
		}
		cancel()
	}
}

// endless is a transport that answers with endless comments.
type endless struct{}

// RoundTrip implements http.RoundTripper.
func (endless) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(endless{}), Request: r}, nil
}

// Read implements io.Reader.
func (endless) Read(p []byte) (int, error) {
	copy(p, bytes.Repeat([]byte{':'}, len(p)))
	p[len(p)-1] = '\n'
	return len(p), nil
}

// An endless stream is aborted, even without events.
func TestEndlessStreams(t *testing.T) {
	err := openai.Model{Getenv: keyOnly, Transport: endless{}}.Turn(t.Context(), request(), func(model.Event) error { return nil })
	if !errors.Is(err, pluginerr.ErrTransient) || !strings.Contains(err.Error(), "its answer is larger than 256 MB") {
		t.Error(err)
	}
}

// Space around a credential is neither sent nor required to redact it from errors.
func TestKeyWithSpace(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"error":{"message":"no %s"}}`, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")) //nolint:errcheck // the client sees what is missing
	})
	m := openai.Model{Getenv: func(name string) string {
		return map[string]string{"OPENAI_API_KEY": " " + key + "\n", "OPENAI_BASE_URL": url}[name]
	}}
	err := m.Turn(t.Context(), request(), func(model.Event) error { return nil })
	if err == nil || !strings.HasSuffix(err.Error(), "the API answered 401: no ***") {
		t.Error(err)
	}
}
