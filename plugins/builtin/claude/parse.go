package claude

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/coven-run/coven/plugins/provider"
)

// line contains the parts of a stream-json output line that coven uses.
type line struct {
	Type    string `json:"type"`
	Subtype string `json:"subtype"`

	// system init
	SessionID  string      `json:"session_id"`
	Model      string      `json:"model"`
	Tools      []string    `json:"tools"`
	MCPServers []mcpServer `json:"mcp_servers"`

	// system api_retry
	Attempt     int     `json:"attempt"`
	MaxRetries  int     `json:"max_retries"`
	RetryDelay  float64 `json:"retry_delay_ms"`
	ErrorStatus int     `json:"error_status"`
	Reason      string  `json:"error"`

	// assistant, user
	Message struct {
		ID      string          `json:"id"`
		Model   string          `json:"model"`
		Content json.RawMessage `json:"content"`
		Usage   usage           `json:"usage"`
	} `json:"message"`
	UUID     string `json:"uuid"`
	IsReplay bool   `json:"isReplay"` // a repeated line of the CLI's input, which is an acknowledgement

	// stream_event
	Event json.RawMessage `json:"event"` // a streamEvent

	// rate_limit_event
	RateLimit json.RawMessage `json:"rate_limit_info"` // a rateLimit

	// result
	IsError        bool     `json:"is_error"`
	APIErrorStatus int      `json:"api_error_status"`
	Result         string   `json:"result"`
	NumTurns       int      `json:"num_turns"`
	TotalCostUSD   float64  `json:"total_cost_usd"`
	Usage          usage    `json:"usage"`
	TerminalReason string   `json:"terminal_reason"`
	Errors         []string `json:"errors"`
}

type mcpServer struct {
	Name   string `json:"name"`
	Status string `json:"status"`
}

type usage struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
}

type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
}

// Parse implements provider.Provider. It skips everything except JSON: when the CLI exits, it resets the
// terminal, before or after its last line.
func (Provider) Parse(_ context.Context, lines []byte) ([]provider.Event, error) {
	var events []provider.Event
	for text := range bytes.Lines(lines) {
		var l line
		if err := json.Unmarshal(afterReset(text), &l); err == nil {
			events = append(events, l.events()...)
		}
	}
	return events, nil
}

// afterReset removes terminal escapes at the start of a line.
func afterReset(text []byte) []byte {
	if start := bytes.IndexByte(text, '{'); start > 0 && text[0] == '\x1b' {
		return text[start:]
	}
	return text
}

func (l line) events() []provider.Event {
	switch {
	case l.Type == "system" && l.Subtype == "init":
		return []provider.Event{l.started()}
	case l.Type == "system" && l.Subtype == "api_retry":
		return append([]provider.Event{provider.Retry{
			Attempt: l.Attempt, MaxAttempts: l.MaxRetries, DelayMS: int64(l.RetryDelay),
			Status: l.ErrorStatus, Reason: l.Reason,
		}}, l.refused()...)
	case l.Type == "rate_limit_event":
		return eventsIn[rateLimit](l.RateLimit)
	case l.Type == "stream_event":
		return eventsIn[streamEvent](l.Event)
	case l.Type == "user" && l.IsReplay:
		return []provider.Event{provider.Acknowledged{ID: l.UUID}}
	case l.Type == "assistant":
		return append(l.blocks(), l.spent()...)
	case l.Type == "user":
		return l.blocks()
	case l.Type == "result":
		return []provider.Event{l.result()}
	}
	return nil
}

// eventsIn returns the events in a part of a line. It ignores unexpected content.
func eventsIn[T interface{ events() []provider.Event }](raw json.RawMessage) []provider.Event {
	var part T
	if json.Unmarshal(raw, &part) != nil {
		return nil
	}
	return part.events()
}

func (l line) started() provider.Started {
	s := provider.Started{Conversation: l.SessionID, Model: l.Model, Tools: l.Tools}
	for _, server := range l.MCPServers {
		if server.Status == "failed" {
			s.FailedServers = append(s.FailedServers, server.Name)
		}
	}
	return s
}

func (l line) blocks() []provider.Event {
	var blocks []block
	if err := json.Unmarshal(l.Message.Content, &blocks); err != nil {
		return nil // plain text: a message from coven
	}
	var events []provider.Event
	for _, b := range blocks {
		if e := b.event(l.Type); e != nil {
			events = append(events, e)
		}
	}
	return events
}

// spent returns the usage of the line's answer, as reported by the API at its start. Lines that the CLI
// generates for errors of the API have no usage.
func (l line) spent() []provider.Event {
	if l.Message.ID == "" || l.Message.Model == "<synthetic>" || l.Message.Usage == (usage{}) {
		return nil
	}
	return []provider.Event{provider.Spent{ID: l.Message.ID, Model: l.Message.Model, Usage: l.Message.Usage.provider()}}
}

func (u usage) provider() provider.Usage {
	return provider.Usage{
		InputTokens: u.Input, OutputTokens: u.Output, CacheReadTokens: u.CacheRead, CacheWriteTokens: u.CacheWrite,
	}
}

func (b block) event(from string) provider.Event {
	switch {
	case b.Type == "text" && from == "assistant" && strings.TrimSpace(b.Text) != "":
		return provider.Text{Text: b.Text}
	case b.Type == "thinking" && b.Thinking != "":
		return provider.Reasoning{Text: b.Thinking}
	case b.Type == "tool_use":
		return provider.ToolCall{ID: b.ID, Name: b.Name, Input: b.Input}
	case b.Type == "tool_result":
		text := contentText(b.Content)
		return provider.ToolResult{
			ID: b.ToolUseID, Text: text, IsError: b.IsError,
			NeverRan: b.IsError && strings.HasPrefix(text, "<tool_use_error>"),
		}
	}
	return nil
}

// contentText returns the text of a tool result, which is a string or a list of text blocks.
func contentText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var parts []block
	if json.Unmarshal(raw, &parts) != nil {
		return string(raw)
	}
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// result returns the result in a line. It ignores the subtype, which is "success" even after all retries
// failed.
func (l line) result() provider.Result {
	r := provider.Result{
		OK: !l.IsError, Text: l.Result, Turns: l.NumTurns, Status: l.APIErrorStatus, Usage: l.Usage.provider(),
	}
	r.Usage.CostUSD = l.TotalCostUSD
	if r.OK {
		return r
	}
	if l.TerminalReason == "api_error" && strings.HasSuffix(l.Result, "Please run /login") {
		r.Status = http.StatusUnauthorized // without a login, the CLI does not call the API
	}
	r.Limit = limits(l.APIErrorStatus)
	r.Error = l.failure()
	return r
}

func (l line) failure() string {
	why := l.Subtype
	switch {
	case len(l.Errors) > 0:
		why = strings.Join(l.Errors, "; ")
	case l.Result != "":
		why = l.Result
	case l.TerminalReason != "":
		why = l.TerminalReason
	}
	if l.APIErrorStatus != 0 {
		return fmt.Sprintf("API status %d: %s", l.APIErrorStatus, why)
	}
	return why
}
