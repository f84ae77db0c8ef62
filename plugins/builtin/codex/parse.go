package codex

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/plugins/provider"
)

// line contains the parts of an output line that coven uses.
type line struct {
	Type     string                   `json:"type"`
	ThreadID string                   `json:"thread_id"` // thread.started
	Item     item                     `json:"item"`      // item.started, item.completed
	Usage    usage                    `json:"usage"`     // turn.completed: of the whole conversation
	Message  string                   `json:"message"`   // error
	Error    struct{ Message string } `json:"error"`     // turn.failed
}

// item is a message or an action of the agent.
type item struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"`
	Text     string   `json:"text"`              // agent_message, reasoning
	Command  string   `json:"command"`           // command_execution
	Output   string   `json:"aggregated_output"` // command_execution
	ExitCode int      `json:"exit_code"`         // command_execution
	Changes  []change `json:"changes"`           // file_change
	Status   string   `json:"status"`            // in_progress, completed, failed, declined
	Query    string   `json:"query"`             // web_search
	Server   string   `json:"server"`            // mcp_tool_call
	Tool     string   `json:"tool"`              // mcp_tool_call
}

type change struct {
	Path string `json:"path"`
	Kind string `json:"kind"` // add, update, delete
}

type usage struct {
	Input      int64 `json:"input_tokens"` // including cached tokens
	CacheRead  int64 `json:"cached_input_tokens"`
	CacheWrite int64 `json:"cache_write_input_tokens"`
	Output     int64 `json:"output_tokens"`
}

// Parse implements provider.Provider. It skips lines that are not JSON, because the CLI also prints its
// log.
func (Provider) Parse(_ context.Context, lines []byte) ([]provider.Event, error) {
	var events []provider.Event
	for text := range bytes.Lines(lines) {
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			continue
		}
		if e := l.event(); e != nil {
			events = append(events, e)
		}
	}
	return events, nil
}

func (l line) event() provider.Event {
	switch l.Type {
	case "thread.started":
		return provider.Started{Conversation: l.ThreadID}
	case "item.started":
		return l.Item.call()
	case "item.completed":
		return l.Item.completed()
	case "error":
		return retry(l.Message)
	case "turn.completed":
		return provider.Result{OK: true, Turns: 1, Usage: l.Usage.provider()}
	case "turn.failed":
		return failure(l.Error.Message)
	}
	return nil
}

// call returns the tool call of the item, or nil.
func (i item) call() provider.Event {
	input := map[string]any{}
	switch i.Type {
	case "command_execution":
		input["command"] = i.Command
	case "file_change":
		input["changes"] = i.Changes
		if len(i.Changes) > 0 {
			input["file_path"] = i.Changes[0].Path
		}
	case "web_search":
		input["query"] = i.Query
	case "mcp_tool_call":
		input["server"], input["tool"] = i.Server, i.Tool
	default:
		return nil
	}
	encoded, err := json.Marshal(input)
	if err != nil {
		return nil // cannot fail for strings
	}
	return provider.ToolCall{ID: i.ID, Name: i.Type, Input: encoded}
}

func (i item) completed() provider.Event {
	switch i.Type {
	case "agent_message":
		if strings.TrimSpace(i.Text) != "" {
			return provider.Text{Text: i.Text}
		}
	case "reasoning":
		if i.Text != "" {
			return provider.Reasoning{Text: i.Text}
		}
	case "command_execution", "file_change", "web_search", "mcp_tool_call":
		text := i.Output
		if i.ExitCode != 0 {
			text += "\n(exit code " + strconv.Itoa(i.ExitCode) + ")"
		}
		return provider.ToolResult{ID: i.ID, Text: text, IsError: i.Status == "failed" || i.Status == "declined"}
	}
	return nil
}

func (u usage) provider() provider.Usage {
	return provider.Usage{
		InputTokens: max(u.Input-u.CacheRead-u.CacheWrite, 0), OutputTokens: u.Output,
		CacheReadTokens: u.CacheRead, CacheWriteTokens: u.CacheWrite,
	}
}

var (
	retryRE  = lazyregexp.New(`^Reconnecting\.\.\. (?:(\d+)/(\d+) )?(.*)$`)
	statusRE = lazyregexp.New(`(?:unexpected|last) status:? (\d{3})\b`)
)

// retry parses the message about a retry. It returns nil for other errors, which are repeated when the turn
// fails.
func retry(message string) provider.Event {
	found := retryRE.FindStringSubmatch(message)
	if found == nil {
		return nil
	}
	attempt, _ := strconv.Atoi(found[1]) // "waiting for network" has no number
	most, _ := strconv.Atoi(found[2])
	reason := found[3]
	if strings.HasPrefix(reason, "(") {
		reason = strings.TrimSuffix(reason[1:], ")")
	}
	return provider.Retry{Attempt: attempt, MaxAttempts: most, Status: status(message), Reason: reason}
}

// status returns the HTTP status in a message of the CLI, or 0.
func status(message string) int {
	found := statusRE.FindStringSubmatch(message)
	if found == nil {
		return 0
	}
	number, _ := strconv.Atoi(found[1]) // three digits
	return number
}

// failure returns the result of a failed turn.
func failure(message string) provider.Result {
	var said struct{ Error struct{ Message string } } // the API's answer to a bad request
	r := provider.Result{Error: message, Status: status(message), Turns: 1}
	if json.Unmarshal([]byte(message), &said) == nil && said.Error.Message != "" {
		r.Error = "the API refused the request: " + said.Error.Message
	}
	switch {
	case r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden:
		r.Error += " (log in with codex login, or set CODEX_API_KEY; for the server of OPENAI_BASE_URL set OPENAI_API_KEY)"
	case r.Status == http.StatusTooManyRequests, strings.HasPrefix(message, "You’ve hit your usage limit"), strings.HasPrefix(message, "You've hit your usage limit"):
		r.Limit = true
	}
	return r
}
