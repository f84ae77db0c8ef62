package claude

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/coven-run/coven/plugins/builtin/streamjson"
	"github.com/coven-run/coven/plugins/provider"
)

// line contains the parts of a stream-json output line that coven uses.
type line struct {
	streamjson.Line

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

type usage struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
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
		return []provider.Event{l.Started()}
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

// blocks returns the events in a message. A call that the CLI rejected itself never ran.
func (l line) blocks() []provider.Event {
	events := l.Blocks(l.Message.Content)
	for i, e := range events {
		if result, ok := e.(provider.ToolResult); ok {
			result.NeverRan = result.IsError && strings.HasPrefix(result.Text, "<tool_use_error>")
			events[i] = result
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

// result returns the result in a line. It ignores the subtype, which is "success" even after all retries
// failed.
func (l line) result() provider.Result {
	r := provider.Result{
		OK: !l.IsError, Text: l.Result, Turns: l.NumTurns, Status: l.APIErrorStatus, Usage: l.Usage.provider(),
	}
	r.Usage.CostUSD = l.TotalCostUSD
	if r.OK && strings.HasPrefix(l.Result, promptTooLong) && l.Usage.Output == 0 { // reported as a success
		r.OK, r.Status = false, http.StatusBadRequest
	}
	if r.OK {
		return r
	}
	if l.TerminalReason == "api_error" && strings.HasSuffix(l.Result, "Please run /login") {
		r.Status = http.StatusUnauthorized // without a login, the CLI does not call the API
	}
	switch {
	case l.TerminalReason != "api_error":
	case l.APIErrorStatus == http.StatusBadRequest && l.Result == noCredit:
		r.Status = http.StatusPaymentRequired
	case r.Status == 0:
		r.Status = http.StatusServiceUnavailable // it was not reached, or did not answer
	}
	r.Limit = limits(l.APIErrorStatus)
	r.Error = l.failure()
	return r
}

// promptTooLong begins the result for a conversation that is full.
const promptTooLong = "Prompt is too long"

// noCredit is the result of the CLI 2.1.330 for an account without credit. The status of the API's answer is 400.
const noCredit = "Credit balance is too low"

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
