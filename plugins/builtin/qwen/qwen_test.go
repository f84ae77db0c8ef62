package qwen_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/plugins/builtin/qwen"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/provider"
)

const conversation = "0b8f9c52-6b0e-4a53-9d6e-0a4c5f0f6f11"

var driver = qwen.Provider{Getenv: func(string) string { return "" }}

// The task and the system text are passed on standard input, no settings are read, and the command does not
// claim to be gated.
func TestCommand(t *testing.T) {
	req := provider.Request{Conversation: conversation, Prompt: "/clear", System: "be good", Model: "m-1", FilesDir: "/files", Tools: []string{provider.ToolRead, provider.ToolBash}}
	cmd, err := driver.Command(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"qwen", "--auth-type", "openai", "--yolo", "--bare", "--input-format", "stream-json", "--output-format", "stream-json",
		"--session-id", conversation, "--model", "m-1",
	}
	if !slices.Equal(cmd.Argv, want) {
		t.Errorf("got  %q\nwant %q", cmd.Argv, want)
	}
	if cmd.Gated || cmd.Once || cmd.Account != "openai" {
		t.Errorf("gated %v, once %v, account %q", cmd.Gated, cmd.Once, cmd.Account)
	}
	if text := said(t, cmd); text != "be good\n\n# Your task\n\n/clear" {
		t.Errorf("input %q", text)
	}
	req.Resume, req.Model = true, ""
	if cmd, err = driver.Command(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if got := cmd.Argv[len(cmd.Argv)-2:]; !slices.Equal(got, []string{"--resume", conversation}) {
		t.Errorf("%q", got)
	}
	if text := said(t, cmd); text != "# Your task\n\n/clear" { // never begins with a slash
		t.Errorf("input %q", text)
	}
}

// A text that could be a flag is not a valid conversation ID.
func TestConversation(t *testing.T) {
	for _, id := range []string{"", "--allowed-tools", "-y", "c-1", conversation + "\n", "-" + conversation} {
		for _, resume := range []bool{false, true} {
			if cmd, err := driver.Command(t.Context(), provider.Request{Conversation: id, Resume: resume}); !errors.Is(err, pluginerr.ErrInvalid) {
				t.Errorf("%q: %v, %q", id, err, cmd.Argv)
			}
		}
	}
}

// An agent that may only read has no tool that writes.
func TestReadOnly(t *testing.T) {
	for _, test := range []struct {
		tools []string
		want  bool
	}{
		{nil, true},
		{[]string{provider.ToolRead}, true},
		{[]string{provider.ToolRead, provider.ToolWrite}, false},
		{[]string{provider.ToolEdit}, false},
		{[]string{provider.ToolBash}, false},
	} {
		cmd, err := driver.Command(t.Context(), provider.Request{Conversation: conversation, Tools: test.tools})
		if got := slices.Contains(cmd.Argv, "--exclude-tools=edit,notebook_edit,run_shell_command,write_file"); err != nil || got != test.want {
			t.Errorf("%q: %q, %v", test.tools, cmd.Argv, err)
		}
	}
}

// said returns the text of the first message, which must be one line.
func said(t *testing.T, cmd provider.Command) string {
	t.Helper()
	line, rest, _ := strings.Cut(string(cmd.Input), "\n")
	var input struct {
		Type    string
		Message struct{ Role, Content string }
	}
	if err := json.Unmarshal([]byte(line), &input); err != nil || rest != "" || input.Type != "user" || input.Message.Role != "user" {
		t.Fatalf("%v: %s", err, cmd.Input)
	}
	return input.Message.Content
}

func TestAccount(t *testing.T) {
	for base, want := range map[string]string{
		"": "openai", "https://api.openai.com/v1": "openai", "http://127.0.0.1:11434/v1": "local", "http://localhost/v1": "local",
		"http://[::1]:1/v1": "local", "https://localhost.example/v1": "openai", "::": "openai",
	} {
		cmd, err := qwen.Provider{Getenv: func(string) string { return base }}.Command(t.Context(), provider.Request{Conversation: conversation})
		if err != nil || cmd.Account != want {
			t.Errorf("%s: %q, %v", base, cmd.Account, err)
		}
	}
}

func TestNoMessages(t *testing.T) {
	if _, err := driver.Message(t.Context(), provider.Message{ID: "m", Text: "x"}); !errors.Is(err, pluginerr.ErrUnsupported) {
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
	events, err := driver.Parse(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// In this run the CLI used tools. An answer has several lines, but its usage is
// reported once.
func TestParse(t *testing.T) {
	var kinds []string
	var spent provider.Usage
	results := map[string]provider.ToolResult{}
	for _, e := range recorded(t, "work") {
		switch e := e.(type) {
		case provider.Started:
			kinds = append(kinds, "started "+e.Model+" "+strings.Join(e.Tools, ","))
			if e.Conversation == "" {
				t.Error("the conversation has no id")
			}
		case provider.Text:
			kinds = append(kinds, "text "+strings.SplitN(e.Text, ":", 2)[0])
		case provider.ToolCall:
			kinds = append(kinds, "call "+e.Name)
			if !json.Valid(e.Input) {
				t.Errorf("input %s", e.Input)
			}
		case provider.ToolResult:
			kinds = append(kinds, "result")
			results[e.ID] = e
		case provider.Spent:
			word := "spent"
			if e.More {
				word = "spent, more"
			}
			if !e.Done || e.Model != "m-1" {
				t.Errorf("%+v", e)
			}
			kinds, spent = append(kinds, word), spent.Add(e.Usage)
		case provider.Result:
			kinds = append(kinds, "end")
			if !e.OK || e.Usage != (provider.Usage{}) || spent != (provider.Usage{InputTokens: 130, OutputTokens: 22}) || e.Turns != 4 || !strings.HasPrefix(e.Text, "It said: ") {
				t.Errorf("%+v, and the answers used %+v", e, spent)
			}
		default:
			t.Errorf("%+v", e)
		}
	}
	want := []string{
		"started m-1 read_file,edit,run_shell_command", "text I begin.", "call edit", "call run_shell_command", "spent, more", "result", "result",
		"call edit", "spent, more", "result", "call Nonsense", "spent, more", "result", "text It said", "spent", "end",
	}
	if !slices.Equal(kinds, want) {
		t.Errorf("got  %q\nwant %q", kinds, want)
	}
	failed := 0
	for _, r := range results {
		if r.IsError {
			failed++
		}
	}
	if len(results) != 4 || failed != 1 {
		t.Errorf("%d results, %d failed", len(results), failed)
	}
}

// The CLI reports a refusal of the API as success in versions before 0.24, and as an error in later ones.
func TestRefused(t *testing.T) {
	last := func(events []provider.Event) provider.Result {
		result, _ := events[len(events)-1].(provider.Result)
		return result
	}
	for _, name := range []string{"refused", "rejected"} {
		if got := last(recorded(t, name)); got.OK || got.Limit || got.Status != 401 || got.Turns != 1 ||
			got.Error != "API Error: 401 scripted failure (set OPENAI_API_KEY, and OPENAI_BASE_URL where the server is not OpenAI's)" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := last(recorded(t, "nokey")); got.OK || !strings.HasPrefix(got.Error, "Missing API key") || !strings.Contains(got.Error, "OPENAI_BASE_URL") {
		t.Errorf("%+v", got)
	}
}

// A limit is accepted only if an agent cannot have written it.
func TestLines(t *testing.T) {
	for line, want := range map[string][]provider.Event{
		`{"type":"result","is_error":false,"num_turns":1,"result":"[API Error: 429 slow down]","usage":{"input_tokens":0,"output_tokens":0}}`: {
			provider.Result{Turns: 1, Limit: true, Status: 429, Error: "API Error: 429 slow down"},
		},
		`{"type":"result","is_error":false,"num_turns":3,"result":"[API Error: 429 slow down]","usage":{"input_tokens":9,"output_tokens":1}}`: {
			provider.Result{Turns: 3, Status: 429, Error: "API Error: 429 slow down"},
		},
		`{"type":"result","is_error":false,"result":"[API Error: Connection error. (cause: fetch failed)]","usage":{}}`: {
			provider.Result{Error: "API Error: Connection error. (cause: fetch failed)"},
		},
		`{"type":"result","is_error":true,"subtype":"error_during_execution","usage":{}}`: {provider.Result{Error: "error_during_execution"}},
		`{"type":"assistant","message":{"id":"a","model":"m","content":[{"type":"thinking","thinking":"hm"}],"usage":{"input_tokens":9,"output_tokens":1,"cache_read_input_tokens":4}}}`: {
			provider.Reasoning{Text: "hm"},
			provider.Spent{ID: "a", Model: "m", Done: true, Usage: provider.Usage{InputTokens: 5, OutputTokens: 1, CacheReadTokens: 4}},
		},
		`{"type":"user","message":{"content":"plain"}}`: nil,
		`{"type":"system","subtype":"other"}`:           nil,
		"not JSON":                                      nil,
		"[qwen-code] Waiting for API capacity... attempt 7, retry in 66s\r": {
			provider.Retry{Attempt: 7, DelayMS: 66000, Status: 429, Reason: "no capacity"},
			provider.Limit{Again: 66 * time.Second, Reason: "rate_limit", Status: 429},
		},
		"x [qwen-code] Waiting for API capacity... attempt 7, retry in 66s": nil,
	} {
		got, err := driver.Parse(t.Context(), []byte(line+"\n"))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\ngot  %+v, %v\nwant %+v", line, got, err, want)
		}
	}
}
