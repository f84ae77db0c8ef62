package endpoint_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coven-run/coven/plugins/builtin/anthropic"
	"github.com/coven-run/coven/plugins/builtin/endpoint"
	"github.com/coven-run/coven/plugins/builtin/openai"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/provider"
)

const key = "sk-test-0123456789"

// plugin is one of the two plugins with an answer of its API.
type plugin struct {
	api    endpoint.API
	model  func(getenv func(string) string) model.Model
	stream string // contains everything that an answer can have
	events []model.Event
}

func pluginsOf(t testing.TB) []plugin {
	t.Helper()
	call := provider.ToolCall{ID: "call_1", Name: "read", Input: json.RawMessage(`{"path":"a.txt"}`)}
	used := provider.Usage{InputTokens: 40, OutputTokens: 12, CacheReadTokens: 50, CacheWriteTokens: 10}
	return []plugin{
		{
			endpoint.Anthropic(), func(getenv func(string) string) model.Model { return anthropic.Model{Getenv: getenv} }, recorded(t, "anthropic.sse"),
			[]model.Event{
				model.Reasoning{Text: "First "},
				model.Reasoning{Text: "the file."},
				model.Reasoning{Signature: "c2lnbmVk"},
				model.Reasoning{Signature: "redacted:aGlkZGVu"},
				model.Text{Text: "I "},
				model.Text{Text: "look."},
				call,
				provider.ToolCall{ID: "call_2", Name: "list_notes", Input: json.RawMessage(`{}`)},
				model.End{Reason: model.ForTools, Usage: used},
			},
		},
		{
			endpoint.OpenAI(), func(getenv func(string) string) model.Model { return openai.Model{Getenv: getenv} }, recorded(t, "openai.sse"),
			[]model.Event{
				model.Reasoning{Text: "First "},
				model.Reasoning{Text: "the file."},
				model.Text{Text: "I "},
				model.Text{Text: "look."},
				call,
				provider.ToolCall{ID: "call_2", Name: "list_notes", Input: json.RawMessage(`{}`)},
				model.End{Reason: model.ForTools, Usage: used},
			},
		},
	}
}

func recorded(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// at returns the model for a server at a URL.
func (p plugin) at(url string) model.Model {
	return p.model(func(name string) string { return map[string]string{p.api.Keys[0]: key, p.api.BaseURL: url}[name] })
}

func (p plugin) ask(ctx context.Context, url string) (events []model.Event, err error) {
	err = p.at(url).Turn(ctx, request(), func(e model.Event) error { events = append(events, e); return nil })
	return events, err
}

func request() model.Request {
	return model.Request{
		Model: "m-1", System: "Be brief.",
		Messages: []model.Message{{Role: model.User, Parts: []model.Part{model.Text{Text: "Look."}}}},
		Tools:    []model.Tool{{Name: "read", Schema: json.RawMessage(`{"type":"object"}`)}},
	}
}

func serve(t testing.TB, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func sse(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, text) //nolint:errcheck // the client sees what is missing
	}
}

func TestTurns(t *testing.T) {
	for _, p := range pluginsOf(t) {
		events, err := p.ask(t.Context(), serve(t, sse(p.stream)))
		if err != nil || !reflect.DeepEqual(events, p.events) {
			t.Errorf("%s: %v\n%#v", p.api.Name, err, events)
		}
	}
}

// If the server or the network cuts a stream at any point, the result is a transient error or the complete
// answer, but never part of a call.
func TestCutAnywhere(t *testing.T) {
	for _, p := range pluginsOf(t) {
		var cut atomic.Int64
		var abort atomic.Bool
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			sse(p.stream[:cut.Load()])(w, r)
			if abort.Load() {
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			}
		})
		complete := 0
		for n := range len(p.stream) {
			cut.Store(int64(n))
			abort.Store(n%2 == 0)
			events, err := p.ask(t.Context(), url)
			switch {
			case err != nil:
				if !errors.Is(err, pluginerr.ErrTransient) {
					t.Errorf("%s: cut at %d: %v", p.api.Name, n, err)
				}
				for _, e := range events {
					if call, ok := e.(provider.ToolCall); ok && !json.Valid(call.Input) {
						t.Errorf("%s: cut at %d: half a call %s", p.api.Name, n, call.Input)
					}
				}
			case !reflect.DeepEqual(calls(events), calls(p.events)):
				t.Errorf("%s: cut at %d: %#v", p.api.Name, n, events)
			default:
				complete++
			}
		}
		if complete > len(p.stream)/2 {
			t.Errorf("%s: %d of %d are complete", p.api.Name, complete, len(p.stream))
		}
	}
}

