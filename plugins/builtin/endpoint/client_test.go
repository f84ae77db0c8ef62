package endpoint_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/coven-run/coven/plugins/builtin/anthropic"
	"github.com/coven-run/coven/plugins/builtin/endpoint"
	"github.com/coven-run/coven/plugins/builtin/openai"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/provider"
)

// The published examples of both APIs have more fields and kinds of events than coven reads.
func TestPublishedStreams(t *testing.T) {
	want := []model.Event{
		model.Text{Text: "I check"},
		model.Text{Text: " it."},
		provider.ToolCall{Name: "get_weather", Input: json.RawMessage(`{"location": "San Francisco, CA"}`)},
		model.End{Reason: model.ForTools, Usage: provider.Usage{InputTokens: 472, OutputTokens: 89}},
	}
	for _, p := range pluginsOf(t) {
		stream := recorded(t, p.api.Name+"-published.sse")
		for name, s := range map[string]string{
			"as published": stream,
			"CRLF":         strings.ReplaceAll(stream, "\n", "\r\n"),
			"BOM":          "\ufeff" + stream,
			"retry":        "retry: 1\n" + stream,
			"[DONE] ":      strings.ReplaceAll(stream, "[DONE]", "[DONE] ") + "data: [DONE] \n\ndata: oops\n\n",
			"comments":     ": ping\n\n" + strings.ReplaceAll(stream, "data: ", ":\nid: 7\nretry: 1\nnew\ndata:"),
			"lines":        strings.ReplaceAll(stream, `"id":`, "\ndata: \"id\":"),
			"[DONE]":       stream + "data: [DONE]\n\ndata: oops\n\n",
			"no names":     strings.ReplaceAll(stream, "event: ", "id: "),
		} {
			events, err := p.ask(t.Context(), serve(t, sse(s)))
			for i, e := range events {
				if call, ok := e.(provider.ToolCall); ok && call.ID != "" {
					call.ID = ""
					events[i] = call
				}
			}
			if err != nil || !reflect.DeepEqual(events, want) {
				t.Errorf("%s: %s: %v\n%#v", p.api.Name, name, err, events)
			}
		}
	}
}

// asked returns the events and the error of a plugin for an answer.
func asked(t *testing.T, name, contentType, answer string) (events []model.Event, err error) {
	t.Helper()
	for _, p := range pluginsOf(t) {
		if p.api.Name == name {
			return p.ask(t.Context(), serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", contentType)
				_, _ = io.WriteString(w, answer)
			}))
		}
	}
	t.Fatal(name)
	return nil, nil
}

// stream returns an event stream with the data.
func stream(data ...string) string {
	var all strings.Builder
	for _, d := range data {
		fmt.Fprintf(&all, "data: %s\n\n", d)
	}
	return all.String()
}

// Servers send null and other types than the API defines. Turns must not fail because of that.
func TestSloppyServers(t *testing.T) {
	call := provider.ToolCall{ID: "7", Name: "x", Input: json.RawMessage(`{"a":1}`)}
	ended := func(reason model.Reason) model.End {
		return model.End{Reason: reason, Usage: provider.Usage{InputTokens: 3, OutputTokens: 2}}
	}
	for name, c := range map[string]struct {
		api, stream string
		want        []model.Event
	}{
		"numbers": {"openai", stream(
			`{"choices":[{"index":"0","delta":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":"3","completion_tokens":2.0,"total_tokens":5.5}}`,
		), []model.Event{model.Text{Text: "a"}, ended(model.Done)}},
		"no numbers": {"openai", stream(
			`{"choices":[{"index":{},"delta":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":"NaN","prompt_tokens_details":{"cached_tokens":1e99}}}`,
		), []model.Event{model.Text{Text: "a"}, ended(model.Done)}},
		"null": {"openai", stream(
			`null`, `{"choices":null,"error":null}`, ``,
			`{"choices":[{"index":null,"delta":{"content":null,"refusal":null,"reasoning":null,"reasoning_content":null,"tool_calls":null},"finish_reason":null}],"usage":null}`,
			`{"choices":[{"delta":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"prompt_tokens_details":null}}`,
		), []model.Event{ended(model.Done)}},
		"a call in one piece": {"openai", stream(
			`{"choices":[{"delta":{"tool_calls":[{"id":7,"function":{"name":"x","arguments":{"a":1}}}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`,
		), []model.Event{call, ended(model.ForTools)}},
		"other types": {"openai", stream(
			`{"choices":[{"delta":{"reasoning":{"a":1},"refusal":5,"content":"a","tool_calls":{}},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2},"type":1}`,
		), []model.Event{model.Text{Text: "a"}, ended(model.Done)}},
		"a call that begins with its input": {"anthropic", stream(
			`{"type":"message_start","message":{"usage":{"input_tokens":3.0,"output_tokens":null}}}`,
			`{"type":"content_block_start","content_block":{"type":"tool_use","id":"7","name":"x","input":{"a":1}}}`, `{"type":"content_block_stop"}`,
			`{"type":"content_block_start","content_block":{"type":"tool_use","id":"8","name":"x","input":null}}`, `{"type":"content_block_stop"}`,
			`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":"2"}}`, `{"type":"message_stop"}`,
		), []model.Event{call, provider.ToolCall{ID: "8", Name: "x", Input: json.RawMessage(`{}`)}, ended(model.ForTools)}},
		"null and other types": {"anthropic", stream(
			`{"type":"message_start","message":null}`, `{"type":"new","error":{"type":"overloaded_error"},"delta":"x"}`,
			`{"type":"content_block_delta","delta":{"type":"text_delta","text":null}}`, `{"type":"content_block_delta","delta":null}`,
			`{"type":"message_delta","delta":{"stop_reason":null},"usage":null}`,
			`{"type":"message_delta","usage":{"input_tokens":3,"output_tokens":2,"cache_read_input_tokens":[]}}`, `{"type":"message_stop"}`,
		), []model.Event{ended(model.Done)}},
	} {
		events, err := asked(t, c.api, "text/event-stream; charset=utf-8", c.stream)
		if err != nil || !reflect.DeepEqual(events, c.want) {
			t.Errorf("%s: %v\n%#v", name, err, events)
		}
	}
	whole := stream(`{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`)
	for _, contentType := range []string{"", "text/plain", "application/json"} { // still parsed as a stream
		if events, err := asked(t, "openai", contentType, whole); err != nil || len(events) != 2 {
			t.Errorf("%q: %v %v", contentType, err, events)
		}
	}
}

