package driver_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/plugins/builtin/claude"
	"github.com/coven-run/coven/plugins/builtin/qwen"
	"github.com/coven-run/coven/plugins/provider"
)

// A child gets the variables that it needs to find programs and those in pass, but no credentials.
func TestEnvironment(t *testing.T) {
	user := []string{
		"PATH=/bin", "HOME=/home/me", "LC_ALL=C", "ANTHROPIC_API_KEY=k", "CLAUDE_CODE_X=1",
		"SSH_AUTH_SOCK=/s", "AWS_SECRET_ACCESS_KEY=s", "GITHUB_TOKEN=t", "LD_PRELOAD=x", "COVEN_GATE_TOKEN=t", "MY_VAR=1", "PATHS=no",
	}
	got := driver.Environment(user, []string{"ANTHROPIC_*", "MY_VAR"})
	want := []string{"GIT_TERMINAL_PROMPT=0", "PATH=/bin", "HOME=/home/me", "LC_ALL=C", "ANTHROPIC_API_KEY=k", "MY_VAR=1"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// If an agent started coven, coven's agents do not get its session, unless the user names the variable.
func TestEnvironmentWithoutSession(t *testing.T) {
	user := []string{
		"CLAUDECODE=1", "CLAUDE_CODE_ENTRYPOINT=cli", "CLAUDE_CODE_SESSION_ID=s", "CLAUDE_CODE_SSE_PORT=1", "CLAUDE_CODE_CHILD_SESSION=1",
		"CLAUDE_CODE_MESSAGING_SOCKET=/s", "CLAUDE_CODE_MESSAGING_TOKEN=t", "CLAUDE_CODE_CHILD_NOTES_DIR=/n", "CLAUDE_CODE_LAUNCHED_BY_SESSION_IDS=s",
		"CLAUDE_CODE_USE_BEDROCK=1", "CLAUDE_CODE_MAX_OUTPUT_TOKENS=9", "CLAUDE_CODE_REMOTE=true",
	}
	got := driver.Environment(user, []string{"CLAUDE_CODE_*", "CLAUDE_CODE_REMOTE"})
	want := []string{"GIT_TERMINAL_PROMPT=0", "CLAUDE_CODE_USE_BEDROCK=1", "CLAUDE_CODE_MAX_OUTPUT_TOKENS=9", "CLAUDE_CODE_REMOTE=true"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Recall restores the progress of an interrupted agent from its transcript.
func TestRecall(t *testing.T) {
	const (
		started = `{"type":"system","subtype":"init","session_id":"s"}` + "\n"
		said    = `{"type":"assistant","message":{"content":[{"type":"text","text":"hello"}]}}` + "\n"
		done    = `{"type":"result","is_error":false,"result":"all done"}` + "\n"
		limited = `{"type":"result","is_error":true,"api_error_status":529,"result":"overloaded"}` + "\n"
		failed  = `{"type":"result","is_error":true,"result":"broken"}` + "\n"
		acked   = `{"type":"user","isReplay":true,"uuid":"m1","message":{"content":[]}}` + "\n"
	)
	tests := []struct {
		name, transcript  string
		started, complete bool
		kind              event.ErrorType
		text              string
	}{
		{"nothing", "", false, false, driver.None, ""},
		{"started", started, true, false, driver.None, ""},
		{"at work", started + said, true, false, driver.None, "hello"},
		{"torn result", started + said + done[:20], true, false, driver.None, "hello"},
		{"result without its newline", started + strings.TrimSuffix(done, "\n"), true, false, driver.None, ""},
		{"done", started + said + done, true, true, driver.None, "all done"},
		{"done, then the terminal's reset", started + done + "\x1b[?1006l", true, true, driver.None, "all done"},
		{"failed", started + failed, true, true, driver.Failed, "broken"},
		{"limit", started + limited, true, true, driver.Limit, "overloaded"},
		{"done, then at work again", started + done + started + said, true, false, driver.None, "hello"},
		{"done, then a message was acknowledged", started + done + acked, true, false, driver.None, "all done"},
		{"a message, then done", started + acked + done, true, true, driver.None, "all done"},
		{"limit, then done", started + limited + started + done, true, true, driver.None, "all done"},
	}
	for _, tt := range tests {
		report, complete, err := driver.Recall(t.Context(), claude.Provider{}, strings.NewReader(tt.transcript))
		if err != nil || report.Started != tt.started || complete != tt.complete || report.Kind != tt.kind || report.Text != tt.text {
			t.Errorf("%s: %+v, %v, %v", tt.name, report, complete, err)
		}
	}
}

// The usage of a process is the sum of its results, but each result has the whole cost.
func TestRecallUsage(t *testing.T) {
	transcript := `{"type":"user","isReplay":true,"uuid":"m1","message":{"content":[]}}
{"type":"result","is_error":true,"result":"no","num_turns":1,"total_cost_usd":0.25,"usage":{"input_tokens":10,"output_tokens":1}}
{"type":"user","isReplay":true,"uuid":"m2","message":{"content":[]}}
{"type":"result","is_error":false,"result":"yes","num_turns":2,"total_cost_usd":0.75,"usage":{"input_tokens":20,"output_tokens":2}}
`
	report, complete, err := driver.Recall(t.Context(), claude.Provider{}, strings.NewReader(transcript))
	want := provider.Result{OK: true, Text: "yes", Turns: 3, Usage: provider.Usage{InputTokens: 30, OutputTokens: 3, CostUSD: 0.75}}
	if err != nil || !complete || report.Result != want || report.Kind != driver.None || !slices.Equal(report.Acknowledged, []string{"m1", "m2"}) {
		t.Errorf("%+v, %v, %v", report, complete, err)
	}
}

// The CLI reports usage for each answer, but no total.
func TestRecallReckons(t *testing.T) {
	const answer = `{"type":"assistant","message":{"id":"%s","content":[],"usage":{"input_tokens":10,"output_tokens":5}}}` + "\n"
	transcript := fmt.Sprintf(answer+answer, "a", "b")
	report, complete, err := driver.Recall(t.Context(), qwen.Provider{}, strings.NewReader(transcript))
	if err != nil || complete || report.Result != (provider.Result{}) {
		t.Errorf("without a result: %v, %v, %+v", err, complete, report)
	}
	report, complete, err = driver.Recall(t.Context(), qwen.Provider{}, strings.NewReader(transcript+`{"type":"result","result":"ok","usage":{"input_tokens":99}}`+"\n"))
	if want := (provider.Usage{InputTokens: 20, OutputTokens: 10}); err != nil || !complete || report.Result.Usage != want {
		t.Errorf("%v, %v, %+v", err, complete, report)
	}
}
