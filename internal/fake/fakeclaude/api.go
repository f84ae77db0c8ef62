package fakeclaude

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// api sends requests to the model API.
type api struct {
	model   string
	system  string
	tools   []object
	partial bool // print the pieces of answers
	out     *output
	limits  limits
	begun   func() // called before the first piece of an answer is printed
}

// answer is one complete answer of the model.
type answer struct {
	stopReason string
	usage      usage
	calls      []call
	text       string // of the last text block
}

// usage is the token usage of one or more answers.
type usage struct {
	Input  int `json:"input_tokens"`
	Output int `json:"output_tokens"`
}

// apiError is a failed request. Status 0 means that the connection broke.
type apiError struct {
	status     int
	said       string // by the API
	text       string
	retryAfter time.Duration
	reset      time.Duration // until the account's limit ends; 0 if unknown
	started    bool          // a block had already been shown
	used       usage
}

func (e *apiError) Error() string { return e.text }

// modelID resolves the aliases of the real CLI.
func modelID(name string) string {
	switch name {
	case "", "sonnet":
		return "claude-sonnet-5-5"
	case "opus":
		return "claude-opus-5-5"
	case "haiku":
		return "claude-haiku-5-5"
	default:
		return name
	}
}

// ask requests one answer, with as many retries as the environment allows. It passes
// each block to show as soon as the block is complete.
func (a *api) ask(ctx context.Context, messages []message, show func(object, message object) error) (answer, error) {
	if a.partial {
		a.out.event("system", object{"subtype": "status", "status": "requesting"})
	}
	limit := maxRetries()
	for attempt := 1; ; attempt++ {
		got, err := a.understood(ctx, messages, show)
		var failed *apiError
		if err == nil || !errors.As(err, &failed) || !failed.retryable(attempt, limit) {
			return got, err
		}
		a.reportRetry(failed, attempt, limit)
		if err := sleep(ctx, failed.delay(attempt)); err != nil {
			return answer{}, err
		}
	}
}

// sameRequests is the number of attempts for an invalid request, first unchanged
// and then without the tool that may be the cause.
const sameRequests = 3

// understood retries silently when the API rejects a request as
// invalid.
func (a *api) understood(ctx context.Context, messages []message, show func(object, message object) error) (answer, error) {
	defer func(all []object) { a.tools = all }(a.tools)
	for tried := 1; ; tried++ {
		got, err := a.once(ctx, messages, show)
		var failed *apiError
		switch {
		case !errors.As(err, &failed) || failed.text == noCredit || tried == 2*sameRequests:
			return got, err
		case failed.status == http.StatusNotFound && tried == 1: // once more, without a stream
		case failed.status != http.StatusBadRequest:
			return got, err
		case tried == sameRequests:
			a.tools = slices.DeleteFunc(slices.Clone(a.tools), func(tool object) bool { return tool["name"] == placeholder })
		}
	}
}

func maxRetries() int {
	if limit, err := strconv.Atoi(os.Getenv("CLAUDE_CODE_MAX_RETRIES")); err == nil {
		return limit
	}
	if watchdog() {
		return 300
	}
	return 10
}

// retryable reports whether a failed attempt is repeated. With its
// watchdog the real CLI never gives up on a limit. Without it, it gives up at once
// if the wait is long or if a subscriber has used up the quota.
func (e *apiError) retryable(attempt, limit int) bool {
	switch {
	case e.started:
		return false
	case e.limited() && watchdog():
		return true
	case attempt > limit, e.retryAfter > longestWait:
		return false
	case e.status == http.StatusTooManyRequests:
		return !subscriber() || e.reset == 0
	case e.status == 0, e.status == http.StatusUnauthorized:
		return true
	default:
		return e.status >= 500
	}
}

// delay returns the time before the next attempt. It is far shorter than the real CLI's unless the server sets one.
func (e *apiError) delay(attempt int) time.Duration {
	switch {
	case e.reset > 0 && watchdog() && e.status == http.StatusTooManyRequests:
		return e.reset
	case e.retryAfter > 0:
		return e.retryAfter
	}
	return time.Duration(attempt) * 5 * time.Millisecond
}

// kind returns the real CLI's word for the error.
func (e *apiError) kind() string {
	switch {
	case e.status == 529:
		return "overloaded"
	case e.status == http.StatusTooManyRequests:
		return "rate_limit"
	case e.status == http.StatusUnauthorized:
		return "authentication_failed"
	case e.text == noCredit:
		return "billing_error"
	case e.status == http.StatusBadRequest:
		return "invalid_request"
	case e.status == http.StatusForbidden && strings.HasPrefix(e.text, "Failed"):
		return "authentication_failed"
	case e.status == http.StatusForbidden:
		return "oauth_org_not_allowed"
	case e.status == http.StatusNotFound:
		return "model_not_found"
	case e.status >= 500:
		return "server_error"
	default:
		return "unknown"
	}
}