// If the response is not an answer, the error describes it.
func TestNoAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		contentType, answer, text string
		transient                 bool
	}{
		"a page":             {"text/html; charset=utf-8", "<!DOCTYPE html><p>Welcome", "the API answered with text/html instead of a stream of events: is OPENAI_BASE_URL right?", false},
		"a text":             {"text/plain", "Bad gateway", "the API answered with text/plain instead of a stream of events", false},
		"no stream":          {"application/json", `{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}`, "the API answered with application/json instead of a stream", false},
		"an error":           {"application/json", `{"error":{"message":"no room for ` + key + `","code":500}}`, "the API stopped in the middle of the answer: no room for ***", true},
		"a named error":      {"text/event-stream", "event: error\ndata: {\"message\":\"no room\"}\n\n", "in the middle of the answer: no room", true},
		"an error as object": {"text/event-stream", stream(`{"object":"error","message":"no room","code":400}`), "in the middle of the answer: no room", true},
		"an error as text":   {"text/event-stream", stream(`{"error":"no room"}`), "in the middle of the answer: no room", true},
		"an error by type":   {"text/event-stream", stream(`{"type":"error","error":{"type":"api_error","message":"no room"}}`), "in the middle of the answer: no room", true},
		"an error with less": {"text/event-stream", "event: error\ndata:\n\n", "in the middle of the answer: it does not say why", true},
		"nothing":            {"text/event-stream", "", "the answer of the API was cut off", true},
		"[DONE] only":        {"text/event-stream", stream("[DONE]"), "the answer of the API was cut off", true},
		"no JSON":            {"text/event-stream", stream("oops"), "the connection to the API failed: it sent no JSON: invalid character", true},
		"BOM":                {"text/event-stream", "\ufeff" + stream(`{"error":"no room"}`), "in the middle of the answer: no room", true},
		"two values":         {"text/event-stream", "data: 1\ndata: 2\n\n", "it sent no JSON: invalid character '2'", true},
		"no object":          {"text/event-stream", stream("[1]"), "it sent JSON that is no object, but a value of type array", true},
		"a large event":      {"text/event-stream", "data: " + strings.Repeat(" ", 16<<20), "it sent an event of more than 16 MB", true},
		"many large lines":   {"text/event-stream", strings.Repeat("data: "+strings.Repeat(" ", 1<<20)+"\n", 17), "it sent an event of more than 16 MB", true},
	} {
		events, err := asked(t, "openai", c.contentType, c.answer)
		if err == nil || !strings.Contains(err.Error(), c.text) || len(events) > 0 || errors.Is(err, pluginerr.ErrTransient) != c.transient {
			t.Errorf("%s: %v, transient %v, %v", name, err, errors.Is(err, pluginerr.ErrTransient), events)
		}
	}
	large := stream(`{"choices":[{"delta":{"content":"` + strings.Repeat("a", 8<<20) + `"},"finish_reason":"stop"}]}`)
	if events, err := asked(t, "openai", "text/event-stream", large); err != nil || len(events) != 2 {
		t.Errorf("a large event that is not too large: %v", err)
	}
}

// counting is a transport that answers with a body and counts the open bodies.
type counting struct {
	status int
	body   string
	asked  *http.Request
	open   int
}

// RoundTrip implements http.RoundTripper.
func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.asked = r
	c.open++
	return &http.Response{StatusCode: c.status, Header: http.Header{}, Body: counted{bytes.NewReader([]byte(c.body)), c}, Request: r}, nil
}

type counted struct {
	io.Reader
	by *counting
}

// Close implements io.Closer.
func (c counted) Close() error { c.by.open--; return nil }

