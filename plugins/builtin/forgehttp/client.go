// Package forgehttp is the HTTP client of the built-in forge plugins. It sends requests, follows redirects, and converts
// refusals to errors.
//
// Rules:
//   - The credential is sent only to the host of the API, over TLS or the loopback interface.
//   - A redirect to another host is followed only for logs, without the credential.
//   - Answers have a size limit. No request is repeated. No error contains the credential.
package forgehttp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coven-run/coven/plugins/forge"
	"github.com/coven-run/coven/plugins/pluginerr"
)

const (
	maxAnswer    = 16 << 20        // bytes of an answer in JSON
	maxRefusal   = 64 << 10        // bytes of the answer to a refused request
	maxRedirects = 5               // of a request
	timeout      = 2 * time.Minute // for a request and its answer
)

// Client is a client of an API with a user's credential.
type Client struct {
	Base      *url.URL          // it has no slash at its end
	Header    http.Header       // of each request to the API, such as Authorization
	Secret    string            // the credential, which is removed from errors
	Transport http.RoundTripper // nil for the network
	Now       func() time.Time  // nil for the system's clock
}

// NewBase returns the address of an API of a host. api is empty for the address usual, which begins with https. An API on another machine than the
// host, or without TLS on another than this machine, is a pluginerr.ErrInvalid: it would get the host's credential.
func NewBase(host, api, usual string) (*url.URL, error) {
	if api == "" {
		api = usual
	}
	base, err := url.Parse(strings.TrimRight(api, "/"))
	if err != nil || base.Host == "" || base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return nil, fmt.Errorf("%q is not the address of an API: %w", forge.ClipLine(api), pluginerr.ErrInvalid)
	}
	owner, err := url.Parse("https://" + host)
	if err != nil || owner.Host != host || host == "" {
		return nil, fmt.Errorf("%q is not the name of a host: %w", forge.ClipLine(host), pluginerr.ErrInvalid)
	}
	name := strings.ToLower(base.Hostname())
	if its := strings.ToLower(owner.Hostname()); name != its && name != "api."+its {
		return nil, fmt.Errorf("the API %s is not on %s: %w", forge.ClipLine(base.Host), host, pluginerr.ErrInvalid)
	}
	if base.Scheme != "https" && (base.Scheme != "http" || !isLoopback(name)) {
		return nil, fmt.Errorf("the API %s does not use https: %w", forge.ClipLine(base.Host), pluginerr.ErrInvalid)
	}
	return base, nil
}

func isLoopback(name string) bool {
	ip := net.ParseIP(name)
	return name == "localhost" || strings.HasSuffix(name, ".localhost") || ip != nil && ip.IsLoopback()
}

// Call is a request.
type Call struct {
	Method string      // default GET
	Path   string      // relative to Client.Base, with a slash, or an absolute address on the same host
	Body   any         // sent as JSON, if it is not nil
	ETag   string      // of the known answer
	Header http.Header // in addition to Client.Header
}

// Answer is the answer to a successful request.
type Answer struct {
	Status int // 304 if Call.ETag is the one of the present answer
	Header http.Header
}

// JSON sends a request and decodes the answer, unless into is nil or the answer is empty or the known one.
func (c *Client) JSON(ctx context.Context, call Call, into any) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	response, err := c.send(ctx, call, false)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close() //nolint:errcheck // only read
	answer := Answer{Status: response.StatusCode, Header: response.Header}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return Answer{}, c.unreachable(ctx, err)
	case len(body) > maxAnswer:
		return Answer{}, fmt.Errorf("an answer of %s has more than %d MB: %w", c.Base.Host, maxAnswer>>20, pluginerr.ErrTransient)
	case strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") && answer.Status != http.StatusNotModified: // of a proxy, which did nothing
		return Answer{}, fmt.Errorf("%s sent a page instead of JSON: %w", c.Base.Host, pluginerr.ErrTransient)
	case into == nil || answer.Status == http.StatusNotModified || len(bytes.TrimSpace(body)) == 0 && answer.Status == http.StatusNoContent:
		return answer, nil
	}
	if err := json.Unmarshal(body, into); err != nil {
		return Answer{}, fmt.Errorf("%s did not send the expected JSON (%s): %w", c.Base.Host, c.shown(err.Error()), pluginerr.ErrTransient)
	}
	return answer, nil
}

// Text sends a request, follows redirects also to other hosts, and returns the answer, which the caller closes.
func (c *Client) Text(ctx context.Context, call Call) (io.ReadCloser, error) {
	response, err := c.send(ctx, call, true)
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}