// calls returns the tool calls and the end of a turn.
func calls(events []model.Event) (all []model.Event) {
	for _, e := range events {
		switch e := e.(type) {
		case provider.ToolCall:
			all = append(all, e)
		case model.End:
			all = append(all, e.Reason)
		}
	}
	return all
}

func FuzzStream(f *testing.F) {
	both := pluginsOf(f)
	for _, p := range both {
		f.Add([]byte(p.stream))
		f.Add([]byte(strings.ReplaceAll(p.stream, `"`, "")))
		f.Add([]byte(p.stream + p.stream))
	}
	f.Add([]byte("data: [DONE]\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, p := range both {
			sane(t, p, data)
		}
	})
}

// answering is a transport that answers with a stream. It starts no goroutine, because the coverage of a
// fuzz target must depend only on its input.
type answering []byte

// RoundTrip implements http.RoundTripper.
func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	header := http.Header{"Content-Type": {"text/event-stream"}}
	return &http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(bytes.NewReader(a)), Request: r}, nil
}

func keyOnly(string) string { return "https://example.invalid" } // serves as a key, too

// sane checks a turn with an arbitrary answer of the API: it fails, or it has exactly one end and no
// partial call.
func sane(t *testing.T, p plugin, stream []byte) {
	t.Helper()
	var m model.Model = anthropic.Model{Getenv: keyOnly, Transport: answering(stream)}
	if p.api.Name == "openai" {
		m = openai.Model{Getenv: keyOnly, Transport: answering(stream)}
	}
	var events []model.Event
	err := m.Turn(t.Context(), request(), func(e model.Event) error { events = append(events, e); return nil })
	for i, e := range events {
		if _, ended := e.(model.End); ended != (err == nil && i == len(events)-1) {
			t.Errorf("%s: %v after %#v", p.api.Name, err, events)
		}
		if call, ok := e.(provider.ToolCall); ok && !json.Valid(call.Input) {
			t.Errorf("%s: %#v", p.api.Name, call)
		}
	}
	if err == nil && len(events) == 0 {
		t.Errorf("%s: no end", p.api.Name)
	}
}

// TestMutations is a short version of FuzzStream: parts of streams are missing, repeated or invalid.
func TestMutations(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // reproducible
	for _, p := range pluginsOf(t) {
		for range 2000 {
			data := []byte(p.stream)
			for range 1 + random.IntN(4) {
				from := random.IntN(len(data))
				to := min(from+1+random.IntN(60), len(data))
				switch random.IntN(3) {
				case 0:
					data = slices.Delete(data, from, to)
				case 1:
					data = slices.Insert(data, to, bytes.Clone(data[from:to])...)
				default:
					data[from] = byte(random.IntN(256))
				}
			}
			sane(t, p, data)
		}
	}
}

// Canceling a turn in the middle of the stream ends its request.
func TestCancel(t *testing.T) {
	for _, p := range pluginsOf(t) {
		gone := make(chan struct{})
		half := p.stream[:strings.Index(p.stream, "look.")]
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			sse(half)(w, r)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			close(gone)
		})
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		err := p.at(url).Turn(ctx, request(), func(model.Event) error { cancel(enough); return nil })
		if !errors.Is(err, enough) {
			t.Errorf("%s: %v", p.api.Name, err)
		}
		<-gone
		err = p.at(serve(t, sse(p.stream))).Turn(t.Context(), request(), func(model.Event) error { return enough })
		if !errors.Is(err, enough) {
			t.Errorf("%s: emit fails: %v", p.api.Name, err)
		}
	}
}