// The header of the API contains the credential, nothing else of the environment is sent, and every
// response is closed.
func TestConnections(t *testing.T) {
	for _, name := range []string{"OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_CUSTOM_HEADERS", "ANTHROPIC_CUSTOM_HEADERS", "ANTHROPIC_BETAS", "ANTHROPIC_MODEL"} {
		t.Setenv(name, "X-Leak: leak")
	}
	base := "https://api.example.com/some/path"
	getenv := func(name string) string {
		if strings.HasSuffix(name, "_URL") {
			return base
		}
		return "secret of " + name
	}
	transport := &counting{}
	wrong := errors.New("no more")
	for _, c := range []struct {
		m      model.Model
		url    string
		header http.Header
		list   string
	}{
		{anthropic.Model{Getenv: getenv, Transport: transport}, base + "/v1/messages", http.Header{
			"X-Api-Key": {"secret of ANTHROPIC_API_KEY"}, "Authorization": {"Bearer secret of ANTHROPIC_AUTH_TOKEN"}, "Anthropic-Version": {"2023-06-01"},
		}, base + "/v1/models"},
		{openai.Model{Getenv: getenv, Transport: transport}, base + "/chat/completions", http.Header{"Authorization": {"Bearer secret of OPENAI_API_KEY"}}, base + "/models"},
	} {
		for _, p := range pluginsOf(t) { // each plugin also gets the answers of the other API
			for _, transport.status = range []int{200, 204, 302, 404, 429, 500} {
				transport.body = p.stream
				_ = c.m.Turn(t.Context(), request(), func(model.Event) error { return nil })
				_ = c.m.Turn(t.Context(), request(), func(model.Event) error { return wrong })
				transport.body = "<html>"
				_ = c.m.Turn(t.Context(), request(), func(model.Event) error { return nil })
			}
		}
		sent := transport.asked
		want := c.header.Clone()
		for name, value := range map[string]string{"Accept": "application/json", "Content-Type": "application/json", "User-Agent": "coven"} {
			want.Set(name, value)
		}
		if sent.Method != http.MethodPost || sent.URL.String() != c.url || !reflect.DeepEqual(sent.Header, want) {
			t.Errorf("%s %s %v", sent.Method, sent.URL, sent.Header)
		}
		for _, transport.body = range []string{"<html>", "null", `[{"id":"a"}]`, `{"data":[{"id":"a"}]}`} {
			for _, transport.status = range []int{200, 404} {
				_, _ = c.m.(model.Lister).Models(t.Context())
			}
		}
		want.Del("Content-Type")
		if sent := transport.asked; sent.Method != http.MethodGet || sent.URL.String() != c.list || !reflect.DeepEqual(sent.Header, want) || sent.ContentLength != 0 {
			t.Errorf("%s %s %v", sent.Method, sent.URL, sent.Header)
		}
		if transport.open != 0 {
			t.Errorf("%s: %d answers are open", c.url, transport.open)
		}
	}
}

func TestPages(t *testing.T) {
	var m model.Model
	pages := 0
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		pages++
		switch after := r.URL.Query().Get("after_id"); {
		case strings.HasPrefix(r.URL.Path, "/endless"):
			_, _ = io.WriteString(w, `{"data":[{"id":"a"}],"has_more":true,"last_id":"a"}`)
		case after == "":
			_, _ = io.WriteString(w, `{"data":[{"id":"a","max_input_tokens":"5000"}],"has_more":true,"last_id":"a/&b"}`)
		default:
			_, _ = io.WriteString(w, `{"data":[{"id":"`+after+`","max_tokens":600.0,"max_input_tokens":null}],"has_more":null}`)
		}
	})
	at := func(path string) model.Lister {
		m = anthropic.Model{Getenv: func(name string) string { return map[string]string{"ANTHROPIC_BASE_URL": url + path}[name] }}
		return m.(model.Lister)
	}
	models, err := at("").Models(t.Context())
	if want := []model.Info{{ID: "a", Window: 5000}, {ID: "a/&b", MaxOutput: 600}}; err != nil || !reflect.DeepEqual(models, want) {
		t.Errorf("%+v %v", models, err)
	}
	if models, err := at("/endless").Models(t.Context()); err != nil || len(models) != 100 || pages != 102 {
		t.Errorf("%d models on %d pages: %v", len(models), pages, err)
	}
	c := endpoint.Connection{API: endpoint.OpenAI(), Getenv: keyOnly}
	for body, want := range map[string]string{
		"<html>":                              "the API answered with something else instead of JSON: is OPENAI_BASE_URL right?",
		`[]`:                                  "instead of JSON",
		`{"error":"none"}` + "x":              "instead of JSON",
		"{" + strings.Repeat(" ", 16<<20):     "its answer is larger than 16 MB",
		`{"data":[{"id":"a"}],"error":{}}`:    "",
		`{"data":[{"id":5},{"id":"a"},null]}`: "",
	} {
		c.Transport = &counting{status: http.StatusOK, body: body}
		var into struct{ Data []struct{ ID string } }
		if err := c.Get(t.Context(), "models", &into); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v", body, err)
		}
	}
}
