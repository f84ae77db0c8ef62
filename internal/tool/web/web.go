// Package web provides the tool of coven's own loop that fetches web pages: fetch.
//
// Rules:
//   - All connections use the given transport. Coven's is the network proxy of the task, which
//     checks the host and the address of each connection, including those of redirects.
//   - The gate decides about the first host. A redirect to another host is followed only if a rule
//     allows it without asking; otherwise the model gets the new URL.
//   - The time, the redirects, the size of the page and the length of the answer are limited. No
//     cookies and no credentials are sent.
package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	md "github.com/JohannesKaufmann/html-to-markdown/v2"
	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"

	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/tool"
)

// The limits of a call.
const (
	maxRedirects = 5
	maxBody      = 5 << 20 // bytes of a page
	maxText      = 50_000  // bytes of text for the model
	maxFailure   = 1000    // bytes of a page that comes with an HTTP error
	maxTime      = 30 * time.Second
)

// Transport is the type of the connections' transport.
type Transport = http.RoundTripper

// Options configures the tool.
type Options struct {
	Transport func(ctx context.Context) (Transport, error)
	// Allowed returns an error unless a redirect may lead to host, which is in lower case and without a port.
	Allowed func(host string) error
	Timeout time.Duration // of a call; defaults to 30 seconds
}

// Tool returns the fetch tool.
func Tool(o Options) tool.Tool {
	return tool.Tool{
		Kind: tool.Fetch, Category: "api", ReadOnly: true, Call: tool.Decoded(o.fetch),
		Description: fmt.Sprintf("Fetch a web page or a text file by its URL. HTML is returned as Markdown. At most %d bytes are returned.", maxText),
		Schema: json.RawMessage(`{"type":"object","properties":{
"url":{"type":"string","minLength":1,"maxLength":4000,"description":"an http or https URL"}},
"required":["url"],"additionalProperties":false}`),
	}
}

var errNotURL = errors.New("url: it is not a URL")

type fetching struct {
	URL string `json:"url"`
}

func (o Options) fetch(ctx context.Context, in fetching) (string, error) {
	tool.Begun(ctx)
	if u, err := url.Parse(in.URL); err != nil {
		return "", errNotURL
	} else if _, err := permission.Host(u); err != nil {
		return "", err
	}
	limit := cmp.Or(o.Timeout, maxTime)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took more than %s", limit))
	defer cancel()
	response, err := o.get(ctx, in.URL)
	if err != nil {
		return "", explain(ctx, err)
	}
	defer response.Body.Close() //nolint:errcheck // read only
	text, err := textOf(response)
	if err != nil {
		return "", explain(ctx, err)
	}
	if response.StatusCode >= http.StatusBadRequest {
		return "", fmt.Errorf("HTTP %s\n%s", response.Status, shorten(text, maxFailure))
	}
	text = cmp.Or(shorten(text, maxText), "(the page is empty)")
	if at := response.Request.URL.String(); at != in.URL {
		text = "(" + at + ")\n" + text
	}
	return text, nil
}

// get sends the request and follows redirects.
func (o Options) get(ctx context.Context, address string) (*http.Response, error) {
	transport, err := o.Transport(ctx)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, errNotURL
	}
	request.Header.Set("User-Agent", "coven")
	request.Header.Set("Accept", "text/markdown, text/html;q=0.9, text/*;q=0.8, application/json;q=0.8, */*;q=0.1")
	client := http.Client{Transport: transport, CheckRedirect: o.redirect}
	return client.Do(request)
}

// redirect returns an error unless a redirect may be followed.
func (o Options) redirect(next *http.Request, before []*http.Request) error {
	next.Header.Del("Referer") // it may contain private data of the first host
	host, err := permission.Host(next.URL)
	switch {
	case err != nil:
		return fmt.Errorf("it redirects to %s: %w", next.URL, err)
	case len(before) > maxRedirects:
		return fmt.Errorf("it redirects more than %d times", maxRedirects)
	case next.URL.Scheme == "http" && before[len(before)-1].URL.Scheme == "https":
		return fmt.Errorf("it redirects to %s, which is not encrypted", next.URL)
	}
	if first, _ := permission.Host(before[0].URL); host == first {
		return nil
	}
	if err := o.Allowed(host); err != nil {
		return fmt.Errorf("it redirects to %s (%w); fetch that if you want it", next.URL, err)
	}
	return nil
}

// explain strips the method and the URL from an error, because the model knows them.
func explain(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// textOf converts a page to text, and HTML to Markdown.
func textOf(r *http.Response) (string, error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil && r.Header.Get("Content-Type") != "" && kind == "" {
		return "", errors.New("its Content-Type cannot be read")
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	switch {
	case err != nil:
		return "", err
	case len(body) > maxBody:
		return "", fmt.Errorf("the page has more than %d bytes", maxBody)
	case kind == "":
		kind, _, _ = mime.ParseMediaType(http.DetectContentType(body)) // always well-formed
	}
	switch {
	case kind == "text/html" || kind == "application/xhtml+xml":
		return markdown(body, r.Request.URL)
	case isText(kind):
		return strings.ToValidUTF8(string(body), "\uFFFD"), nil
	}
	return "", fmt.Errorf("it is not text but %s, %d bytes", kind, len(body))
}

// isText reports whether a content type is readable text.
func isText(kind string) bool {
	return strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml") ||
		slices.Contains([]string{"application/json", "application/xml", "application/javascript", "application/yaml", "application/toml", "application/x-ndjson"}, kind)
}

// markdown converts HTML to Markdown with absolute links.
func markdown(page []byte, at *url.URL) (text string, err error) {
	defer func() {
		if p := recover(); p != nil { // the page is untrusted
			err = fmt.Errorf("the page cannot be read: %v", p)
		}
	}()
	text, err = md.ConvertString(strings.ToValidUTF8(string(page), "\uFFFD"), converter.WithDomain(at.Scheme+"://"+at.Host))
	if err != nil {
		return "", fmt.Errorf("the page cannot be read: %w", err)
	}
	return strings.TrimSpace(text), nil
}

// shorten truncates a long text.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s\n(cut: %d of %d bytes)", strings.ToValidUTF8(text[:most], ""), most, len(text))
}