func TestLimits(t *testing.T) {
	for _, p := range pluginsOf(t) {
		start := p.stream[:strings.Index(p.stream, "\n\n")+2]
		broken := start + "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"
		for name, c := range map[string]struct {
			status int
			header map[string]string
			body   string
			want   provider.Limit
		}{
			"429":       {429, map[string]string{"Retry-After": "7"}, `{"error":{"type":"rate_limit_error"}}`, provider.Limit{Reason: "rate_limit", Status: 429, After: 7 * time.Second}},
			"429 ms":    {429, map[string]string{"Retry-After-Ms": "1500"}, "slow down", provider.Limit{Reason: "rate_limit", Status: 429, After: 1500 * time.Millisecond}},
			"529":       {529, nil, `{"error":{"type":"overloaded_error"}}`, provider.Limit{Reason: "overloaded", Status: 529}},
			"503":       {503, map[string]string{"Retry-After": "soon"}, "", provider.Limit{Reason: "overloaded", Status: 503}},
			"code":      {400, nil, `{"error":{"type":"requests","code":"rate_limit_exceeded"}}`, provider.Limit{Reason: "rate_limit", Status: 400}},
			"success":   {200, map[string]string{"Retry-After": "7"}, `{"error":{"type":"rate_limit_error"}}`, provider.Limit{Reason: "rate_limit", After: 7 * time.Second}},
			"midstream": {200, nil, broken, provider.Limit{Reason: "overloaded"}},
		} {
			var requests atomic.Int64
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				for name, value := range c.header {
					w.Header().Set(name, value)
				}
				if c.status == http.StatusOK {
					sse(c.body)(w, r)
					return
				}
				w.WriteHeader(c.status)
				fmt.Fprint(w, c.body) //nolint:errcheck // the client sees what is missing
			})
			events, err := p.ask(t.Context(), url)
			if len(events) > 2 {
				events = events[len(events)-2:] // after the events of the answer
			}
			want := []model.Event{c.want, model.End{Reason: model.Limited}}
			if err != nil || !reflect.DeepEqual(events, want) || requests.Load() != 1 {
				t.Errorf("%s %s: %v after %d: %#v", p.api.Name, name, err, requests.Load(), events)
			}
		}
	}
}

func TestErrors(t *testing.T) {
	elsewhere := serve(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("redirected with %v", r.Header) })
	for _, p := range pluginsOf(t) {
		for name, c := range map[string]struct {
			status   int
			body     string
			sentinel error
			text     string
		}{
			"401":      {401, `{"error":{"type":"authentication_error","message":"invalid key ` + key + `"}}`, pluginerr.ErrLogin, "the API answered 401: invalid key ***"},
			"403":      {403, `{"error":{"message":"not for you"}}`, pluginerr.ErrLogin, "the API answered 403: not for you"},
			"400":      {400, `{"error":{"type":"invalid_request_error","message":"prompt is\n too long"}}`, pluginerr.ErrInvalid, "the API answered 400: prompt is too long"},
			"404":      {404, `{"error":"model \"m-1\" not found"}`, pluginerr.ErrModel, `the API answered 404: model "m-1" not found`},
			"422":      {422, `{"detail":"Not\tnow"}`, pluginerr.ErrInvalid, "the API answered 422: Not now"},
			"quota":    {429, `{"error":{"type":"insufficient_quota","code":"insufficient_quota","message":"no credit"}}`, pluginerr.ErrAccount, "the API answered 429: no credit"},
			"billing":  {402, `{"error":{"type":"billing_error"}}`, pluginerr.ErrAccount, "the API answered 402: billing_error Payment Required"},
			"408":      {408, `{}`, pluginerr.ErrTransient, "the API answered 408: Request Timeout"},
			"500":      {500, `<html>`, pluginerr.ErrTransient, "the API answered 500: Internal Server Error"},
			"redirect": {307, `{"error":"moved"}`, nil, "the API answered 307: moved"},
		} {
			var requests atomic.Int64
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				if c.status == http.StatusTemporaryRedirect {
					w.Header().Set("Location", elsewhere+r.URL.Path)
				}
				w.WriteHeader(c.status)
				fmt.Fprint(w, c.body) //nolint:errcheck // the client sees what is missing
			})
			events, err := p.ask(t.Context(), url)
			if err == nil || !strings.Contains(err.Error(), c.text) || len(events) > 0 || requests.Load() != 1 || strings.Contains(err.Error(), key) {
				t.Errorf("%s %s: %v after %d", p.api.Name, name, err, requests.Load())
			}
			for _, sentinel := range []error{pluginerr.ErrLogin, pluginerr.ErrTransient, pluginerr.ErrAccount, pluginerr.ErrModel, pluginerr.ErrInvalid} {
				if errors.Is(err, sentinel) != errors.Is(c.sentinel, sentinel) {
					t.Errorf("%s %s: %v", p.api.Name, name, err)
				}
			}
		}
		server := httptest.NewServer(nil)
		server.Close()
		if _, err := p.ask(t.Context(), strings.Replace(server.URL, "//", "//user:password@", 1)); !errors.Is(err, pluginerr.ErrTransient) || strings.Contains(err.Error(), "password") {
			t.Errorf("%s: nobody listens: %v", p.api.Name, err)
		}
	}
}
