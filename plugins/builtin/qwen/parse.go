package qwen

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/plugins/builtin/streamjson"
	"github.com/coven-run/coven/plugins/provider"
)

// line contains the parts of a stream-json output line that coven uses.
type line struct {
	streamjson.Line

	// assistant, user
	Message struct {
		ID         string          `json:"id"`
		Model      string          `json:"model"`
		StopReason string          `json:"stop_reason"`
		Content    json.RawMessage `json:"content"` // text, or blocks
		Usage      usage           `json:"usage"`
	} `json:"message"`

	// result
	IsError  bool   `json:"is_error"`
	Result   string `json:"result"`
	NumTurns int    `json:"num_turns"`
	Usage    usage  `json:"usage"` // of the whole conversation, so it is not the usage of the run
	Error    struct {
		Message string `json:"message"`
	} `json:"error"`
}

type usage struct {
	Input     int64 `json:"input_tokens"` // including cached tokens
	Output    int64 `json:"output_tokens"`
	CacheRead int64 `json:"cache_read_input_tokens"`
}

// Parse implements provider.Provider. It skips lines that are not JSON, except the message about an API
// without capacity.
func (Provider) Parse(_ context.Context, lines []byte) ([]provider.Event, error) {
	var events []provider.Event
	for text := range bytes.Lines(lines) {
		var l line
		if err := json.Unmarshal(text, &l); err == nil {
			events = append(events, l.events()...)
		} else if found := capacityRE.FindSubmatch(text); found != nil {
			events = append(events, waiting(string(found[1]), string(found[2]))...)
		}
	}
	return events, nil
}

// capacityRE matches the line that the CLI prints every 30 s while it waits to retry after a 429 or 529:
// see unattended.
var capacityRE = lazyregexp.New(`^\[qwen-code\] Waiting for API capacity\.\.\. attempt (\d{1,9}), retry in (\d{1,9})s\s*$`)

func waiting(attempt, seconds string) []provider.Event {
	n, _ := strconv.Atoi(attempt) // digits
	left, _ := strconv.Atoi(seconds)
	again := time.Duration(left) * time.Second
	return []provider.Event{
		provider.Retry{Attempt: n, DelayMS: again.Milliseconds(), Status: http.StatusTooManyRequests, Reason: "no capacity"},
		provider.Limit{Again: again, Reason: "rate_limit", Status: http.StatusTooManyRequests},
	}
}

func (l line) events() []provider.Event {
	switch {
	case l.Type == "system" && l.Subtype == "init":
		return []provider.Event{l.Started()}
	case l.Type == "assistant":
		return append(l.Blocks(l.Message.Content), l.spent()...)
	case l.Type == "user":
		return l.Blocks(l.Message.Content)
	case l.Type == "result":
		return []provider.Event{l.result()}
	}
	return nil
}

// spent returns the usage of an answer. The CLI prints an answer as several lines, and the usage is in the
// last one.
func (l line) spent() []provider.Event {
	if l.Message.Usage == (usage{}) {
		return nil
	}
	return []provider.Event{provider.Spent{
		ID: l.Message.ID, Model: l.Message.Model, Usage: l.Message.Usage.provider(),
		Done: true, More: l.Message.StopReason == "tool_use",
	}}
}

func (u usage) provider() provider.Usage {
	return provider.Usage{InputTokens: max(u.Input-u.CacheRead, 0), OutputTokens: u.Output, CacheReadTokens: u.CacheRead}
}

// apiErrorRE matches the final text after the API rejected a request. Versions before 0.24 report this as success, and
// the text looks like text of the agent.
var apiErrorRE = lazyregexp.New(`^\[API Error: (?:(\d{3}) )?`)

// result does not trust a reported success. It reports a rate limit, which also delays other tasks, only if
// the model has not answered, because an agent could write the same text.
func (l line) result() provider.Result {
	r := provider.Result{OK: !l.IsError, Text: l.Result, Turns: l.NumTurns}
	said := l.Result
	if l.IsError {
		said = cmp.Or(l.Error.Message, said)
	}
	found := apiErrorRE.FindStringSubmatch(said)
	switch {
	case found != nil:
		r.OK, r.Text, r.Error = false, "", strings.Trim(said, "[] \n")
		r.Status, _ = strconv.Atoi(found[1]) // three digits, or none
		r.Limit = r.Status == http.StatusTooManyRequests && l.Usage == usage{}
	case l.IsError:
		r.Error = cmp.Or(l.Error.Message, l.Subtype)
	}
	if r.Status == http.StatusUnauthorized || strings.HasPrefix(r.Error, "Missing API key") {
		r.Error += " (set OPENAI_API_KEY, and OPENAI_BASE_URL where the server is not OpenAI's)"
	}
	return r
}
