package claude_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/plugins/builtin/claude"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/provider"
)

const conversation = "0b8f9c52-6b0e-4a53-9d6e-0a4c5f0f6f11"

func request() provider.Request {
	return provider.Request{
		Conversation: conversation, Prompt: "/evil @.env", System: "be good", Model: "haiku", FilesDir: "/files",
		Tools:    []string{provider.ToolBash, provider.ToolRead, provider.ToolWrite, provider.ToolEdit},
		Gate:     provider.Server{Name: "coven", Argv: []string{"/bin/coven", "gate"}, Env: []string{"K=a=b"}},
		GateTool: "approve",
	}
}

// The gate decides about every tool in the list, no settings of the repository or the user are read, and
// the command line contains no text of the task.
func TestCommand(t *testing.T) {
	cmd, err := claude.Provider{}.Command(t.Context(), request())
	if err != nil {
		t.Fatal(err)
	}
	line := strings.Join(cmd.Argv, " ")
	for _, want := range []string{
		"--tools Bash,Edit,NotebookEdit,Read,Write",
		`--settings {"permissions":{"ask":["Bash","Edit","NotebookEdit","Read","Write","mcp__coven"]}}`,
		"--permission-prompt-tool mcp__coven__approve", "--permission-mode default",
		"--strict-mcp-config", "--mcp-config /files/mcp.json", "--session-id " + conversation, "--model haiku",
		"--append-system-prompt-file /files/system.md", "--replay-user-messages", "--include-partial-messages",
	} {
		if !strings.Contains(line, want) {
			t.Errorf("the command line lacks %q:\n%s", want, line)
		}
	}
	if i := slices.Index(cmd.Argv, "--setting-sources"); i < 0 || cmd.Argv[i+1] != "" {
		t.Errorf("settings are read: %q", cmd.Argv)
	}
	for _, never := range []string{"bypassPermissions", "dangerously", "evil", "be good"} {
		if strings.Contains(line, never) {
			t.Errorf("the command line holds %q", never)
		}
	}
	if !cmd.Gated || cmd.Account != "anthropic" {
		t.Errorf("gated %v, account %q", cmd.Gated, cmd.Account)
	}
}

// The CLI stops retrying a failing server as it would without its watchdog, or after the number of retries
// that the user set.
func TestRetries(t *testing.T) {
	for user, want := range map[string]bool{"": true, "4": false} {
		driver := claude.Provider{Getenv: func(name string) string {
			if name != "CLAUDE_CODE_MAX_RETRIES" && name != "CLAUDE_CONFIG_DIR" && name != "HOME" {
				t.Errorf("%s is asked for", name)
			}
			return user
		}}
		cmd, err := driver.Command(t.Context(), request())
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Contains(cmd.Env, "CLAUDE_CODE_MAX_RETRIES=10"); got != want {
			t.Errorf("the user said %q: %q", user, cmd.Env)
		}
	}
}

// A text that could be a flag is not a valid conversation ID.
func TestConversation(t *testing.T) {
	for _, id := range []string{"", "--dangerously-skip-permissions", "-c", "c-1", conversation + "\n", "-" + conversation} {
		for _, resume := range []bool{false, true} {
			req := request()
			req.Conversation, req.Resume = id, resume
			if cmd, err := (claude.Provider{}).Command(t.Context(), req); !errors.Is(err, pluginerr.ErrInvalid) {
				t.Errorf("%q: %v, %q", id, err, cmd.Argv)
			}
		}
	}
}

// The CLI interprets @paths and /commands in the last block of a message, so that block is never the text
// of the task.
func TestLastBlockIsOurs(t *testing.T) {
	cmd, err := claude.Provider{}.Command(t.Context(), request())
	if err != nil {
		t.Fatal(err)
	}
	followUp, err := claude.Provider{}.Message(t.Context(), provider.Message{ID: "u-1", Text: "@/etc/passwd"})
	if err != nil {
		t.Fatal(err)
	}
	for _, input := range [][]byte{cmd.Input, followUp} {
		var m struct {
			Message struct {
				Content []struct{ Text string } `json:"content"`
			} `json:"message"`
		}
		if err := json.Unmarshal(input, &m); err != nil || input[len(input)-1] != '\n' {
			t.Fatalf("%q: %v", input, err)
		}
		last := m.Message.Content[len(m.Message.Content)-1].Text
		if len(m.Message.Content) != 2 || strings.ContainsAny(last, "@/") {
			t.Errorf("blocks: %+v", m.Message.Content)
		}
	}
}

// The CLI acknowledges a message by its ID.
func TestMessage(t *testing.T) {
	input, err := claude.Provider{}.Message(t.Context(), provider.Message{ID: "u-1", Text: "/clear\n\u2028"})
	if err != nil || !strings.Contains(string(input), `"uuid":"u-1"`) || strings.Count(string(input), "\n") != 1 {
		t.Errorf("%q, %v", input, err)
	}
	for _, empty := range []provider.Message{{Text: "no id"}, {ID: "u-1", Text: " \n"}} {
		if input, err := (claude.Provider{}).Message(t.Context(), empty); err == nil {
			t.Errorf("%+v is written as %q", empty, input)
		}
	}
}

