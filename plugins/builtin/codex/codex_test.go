package codex_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/coven-run/coven/plugins/builtin/codex"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/provider"
)

const thread = "01a2005f-b017-7da3-8cd9-7722bbc15704"

// driver returns the provider for a user with that OPENAI_BASE_URL.
func driver(base string) codex.Provider {
	return codex.Provider{Getenv: func(name string) string {
		return map[string]string{"OPENAI_BASE_URL": base, "HOME": "/home/user"}[name]
	}}
}

func command(t *testing.T, base string, req provider.Request) provider.Command {
	t.Helper()
	cmd, err := driver(base).Command(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return cmd
}

// The task and the system text are passed on standard input, the configuration of the user and of the
// repository is ignored, and the command does not claim to be gated.
func TestCommand(t *testing.T) {
	req := provider.Request{Conversation: thread, Prompt: "the task", System: "be good", Model: "m-1", FilesDir: "/files", StateDir: "/state", Tools: []string{provider.ToolRead, provider.ToolBash}}
	cmd := command(t, "", req)
	want := []string{
		"codex", "exec", "--json", "--skip-git-repo-check", "-s", "danger-full-access",
		"--ignore-user-config", "--ignore-rules", "-c", "project_doc_max_bytes=0", "-m", "m-1", "-",
	}
	if !slices.Equal(cmd.Argv, want) {
		t.Errorf("got  %q\nwant %q", cmd.Argv, want)
	}
	if got := string(cmd.Input); got != "be good\n\n# Your task\n\nthe task" {
		t.Errorf("input %q", got)
	}
	if cmd.Gated || !cmd.Once || cmd.Account != "openai" {
		t.Errorf("gated %v, once %v, account %q", cmd.Gated, cmd.Once, cmd.Account)
	}
	if !slices.Contains(cmd.Pass, "CODEX_API_KEY") || !slices.Equal(cmd.Env, []string{"CODEX_HOME=/state"}) || !slices.Equal(cmd.Logins, []string{"/home/user/.codex/auth.json"}) {
		t.Errorf("the CLI's login is not handed on: %q, %q, %q", cmd.Pass, cmd.Env, cmd.Logins)
	}
}

// An agent that may only read cannot write.
func TestReadOnly(t *testing.T) {
	for _, test := range []struct {
		tools   []string
		sandbox string
	}{
		{nil, "read-only"},
		{[]string{provider.ToolRead}, "read-only"},
		{[]string{provider.ToolRead, provider.ToolWrite}, "danger-full-access"},
		{[]string{provider.ToolEdit}, "danger-full-access"},
		{[]string{provider.ToolBash}, "danger-full-access"},
	} {
		for _, resume := range []bool{false, true} {
			cmd := command(t, "", provider.Request{Conversation: thread, Resume: resume, Prompt: "x", Tools: test.tools})
			if i := slices.Index(cmd.Argv, "-s"); i < 0 || cmd.Argv[i+1] != test.sandbox {
				t.Errorf("%q: %q", test.tools, cmd.Argv)
			}
		}
	}
}

func TestOtherServer(t *testing.T) {
	cmd := command(t, `http://127.0.0.1:8080/v1?a="b"`, provider.Request{Conversation: thread, Prompt: "x"})
	line := strings.Join(cmd.Argv, " ")
	if !strings.Contains(line, `-c model_provider=coven -c model_providers.coven={`) || !strings.Contains(line, `base_url="http://127.0.0.1:8080/v1?a=\"b\""`) {
		t.Errorf("%s", line)
	}
	if cmd.Account != "local" {
		t.Errorf("account %q", cmd.Account)
	}
	if cmd := command(t, "https://gateway.example/v1", provider.Request{Conversation: thread, Prompt: "x"}); cmd.Account != "openai" {
		t.Errorf("account %q", cmd.Account)
	}
}

// A conversation is resumed by an ID that cannot be a flag, without the system text, which it already
// contains.
func TestResume(t *testing.T) {
	cmd := command(t, "", provider.Request{Conversation: thread, Resume: true, Prompt: "go on", System: "be good"})
	if got := cmd.Argv[len(cmd.Argv)-3:]; !slices.Equal(got, []string{"resume", thread, "-"}) {
		t.Errorf("%q", got)
	}
	if got := string(cmd.Input); got != "# Your task\n\ngo on" {
		t.Errorf("input %q", got)
	}
	for _, id := range []string{"--last", "", thread + "x"} {
		if _, err := driver("").Command(t.Context(), provider.Request{Conversation: id, Resume: true}); !errors.Is(err, pluginerr.ErrInvalid) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestNoMessages(t *testing.T) {
	if _, err := driver("").Message(t.Context(), provider.Message{ID: "m", Text: "x"}); !errors.Is(err, pluginerr.ErrUnsupported) {
		t.Errorf("got %v", err)
	}
}

// recorded returns the events in recorded output of the CLI.
func recorded(t *testing.T, name string) []provider.Event {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	events, err := driver("").Parse(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func raw(t *testing.T, value any) json.RawMessage {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// The CLI starts all calls of an answer at the same time. In "work" the second one started first.
func TestParse(t *testing.T) {
	write := `/bin/bash -lc "mkdir -p '/repo/tree' && printf %s 'it'\\''s one` + "\n" + `' > '/repo/tree/a.txt'"`
	read := `/bin/bash -lc 'cat /repo/tree/a.txt; echo oops >&2; exit 3'`
	refused := "unexpected status 401 Unauthorized: scripted failure, url: http://127.0.0.1:8080/v1/responses"
	tests := []struct {
		name string
		want []provider.Event
	}{
		{"patch", []provider.Event{
			provider.Text{Text: "I begin."},
			provider.ToolCall{ID: "item_2", Name: "command_execution", Input: raw(t, map[string]any{"command": `/bin/bash -lc "printf 'a\\nb\\n' > f; echo hi"`})},
			provider.ToolResult{ID: "item_2", Text: "hi\n"},
			provider.ToolCall{ID: "item_3", Name: "file_change", Input: raw(t, map[string]any{
				"file_path": "/repo/tree/f",
				"changes":   []map[string]string{{"path": "/repo/tree/f", "kind": "update"}, {"path": "/repo/tree/g", "kind": "add"}},
			})},
			provider.ToolResult{ID: "item_3"},
			provider.Text{Text: "Done.\n"},
			provider.Result{OK: true, Turns: 1, Usage: provider.Usage{InputTokens: 120, OutputTokens: 17}},
		}},
		{"work", []provider.Event{
			provider.Text{Text: "I begin."},
			provider.ToolCall{ID: "item_2", Name: "command_execution", Input: raw(t, map[string]any{"command": read})},
			provider.ToolResult{ID: "item_2", IsError: true, Text: "cat: /repo/tree/a.txt: No such file or directory\noops\n\n(exit code 3)"},
			provider.ToolCall{ID: "item_3", Name: "command_execution", Input: raw(t, map[string]any{"command": write})},
			provider.ToolResult{ID: "item_3"},
			provider.Text{Text: "It said: unsupported call: Nonsense"},
			provider.Result{OK: true, Turns: 1, Usage: provider.Usage{InputTokens: 130, OutputTokens: 22}},
		}},
		{"refused", []provider.Event{
			provider.Retry{Attempt: 1, MaxAttempts: 5, Status: 401, Reason: refused},
			provider.Retry{Attempt: 2, MaxAttempts: 5, Status: 401, Reason: refused},
			provider.Retry{Attempt: 3, MaxAttempts: 5, Status: 401, Reason: refused},
			provider.Retry{Attempt: 4, MaxAttempts: 5, Status: 401, Reason: refused},
			provider.Retry{Attempt: 5, MaxAttempts: 5, Status: 401, Reason: refused},
			provider.Result{
				Status: 401, Turns: 1,
				Error: refused + " (log in with codex login, or set CODEX_API_KEY; for the server of OPENAI_BASE_URL set OPENAI_API_KEY)",
			},
		}},
		{"limited", []provider.Event{
			provider.Result{Limit: true, Status: 429, Turns: 1, Error: "exceeded retry limit, last status: 429 Too Many Requests"},
		}},
		{"invalid", []provider.Event{
			provider.Result{Turns: 1, Error: "the API refused the request: scripted failure"},
		}},
	}
	for _, test := range tests {
		got := recorded(t, test.name)
		if _, started := got[0].(provider.Started); !started {
			t.Errorf("%s begins with %+v", test.name, got[0])
		}
		if got := normal(got[1:]); !reflect.DeepEqual(got, normal(test.want)) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", test.name, got, test.want)
		}
	}
}

// normal brings all inputs into the same form.
func normal(events []provider.Event) []provider.Event {
	all := slices.Clone(events)
	for i, e := range all {
		if call, ok := e.(provider.ToolCall); ok {
			var value any
			if json.Unmarshal(call.Input, &value) == nil {
				call.Input, _ = json.Marshal(value)
			}
			all[i] = call
		}
	}
	return all
}

// The CLI includes cache reads and cache writes in its input tokens.
func TestLines(t *testing.T) {
	for line, want := range map[string][]provider.Event{
		`{"type":"turn.completed","usage":{"input_tokens":100,"cached_input_tokens":70,"cache_write_input_tokens":20,"output_tokens":5}}`: {
			provider.Result{OK: true, Turns: 1, Usage: provider.Usage{InputTokens: 10, OutputTokens: 5, CacheReadTokens: 70, CacheWriteTokens: 20}},
		},
		`{"type":"error","message":"Reconnecting... waiting for network (Connection failed: error sending request)"}`: {
			provider.Retry{Reason: "waiting for network (Connection failed: error sending request)"},
		},
		`{"type":"turn.failed","error":{"message":"You've hit your usage limit. Try again later."}}`: {
			provider.Result{Limit: true, Turns: 1, Error: "You've hit your usage limit. Try again later."},
		},
		`{"type":"item.completed","item":{"id":"i","type":"reasoning","text":"hm"}}`:       {provider.Reasoning{Text: "hm"}},
		`{"type":"item.completed","item":{"id":"i","type":"error","message":"a warning"}}`: nil,
		`{"type":"turn.started"}`: nil,
		`{"type":`:                nil,
		"":                        nil,
	} {
		got, err := driver("").Parse(t.Context(), []byte(line+"\n"))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", line, got, err)
		}
	}
}
