package endpoint_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coven-run/coven/plugins/builtin/endpoint"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/provider"
)

// conversation returns a conversation with all kinds of content.
func conversation(id string) model.Request {
	return model.Request{
		Model: id, System: "Be brief.",
		Messages: []model.Message{
			{Role: model.User, Parts: []model.Part{model.Text{Text: "Look."}}},
			{Role: model.Assistant, Parts: []model.Part{
				model.Reasoning{Text: "First the file.", Signature: "c2lnbmVk"},
				model.Reasoning{Signature: "redacted:aGlkZGVu"},
				model.Reasoning{Text: "of another server"},
				model.Text{Text: "I look."},
				provider.ToolCall{ID: "call_1", Name: "read", Input: json.RawMessage(`{"path":"a.txt"}`)},
				provider.ToolCall{ID: "call_2", Name: "list_notes"},
				provider.ToolCall{ID: "chatcmpl-tool-0123456789abcdef0123456789abcdef_k3x9", Name: "read", Input: json.RawMessage(`"{\"path\""`)},
			}},
			{Role: model.User, Parts: []model.Part{
				provider.ToolResult{ID: "call_1", Text: "<a> & b"},
				provider.ToolResult{ID: "call_2"},
				model.Text{Text: "Hurry."},
				provider.ToolResult{ID: "chatcmpl-tool-0123456789abcdef0123456789abcdef_k3x9", Text: "wrong arguments", IsError: true},
			}},
			{Role: model.Assistant},
			{Role: model.User, Parts: []model.Part{model.Text{}, model.Text{Text: "And?"}}},
		},
		Tools: []model.Tool{
			{Name: "read", Description: "Reads a file.", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"],"additionalProperties":false}`)},
			{Name: "list_notes"},
			{Name: "look", Schema: json.RawMessage(`{"type":"object"}`)},
		},
	}
}

// The requests must match the contracts of the APIs, which these tests cannot call.
func TestRequests(t *testing.T) {
	ids := map[string]string{"anthropic": "opus", "openai": "gpt-5.4"}
	for _, p := range pluginsOf(t) {
		var body []byte
		var header http.Header
		var path string
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ = io.ReadAll(r.Body)
			header, path = r.Header, r.URL.Path
			sse(p.stream)(w, r)
		})
		if err := p.at(url+"/v1/").Turn(t.Context(), conversation(ids[p.api.Name]), func(model.Event) error { return nil }); err != nil {
			t.Fatal(err)
		}
		golden(t, p.api.Name+".json", body)
		switch p.api.Name {
		case "anthropic":
			if path != "/v1/v1/messages" || header.Get("X-Api-Key") != key || header.Get("Authorization") != "" {
				t.Errorf("%s %v", path, header)
			}
		case "openai":
			if path != "/v1/chat/completions" || header.Get("Authorization") != "Bearer "+key {
				t.Errorf("%s %v", path, header)
			}
		}
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	var indented bytes.Buffer
	if err := json.Indent(&indented, got, "", "  "); err != nil {
		t.Fatalf("%v: %s", err, got)
	}
	indented.WriteByte('\n')
	file := filepath.Join("testdata", name)
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(file, indented.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if want := recorded(t, name); unescaped(want) != unescaped(indented.String()) {
		t.Errorf("%s differs (UPDATE=1 rewrites it):\n%s", file, indented.String())
	}
}

// unescaped returns JSON without the escapes for HTML.
func unescaped(text string) string {
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(text)
}

// The name of the limit for an answer and the key depend on the server.
func TestLengths(t *testing.T) {
	for _, p := range pluginsOf(t) {
		var body map[string]any
		var header http.Header
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			body = nil
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				t.Error(err)
			}
			header = r.Header
			sse(p.stream)(w, r)
		})
		r := request()
		r.MaxTokens = 100
		keyless := p.model(func(name string) string { return map[string]string{p.api.BaseURL: url}[name] })
		if err := keyless.Turn(t.Context(), r, func(model.Event) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if body["max_tokens"] != 100.0 || header.Get("Authorization")+header.Get("X-Api-Key") != "" {
			t.Errorf("%s: %v %v", p.api.Name, body, header)
		}
		r.MaxTokens = 0
		if err := keyless.Turn(t.Context(), r, func(model.Event) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if want := map[string]any{"anthropic": 8192.0, "openai": nil}[p.api.Name]; body["max_tokens"] != want {
			t.Errorf("%s: %v", p.api.Name, body)
		}
	}
}