func TestServersFile(t *testing.T) {
	cmd, err := claude.Provider{}.Command(t.Context(), request())
	if err != nil {
		t.Fatal(err)
	}
	want := `{"mcpServers":{"coven":{"args":["gate"],"command":"/bin/coven","env":{"K":"a=b"},"type":"stdio"}}}`
	if cmd.Files[0].Name != "mcp.json" || string(cmd.Files[0].Content) != want {
		t.Errorf("%s = %s", cmd.Files[0].Name, cmd.Files[0].Content)
	}
}

func TestCommandRefuses(t *testing.T) {
	for name, spoil := range map[string]func(*provider.Request){
		"no tools":     func(r *provider.Request) { r.Tools = nil },
		"unknown tool": func(r *provider.Request) { r.Tools = []string{"browser_fetch"} },
		"no gate":      func(r *provider.Request) { r.Gate.Argv = nil },
	} {
		req := request()
		spoil(&req)
		if cmd, err := (claude.Provider{}).Command(t.Context(), req); err == nil {
			t.Errorf("%s: %q", name, cmd.Argv)
		}
	}
}

func TestParse(t *testing.T) {
	tests := []struct {
		line string
		want []provider.Event
	}{
		{
			`{"type":"system","subtype":"init","session_id":"s","model":"m","tools":["Read"],"mcp_servers":[{"name":"coven","status":"failed"},{"name":"x","status":"connected"}]}`,
			[]provider.Event{provider.Started{Conversation: "s", Model: "m", Tools: []string{"Read"}, FailedServers: []string{"coven"}}},
		},
		{
			`{"type":"system","subtype":"api_retry","attempt":1,"max_retries":10,"retry_delay_ms":531.5,"error_status":529,"error":"overloaded"}`,
			[]provider.Event{
				provider.Retry{Attempt: 1, MaxAttempts: 10, DelayMS: 531, Status: 529, Reason: "overloaded"},
				provider.Limit{Again: 531500 * time.Microsecond, Reason: "overloaded", Status: 529},
			},
		},
		// A delay that is longer than the CLI's own comes from the API.
		{
			`{"type":"system","subtype":"api_retry","attempt":1,"max_retries":10,"retry_delay_ms":600000,"error_status":429,"error":"rate_limit"}`,
			[]provider.Event{
				provider.Retry{Attempt: 1, MaxAttempts: 10, DelayMS: 600000, Status: 429, Reason: "rate_limit"},
				provider.Limit{After: 10 * time.Minute, Again: 10 * time.Minute, Reason: "rate_limit", Status: 429},
			},
		},
		// Further retries than the CLI's own are treated as a limit.
		{
			`{"type":"system","subtype":"api_retry","attempt":11,"max_retries":10,"retry_delay_ms":300000,"error_status":529,"error":"overloaded"}`,
			[]provider.Event{
				provider.Retry{Attempt: 11, MaxAttempts: 10, DelayMS: 300000, Status: 529, Reason: "overloaded"},
				provider.Limit{Reason: "overloaded", Status: 529},
			},
		},
		{
			`{"type":"system","subtype":"api_retry","attempt":1,"max_retries":10,"retry_delay_ms":90000,"error_status":500,"error":"server_error"}`,
			[]provider.Event{provider.Retry{Attempt: 1, MaxAttempts: 10, DelayMS: 90000, Status: 500, Reason: "server_error"}},
		},
		{
			`{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1795280659,"rateLimitType":"five_hour","isUsingOverage":false}}`,
			[]provider.Event{provider.Limit{Until: time.Unix(1795280659, 0), Reason: "five_hour", Status: 429}},
		},
		{`{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","isUsingOverage":false}}`, []provider.Event{provider.Limit{Reason: "rate_limit", Status: 429}}},
		{`{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1795280659,"isUsingOverage":true}}`, nil},
		{`{"type":"rate_limit_event","rate_limit_info":{"status":"allowed","resetsAt":1795280659,"rateLimitType":"five_hour"}}`, nil},
		// Of the fragments of an answer only the usage counts.
		{
			`{"type":"stream_event","event":{"type":"message_start","message":{"id":"msg_1","model":"m","usage":{"input_tokens":100,"output_tokens":1}}}}`,
			[]provider.Event{provider.Spent{ID: "msg_1", Model: "m", Usage: provider.Usage{InputTokens: 100, OutputTokens: 1}}},
		},
		{`{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}}`, nil},
		{
			`{"type":"stream_event","event":{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":42}}}`,
			[]provider.Event{provider.Spent{Usage: provider.Usage{OutputTokens: 42}, Done: true, More: true}},
		},
		{
			`{"type":"stream_event","event":{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":42}}}`,
			[]provider.Event{provider.Spent{Usage: provider.Usage{OutputTokens: 42}, Done: true}},
		},
		{
			`{"type":"assistant","message":{"content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"hello"},{"type":"tool_use","id":"t1","name":"Read","input":{"file_path":"a"}}]}}`,
			[]provider.Event{
				provider.Reasoning{Text: "hm"},
				provider.Text{Text: "hello"},
				provider.ToolCall{ID: "t1", Name: "Read", Input: json.RawMessage(`{"file_path":"a"}`)},
			},
		},
		{
			`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"<tool_use_error>no</tool_use_error>","is_error":true},{"type":"tool_result","tool_use_id":"t2","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]}}`,
			[]provider.Event{
				provider.ToolResult{ID: "t1", Text: "<tool_use_error>no</tool_use_error>", IsError: true, NeverRan: true},
				provider.ToolResult{ID: "t2", Text: "ab"},
			},
		},
		// The agent cannot hide that a tool ran.
		{
			`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"<tool_use_error>","is_error":false}]}}`,
			[]provider.Event{provider.ToolResult{ID: "t1", Text: "<tool_use_error>"}},
		},
		{
			`{"type":"result","subtype":"success","is_error":false,"result":"done","num_turns":2,"total_cost_usd":0.5,"usage":{"input_tokens":1,"output_tokens":2,"cache_read_input_tokens":3,"cache_creation_input_tokens":4}}`,
			[]provider.Event{provider.Result{OK: true, Text: "done", Turns: 2, Usage: provider.Usage{InputTokens: 1, OutputTokens: 2, CacheReadTokens: 3, CacheWriteTokens: 4, CostUSD: 0.5}}},
		},
		// An input line that the CLI acknowledged; text in a tool result is not an acknowledgement.
		{
			`{"type":"user","uuid":"u-1","isReplay":true,"message":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}`,
			[]provider.Event{provider.Acknowledged{ID: "u-1"}},
		},
		{`{"type":"user","uuid":"u-1","message":{"content":[{"type":"text","text":"isReplay"}]}}`, nil},
		// Each line of an API answer repeats its usage.
		{
			`{"type":"assistant","message":{"id":"msg_1","model":"m","content":[{"type":"text","text":"hi"}],"usage":{"input_tokens":1,"output_tokens":2,"cache_read_input_tokens":3,"cache_creation_input_tokens":4}}}`,
			[]provider.Event{
				provider.Text{Text: "hi"},
				provider.Spent{ID: "msg_1", Model: "m", Usage: provider.Usage{InputTokens: 1, OutputTokens: 2, CacheReadTokens: 3, CacheWriteTokens: 4}},
			},
		},
		{
			`{"type":"assistant","message":{"id":"x","model":"<synthetic>","content":[{"type":"text","text":"API Error"}],"usage":{"input_tokens":0,"output_tokens":0}}}`,
			[]provider.Event{provider.Text{Text: "API Error"}},
		},
		// Without a login the CLI sends no request.
		{
			`{"type":"result","subtype":"success","is_error":true,"api_error_status":null,"result":"Not logged in · Please run /login","terminal_reason":"api_error","num_turns":1}`,
			[]provider.Event{provider.Result{Text: "Not logged in · Please run /login", Error: "Not logged in · Please run /login", Status: 401, Turns: 1}},
		},
		// Exhausted retries end with the subtype success.
		{
			`{"type":"result","subtype":"success","is_error":true,"api_error_status":529,"result":"Overloaded","num_turns":1}`,
			[]provider.Event{provider.Result{Text: "Overloaded", Error: "API status 529: Overloaded", Limit: true, Status: 529, Turns: 1}},
		},
		{
			`{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["No conversation found"]}`,
			[]provider.Event{provider.Result{Error: "No conversation found"}},
		},
		{"\x1b[?1006l\x1b[?25h" + `{"type":"result","is_error":true,"subtype":"error_max_turns"}`, []provider.Event{provider.Result{Error: "error_max_turns"}}},
		{"\x1b[?1006l\x1b[?25h", nil},
		{"Error: something on stderr", nil},
		{`{"type":"something_new","data":1}`, nil},
		{`{"type":"assistant","message":{"content":"plain"}}`, nil},
		{"", nil},
	}
	for _, tt := range tests {
		got, err := claude.Provider{}.Parse(t.Context(), []byte(tt.line+"\n"))
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("Parse(%s)\n got %+v, %v\nwant %+v", tt.line, got, err, tt.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"type":"assistant","message":{"content":[{"type":"text","text":"x"}]}}` + "\n"))
	f.Add([]byte("\x1b[0m{"))
	f.Fuzz(func(t *testing.T, lines []byte) {
		if _, err := (claude.Provider{}).Parse(t.Context(), lines); err != nil {
			t.Fatal(err)
		}
	})
}