func (a *api) reportRetry(failed *apiError, attempt, limit int) {
	fields := object{
		"subtype": "api_retry", "attempt": attempt, "max_retries": limit, "error": failed.kind(),
		"retry_delay_ms": failed.delay(attempt).Milliseconds(), "error_status": nil,
	}
	if failed.status != 0 {
		fields["error_status"] = failed.status
	}
	a.out.event("system", fields)
}

func (a *api) once(ctx context.Context, messages []message, show func(object, message object) error) (answer, error) {
	body := encode(object{
		"model": a.model, "max_tokens": 64000, "stream": true, "messages": messages,
		"system": []object{textBlock(a.system)}, "tools": a.tools,
	})
	url := strings.TrimSuffix(os.Getenv("ANTHROPIC_BASE_URL"), "/") + "/v1/messages?beta=true"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader([]byte(body)))
	if err != nil {
		return answer{}, fmt.Errorf("ask model: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Anthropic-Version", "2023-06-01")
	request.Header.Set("User-Agent", "claude-cli/"+Version+" (fake)")
	request.Header.Set("X-Api-Key", os.Getenv("ANTHROPIC_API_KEY"))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer{}, connectionError(ctx, &streamReader{})
	}
	defer func() { _ = response.Body.Close() }() // fully read, or abandoned
	if response.StatusCode != http.StatusOK {
		return answer{}, a.refusal(response)
	}
	reader := &streamReader{show: show}
	if a.partial {
		reader.piece = func(event json.RawMessage) {
			a.begun()
			a.out.event("stream_event", object{"event": event, "parent_tool_use_id": nil})
		}
	}
	if err := reader.read(response.Body); err != nil {
		if reader.failed != nil {
			return answer{}, reader.failed
		}
		return answer{}, connectionError(ctx, reader)
	}
	if subscriber() {
		a.limits.learn(a.out, limitsIn(response.Header))
	}
	return reader.answer, nil
}

// connectionError returns ctx's error if ctx ended the request.
func connectionError(ctx context.Context, reader *streamReader) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	text := "API Error: Connection dropped (ECONNRESET). Check the gateway set in ANTHROPIC_BASE_URL, then try again."
	if reader.shown {
		text = "API Error: Connection lost mid-response. The response above may be incomplete."
	}
	return &apiError{text: text, started: reader.shown, used: reader.answer.usage}
}

// refusal reads an error response.
func (a *api) refusal(response *http.Response) error {
	failed := statusError(response, a.model)
	info := limitsIn(response.Header)
	if at, told := info["resetsAt"].(int64); told {
		failed.reset = time.Until(time.Unix(at, 0))
	}
	if failed.status != http.StatusTooManyRequests {
		return failed
	}
	failed.text = "API Error: Request rejected (429) · " + failed.said
	if subscriber() {
		info["status"] = "rejected"
		a.limits.refused(a.out, info)
		failed.text = refusedSubscriber(info, failed.said)
	}
	return failed
}

// noCredit is the error text of the CLI for an account without credit.
const noCredit = "Credit balance is too low"

func statusError(response *http.Response, model string) *apiError {
	data, _ := io.ReadAll(response.Body) // a response without a text is still an error
	var body struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	_ = json.Unmarshal(data, &body) // as above
	said := body.Error.Message
	text := fmt.Sprintf("API Error: %d %s", response.StatusCode, said)
	switch status := response.StatusCode; {
	case status == http.StatusBadRequest && strings.Contains(said, "credit balance is too low"):
		text = noCredit
	case status == http.StatusForbidden && strings.Contains(said, "not allowed for this organization"):
		text = "Your organization has disabled Claude subscription access for Claude Code · Use an Anthropic API key instead, or ask your admin to enable access"
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		text = "Failed to authenticate. " + text
	case status == http.StatusNotFound:
		text = "There's an issue with the selected model (" + model + "). It may not exist or you may not have access to it. Run --model to pick a different model."
	}
	seconds, _ := strconv.Atoi(response.Header.Get("Retry-After")) // 0 if there is none
	return &apiError{
		status: response.StatusCode, said: body.Error.Message, text: text, retryAfter: time.Duration(seconds) * time.Second,
	}
}

func sleep(ctx context.Context, duration time.Duration) error {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