// send sends a request and follows redirects. It returns the answer if it is successful.
func (c *Client) send(ctx context.Context, call Call, abroad bool) (*http.Response, error) {
	at, err := url.Parse(call.Path)
	if err != nil {
		return nil, fmt.Errorf("address of a request: %w", pluginerr.ErrInvalid)
	}
	if at.Host == "" {
		if at, err = url.Parse(c.Base.String() + call.Path); err != nil {
			return nil, fmt.Errorf("address of a request: %w", pluginerr.ErrInvalid)
		}
	}
	for range maxRedirects {
		home := sameHost(at, c.Base)
		if !home && (!abroad || at.Scheme != "https" && !isLoopback(at.Hostname())) {
			return nil, fmt.Errorf("%s redirects to %s: %w", c.Base.Host, forge.ClipLine(at.Host), pluginerr.ErrTransient)
		}
		response, err := c.once(ctx, call, at, home)
		if err != nil {
			return nil, err
		}
		next, redirected := redirect(response, call.Method)
		if !redirected {
			return c.checked(response)
		}
		response.Body.Close() //nolint:errcheck,gosec // only its header is of interest
		at = next
	}
	return nil, fmt.Errorf("%s redirects too often: %w", c.Base.Host, pluginerr.ErrTransient)
}

// sameHost reports whether two addresses have the same host and scheme.
func sameHost(a, b *url.URL) bool { return a.Scheme == b.Scheme && strings.EqualFold(a.Host, b.Host) }

// redirect returns the address to which an answer redirects a request of this method.
func redirect(response *http.Response, method string) (*url.URL, bool) {
	switch response.StatusCode {
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	case http.StatusMovedPermanently, http.StatusFound:
		if method != "" && method != http.MethodGet {
			return nil, false
		}
	default:
		return nil, false
	}
	next, err := response.Location()
	return next, err == nil
}

// once sends a request to an address. The credential is sent only to the API's host.
func (c *Client) once(ctx context.Context, call Call, at *url.URL, home bool) (*http.Response, error) {
	var body io.Reader
	if call.Body != nil && home {
		sent, err := json.Marshal(call.Body)
		if err != nil {
			return nil, fmt.Errorf("the request cannot be written as JSON: %w", pluginerr.ErrInvalid)
		}
		body = bytes.NewReader(sent)
	}
	request, err := http.NewRequestWithContext(ctx, call.Method, at.String(), body)
	if err != nil {
		return nil, fmt.Errorf("request %s: %w", c.shown(err.Error()), pluginerr.ErrInvalid)
	}
	request.Header.Set("User-Agent", "coven")
	if home {
		for _, header := range []http.Header{c.Header, call.Header} {
			for name, values := range header {
				request.Header[name] = values
			}
		}
		if call.ETag != "" {
			request.Header.Set("If-None-Match", call.ETag)
		}
		if body != nil {
			request.Header.Set("Content-Type", "application/json")
		}
	}
	client := http.Client{Transport: c.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	return response, nil
}

// unreachable returns the error of a request without an answer.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	if inner := (*url.Error)(nil); errors.As(err, &inner) {
		err = inner.Err // without the address
	}
	return fmt.Errorf("%s cannot be reached: %s: %w", c.Base.Host, c.shown(err.Error()), pluginerr.ErrTransient)
}

// checked returns the answer if it is successful, and otherwise a Refusal or a Limited.
func (c *Client) checked(response *http.Response) (*http.Response, error) {
	if response.StatusCode/100 == 2 || response.StatusCode == http.StatusNotModified {
		return response, nil
	}
	defer response.Body.Close() //nolint:errcheck // only read
	var body []byte
	if response.StatusCode >= 300 { // after 101, package http does not close the connection when the context ends
		body, _ = io.ReadAll(io.LimitReader(response.Body, maxRefusal)) // as much as was received
	}
	message := messageOf(body)
	if until, limited := limitOf(c.now(), response.StatusCode, response.Header, message); limited {
		return nil, &Limited{Host: c.Base.Host, Until: until}
	}
	return nil, &Refusal{Host: c.Base.Host, Status: response.StatusCode, Message: c.shown(message)}
}

func (c *Client) now() time.Time {
	if c.Now != nil {
		return c.Now()
	}
	return time.Now()
}

// shown formats a text of the host as one line without the credential.
func (c *Client) shown(text string) string {
	if c.Secret != "" {
		text = strings.ReplaceAll(text, c.Secret, "***")
	}
	if text = forge.ClipLine(text); len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown], "") + "..."
	}
	return text
}

// maxShown is the number of bytes of a host's message in an error.
const maxShown = 400