func TestModels(t *testing.T) {
	for _, p := range pluginsOf(t) {
		body := map[string]string{
			"anthropic": `{"data":[{"type":"model","id":"claude-x","max_input_tokens":5000,"max_tokens":600},{"type":"model","id":"claude-y"}],"has_more":false}`,
			"openai":    `{"object":"list","data":[{"id":"claude-x","object":"model","max_model_len":5000},{"id":"claude-y","object":"model"}]}`,
		}[p.api.Name]
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, "/models") {
				t.Errorf("asked for %s", r.URL)
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, body)
		})
		models, err := p.at(url).(model.Lister).Models(t.Context())
		if err != nil || len(models) != 2 || models[0].Window != 5000 || models[1] != (model.Info{ID: "claude-y"}) {
			t.Errorf("%s: %+v %v", p.api.Name, models, err)
		}
		down := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) })
		if _, err := p.at(down).(model.Lister).Models(t.Context()); err == nil {
			t.Errorf("%s: a limit is no error", p.api.Name)
		}
	}
}

func TestEndpoints(t *testing.T) {
	env := func(pairs ...string) func(string) string {
		return func(name string) string {
			for _, kv := range pairs {
				if variable, value, _ := strings.Cut(kv, "="); variable == name {
					return value
				}
			}
			return ""
		}
	}
	openAI, claude := endpoint.OpenAI(), endpoint.Anthropic()
	for _, c := range []struct {
		api     endpoint.API
		getenv  func(string) string
		account string
		wrong   string
	}{
		{openAI, env(), "openai", "OPENAI_API_KEY is not set"},
		{openAI, env("OPENAI_API_KEY=x"), "openai", ""},
		{openAI, env("OPENAI_BASE_URL=http://localhost:11434/v1"), "local", ""},
		{openAI, env("OPENAI_BASE_URL=http://[::1]:8080"), "local", ""},
		{openAI, env("OPENAI_BASE_URL=http://127.0.0.1.example.com"), "openai", ""},
		{openAI, env("OPENAI_BASE_URL=https://api.openai.com/v1"), "openai", "OPENAI_API_KEY is not set"},
		{openAI, env("OPENAI_BASE_URL=localhost:11434"), "openai", "OPENAI_BASE_URL is not the URL of a server"},
		{claude, env(), "anthropic", "ANTHROPIC_API_KEY is not set"},
		{claude, env("ANTHROPIC_AUTH_TOKEN=x"), "anthropic", ""},
	} {
		err := c.api.Check(c.getenv)
		if got := c.api.Account(c.getenv); got != c.account || (err == nil) != (c.wrong == "") || err != nil && !strings.HasPrefix(err.Error(), c.wrong) {
			t.Errorf("%s: %s %v", c.account, got, err)
		}
	}
	official := endpoint.Connection{API: claude, Getenv: env()}
	if info := official.Info(claude.ModelID("sonnet")); info.ID != "claude-sonnet-5-5" || info.Window != 1_000_000 || info.Prices == nil || info.Prices.Output != 10 {
		t.Errorf("%+v", info)
	}
	for id, want := range map[string]model.Info{
		"claude-haiku-5-5":           {Window: 1_000_000, MaxOutput: 128_000},
		"claude-fable-5":             {Window: 1_000_000, MaxOutput: 128_000},
		"claude-sonnet-5-5-20260901": {Window: 1_000_000, MaxOutput: 128_000},
		"claude-opus-4-8":            {Window: 1_000_000, MaxOutput: 128_000},
		"claude-haiku-4-5":           {Window: 200_000, MaxOutput: 64_000},
		"claude-sonnet-4-5-20250929": {Window: 200_000, MaxOutput: 64_000},
		"claude-3-5-haiku-20241022":  {Window: 200_000, MaxOutput: 8_192},
		"claude-opus-9":              {},
	} {
		thinks := strings.Contains(id, "-5-5") || id == "claude-fable-5" || id == "claude-opus-4-8"
		if got := official.Info(id); got.Window != want.Window || got.MaxOutput != want.MaxOutput || claude.Adaptive(id) != thinks {
			t.Errorf("%s: %+v, adaptive %v", id, got, claude.Adaptive(id))
		}
	}
	local := endpoint.Connection{API: openAI, Getenv: env("OPENAI_BASE_URL=http://localhost:1")}
	if info := local.Info("gpt-4o"); info != (model.Info{ID: "gpt-4o"}) {
		t.Errorf("%+v", info)
	}
	if why, next := claude.Refused(env("ANTHROPIC_API_KEY=x")); why != "ANTHROPIC_API_KEY is wrong" || next != "export ANTHROPIC_API_KEY=..." {
		t.Error(why, next)
	}
}
