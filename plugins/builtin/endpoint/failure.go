package endpoint

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/provider"
)

// Failure is an error answer of the API. It implements error.
type Failure struct {
	Status  int    // HTTP status; 200 for an error in the middle of an answer
	Kind    string // the API's error type, such as overloaded_error; may be empty
	Message string
	After   time.Duration // delay before a retry, 0 if not reported
}

// Error implements error.
func (f *Failure) Error() string {
	if f.Status == http.StatusOK {
		return "the API stopped in the middle of the answer: " + cmp.Or(f.Message, f.Kind, "it does not say why")
	}
	return fmt.Sprintf("the API answered %d: %s", f.Status, cmp.Or(f.Message, strings.TrimSpace(f.Kind+" "+http.StatusText(f.Status))))
}

// maxBody limits the part of an error that is read, and maxMessage the part that is shown, in bytes.
const (
	maxBody    = 64 << 10
	maxMessage = 500
)

// failure returns the failure that an answer reports.
func (c Connection) failure(status int, header http.Header, body []byte) *Failure {
	f := parseFailure(status, body)
	f.Kind, f.Message, f.After = c.shown(c.Getenv, f.Kind), c.shown(c.Getenv, f.Message), retryAfter(header)
	return f
}

// parseFailure parses the body of an error in the forms of Anthropic, OpenAI, and other servers.
func parseFailure(status int, body []byte) *Failure {
	f := &Failure{Status: status}
	var wire struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  string          `json:"detail"`
	}
	_ = json.Unmarshal(body, &wire) // other bodies have no message
	var object struct {
		Type    string `json:"type"`
		Code    any    `json:"code"`
		Message string `json:"message"`
	}
	if json.Unmarshal(wire.Error, &object) == nil {
		code, _ := object.Code.(string)
		f.Kind, f.Message = cmp.Or(code, object.Type), object.Message
	} else {
		_ = json.Unmarshal(wire.Error, &f.Message)
	}
	f.Message = cmp.Or(f.Message, wire.Message, wire.Detail)
	return f
}

// maxAfter is the longest accepted delay before a retry. Longer ones are meaningless and may overflow.
const maxAfter = 365 * 24 * time.Hour

// retryAfter returns the delay before a retry, or 0.
func retryAfter(header http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(header.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return after(ms / 1000)
	}
	value := header.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(value, 64); err == nil {
		return after(seconds)
	}
	if at, err := http.ParseTime(value); err == nil {
		return after(time.Until(at).Seconds())
	}
	return 0
}

func after(seconds float64) time.Duration {
	if seconds > 0 { // false for NaN
		return time.Duration(min(seconds, maxAfter.Seconds()) * float64(time.Second))
	}
	return 0
}

// limitKinds returns the error types that mean a limit, regardless of the status.
func limitKinds() []string {
	return []string{"rate_limit_error", "rate_limit_exceeded", "overloaded_error"}
}

// statusOverloaded is Anthropic's status for an overload.
const statusOverloaded = 529

// limit returns the limit that caused the failure, if any.
func (f *Failure) limit() (provider.Limit, bool) {
	known := slices.Contains(limitKinds(), f.Kind)
	reason := "rate_limit"
	switch {
	case errors.Is(f.class(), pluginerr.ErrAccount): // waiting does not help
		return provider.Limit{}, false
	case f.Status == http.StatusServiceUnavailable, f.Status == statusOverloaded, f.Kind == "overloaded_error":
		reason = "overloaded"
	case f.Status != http.StatusTooManyRequests && !known:
		return provider.Limit{}, false
	}
	status := f.Status
	if status < 300 {
		status = 0 // in the middle of the answer
	}
	return provider.Limit{Reason: reason, Status: status, After: f.After}, true
}

// class returns the sentinel error of a failure, or nil.
func (f *Failure) class() error {
	switch {
	case f.Status == http.StatusPaymentRequired, f.Kind == "billing_error", f.Kind == "insufficient_quota":
		return pluginerr.ErrAccount
	case f.Status == http.StatusNotFound, f.Kind == "model_not_found":
		return pluginerr.ErrModel
	case f.Status == http.StatusBadRequest, f.Status == http.StatusRequestEntityTooLarge, f.Status == http.StatusUnprocessableEntity:
		return pluginerr.ErrInvalid
	case f.Status == http.StatusUnauthorized, f.Status == http.StatusForbidden, f.Kind == "authentication_error":
		return pluginerr.ErrLogin
	case f.Status >= 500, f.Status == http.StatusOK, f.Status == http.StatusRequestTimeout:
		return pluginerr.ErrTransient
	}
	return nil
}

// Fail ends a turn because of an error of a stream: with the events for a limit, or with an error of
// package pluginerr.
func (c Connection) Fail(ctx context.Context, err error, emit func(model.Event) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if known := (classified{}); errors.As(err, &known) {
		return err
	}
	if f := (*Failure)(nil); errors.As(err, &f) {
		if limit, ok := f.limit(); ok {
			return errors.Join(emit(limit), emit(model.End{Reason: model.Limited}))
		}
		return classified{f, f.class()}
	}
	if broken := (*url.Error)(nil); errors.As(err, &broken) {
		err = broken.Err // without the URL, which may contain a password
	}
	return classified{fmt.Errorf("the connection to the API failed: %s", c.shown(c.Getenv, err.Error())), pluginerr.ErrTransient}
}

// classified is an error that also matches a sentinel of package pluginerr, without containing its text.
// The sentinel may be nil.
type classified struct {
	error
	sentinel error
}

// Is reports whether target is the sentinel.
func (c classified) Is(target error) bool { return c.sentinel != nil && target == c.sentinel }

// Unwrap returns the wrapped error.
func (c classified) Unwrap() error { return c.error }

// FailList is Fail for a call that has no events. A limit is a transient error.
func (c Connection) FailList(ctx context.Context, err error) error {
	return c.Fail(ctx, err, func(e model.Event) error {
		if limit, ok := e.(provider.Limit); ok {
			return classified{fmt.Errorf("the API refuses requests: %s", limit.Reason), pluginerr.ErrTransient}
		}
		return nil
	})
}

// Cut returns the error for an answer that ended early.
func (c Connection) Cut() error {
	return classified{errors.New("the answer of the API was cut off"), pluginerr.ErrTransient}
}

// Object returns the arguments of a call as a JSON object, which APIs require. Anything else that a model
// has written becomes the value of the key "arguments".
func Object(arguments json.RawMessage) json.RawMessage {
	if object := map[string]json.RawMessage{}; json.Unmarshal(arguments, &object) == nil && object != nil {
		return arguments
	}
	if len(arguments) == 0 {
		return json.RawMessage(`{}`)
	}
	object, err := json.Marshal(map[string]json.RawMessage{"arguments": arguments})
	if err != nil { // not JSON
		object, _ = json.Marshal(map[string]string{"arguments": string(arguments)}) // cannot fail
	}
	return object
}

// Arguments converts the arguments that a model has written to JSON: they are unchanged if they are valid
// JSON, an empty object if they are empty, and otherwise a string.
func Arguments(text string) json.RawMessage {
	switch {
	case strings.TrimSpace(text) == "":
		return json.RawMessage(`{}`)
	case json.Valid([]byte(text)):
		return json.RawMessage(text)
	}
	quoted, _ := json.Marshal(text) // a string can always be encoded
	return quoted
}
