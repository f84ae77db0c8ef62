package endpoint

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/coven-run/coven/plugins/pluginerr"
)

// Connection is an API with a user's environment.
type Connection struct {
	API
	Getenv    func(string) string
	Transport http.RoundTripper // nil for the network
}

// Stream sends a request and returns the events of its answer, until the stream ends or fails. The last
// element may be an error, which the caller passes to Fail.
func Stream[E any](ctx context.Context, c Connection, path string, body any) iter.Seq2[E, error] {
	return func(yield func(E, error) bool) {
		for data, err := range c.stream(ctx, path, body) {
			var e E
			if err == nil {
				err = decode(data, &e)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// stream returns the data of an answer's events.
func (c Connection) stream(ctx context.Context, path string, body any) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		response, err := c.ask(ctx, http.MethodPost, path, body)
		if err != nil {
			yield(nil, err)
			return
		}
		defer response.Body.Close() //nolint:errcheck // only read
		answer := bufio.NewReader(http.MaxBytesReader(nil, response.Body, maxStream))
		if !beginsStream(answer) {
			page, _ := io.ReadAll(io.LimitReader(answer, maxBody)) // as much as was received
			yield(nil, c.unexpected(response.Header, page, "a stream of events"))
			return
		}
		for e, err := range events(answer) {
			switch {
			case err != nil:
			case bytes.HasPrefix(e.data, []byte("[DONE]")):
				return
			case e.isError():
				err = c.failure(http.StatusOK, nil, e.data)
			case len(e.data) == 0:
				continue
			}
			if !yield(e.data, err) || err != nil {
				return
			}
		}
	}
}

// Get requests JSON and decodes it.
func (c Connection) Get(ctx context.Context, path string, into any) error {
	response, err := c.ask(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // only read
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return err
	case len(body) > maxAnswer:
		return fmt.Errorf("its answer is larger than %d MB", maxAnswer>>20)
	case decode(body, into) != nil:
		return c.unexpected(response.Header, body, "JSON")
	}
	return nil
}

// ask sends a request once, and returns the answer if it is successful.
func (c Connection) ask(ctx context.Context, method, path string, body any) (*http.Response, error) {
	base, err := url.Parse(c.URL(c.Getenv))
	if err != nil {
		return nil, err
	}
	at, err := base.Parse(path)
	if err != nil {
		return nil, err
	}
	var sent []byte
	if body != nil {
		if sent, err = json.Marshal(body); err != nil {
			return nil, classified{fmt.Errorf("the request cannot be written as JSON: %w", err), pluginerr.ErrInvalid}
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(sent))
	if err != nil {
		return nil, err
	}
	c.setHeader(request.Header, body != nil)
	client := http.Client{Transport: c.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil || response.StatusCode/100 == 2 {
		return response, err
	}
	defer response.Body.Close() //nolint:errcheck // only read
	var refusal []byte
	if response.StatusCode >= 300 { // after 101, package http does not close the connection when the context ends
		refusal, _ = io.ReadAll(io.LimitReader(response.Body, maxBody)) // as much as was received
	}
	return nil, c.failure(response.StatusCode, response.Header, refusal)
}

// setHeader sets the headers of a request. Even for a stream, it accepts JSON, like the makers' own
// clients, for which servers are made.
func (c Connection) setHeader(h http.Header, hasBody bool) {
	h.Set("User-Agent", "coven")
	h.Set("Accept", "application/json")
	if hasBody {
		h.Set("Content-Type", "application/json")
	}
	if c.version != "" {
		h.Set("Anthropic-Version", c.version)
	}
	for _, name := range c.Keys {
		switch key := strings.TrimSpace(c.Getenv(name)); {
		case key == "":
		case name == "ANTHROPIC_API_KEY":
			h.Set("X-Api-Key", key)
		default:
			h.Set("Authorization", "Bearer "+key)
		}
	}
}

// unexpected returns an error for an answer with a success status. It may contain the error of a server
// that always returns this status, or be the page of another server.
func (c Connection) unexpected(header http.Header, body []byte, want string) error {
	if f := c.failure(http.StatusOK, header, body); f.Message != "" || f.Kind != "" {
		return f
	}
	kind, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		kind = ""
	}
	return classified{fmt.Errorf("the API answered with %s instead of %s: is %s right?", cmp.Or(c.shown(c.Getenv, kind), "something else"), want, c.BaseURL), nil}
}

// decode decodes an object. Fields of an unexpected type count as missing.
func decode(data []byte, into any) error {
	err := json.Unmarshal(data, into)
	other := (*json.UnmarshalTypeError)(nil)
	switch {
	case err == nil, errors.As(err, &other) && other.Field != "":
		return nil
	case other != nil:
		return fmt.Errorf("it sent JSON that is no object, but a value of type %s", other.Value)
	}
	return fmt.Errorf("it sent no JSON: %w", err)
}

// Number is a nonnegative integer in an answer. Some servers send it with a fraction, or as a string.
type Number int64

// maxNumber is the largest number that a floating-point number represents exactly.
const maxNumber = 1 << 53

// UnmarshalJSON implements json.Unmarshaler. A value that is not a number counts as missing.
func (n *Number) UnmarshalJSON(data []byte) error {
	if value, err := strconv.ParseFloat(strings.Trim(string(data), `"`), 64); err == nil && value >= 0 && value <= maxNumber {
		*n = Number(value)
	}
	return nil
}
