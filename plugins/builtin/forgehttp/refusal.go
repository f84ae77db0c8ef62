package forgehttp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/coven-run/coven/plugins/forge"
	"github.com/coven-run/coven/plugins/pluginerr"
)

// Refusal is the answer of a host that refused a request. It wraps the sentinel of its status, if it has one.
type Refusal struct {
	Host    string
	Status  int
	Message string
}

func (r *Refusal) Error() string {
	text := fmt.Sprintf("%s refused the request (%d %s)", r.Host, r.Status, http.StatusText(r.Status))
	if r.Message != "" {
		text += ": " + r.Message
	}
	return text
}

// Unwrap returns the sentinel of the status.
func (r *Refusal) Unwrap() error {
	switch {
	case r.Status == http.StatusUnauthorized:
		return pluginerr.ErrLogin
	case r.Status == http.StatusForbidden:
		return fs.ErrPermission
	case r.Status == http.StatusNotFound || r.Status == http.StatusGone:
		return fs.ErrNotExist
	case r.Status >= 500 || r.Status == http.StatusRequestTimeout || r.Status == http.StatusTooEarly || r.Status/100 == 3:
		return pluginerr.ErrTransient
	}
	return nil
}

// Limited is the error of a request that the host refused because of a rate limit.
type Limited struct {
	Host  string
	Until time.Time
}

func (l *Limited) Error() string {
	return fmt.Sprintf("%s has reached the user's rate limit, until %s", l.Host, l.Until.UTC().Format(time.RFC3339))
}

// Unwrap returns pluginerr.ErrTransient.
func (l *Limited) Unwrap() error { return pluginerr.ErrTransient }

// messageOf returns the message in the answer to a refused request, with its details. GitHub and Gitea have a message and
// a list of errors, GitLab a message or an error of any type.
func messageOf(body []byte) string {
	var refusal struct {
		Message json.RawMessage   `json:"message"`
		Error   json.RawMessage   `json:"error"`
		Errors  []json.RawMessage `json:"errors"`
	}
	if json.Unmarshal(body, &refusal) != nil {
		return ""
	}
	texts := []string{plain(refusal.Message), plain(refusal.Error)}
	for _, e := range refusal.Errors {
		detail := struct{ Message, Resource, Field, Code string }{}
		if json.Unmarshal(e, &detail) != nil {
			texts = append(texts, plain(e))
			continue
		}
		texts = append(texts, cmp.Or(detail.Message, strings.TrimSpace(detail.Field+" "+detail.Code)))
	}
	var all []string
	for _, text := range texts {
		if text != "" {
			all = append(all, text)
		}
	}
	return strings.Join(all, "; ")
}

// plain returns a JSON string as text, and any other value as it is.
func plain(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// defaultWait is the time to wait after a refusal because of a rate limit that does not tell its end, and maxWait the
// longest time that a host can demand.
const (
	defaultWait = time.Minute
	maxWait     = 24 * time.Hour
)

// limitOf reports whether a host refused a request because of a rate limit, and until when.
func limitOf(now time.Time, status int, header http.Header, message string) (until time.Time, limited bool) {
	if status != http.StatusForbidden && status != http.StatusTooManyRequests {
		return time.Time{}, false
	}
	if seconds, err := strconv.Atoi(header.Get("Retry-After")); err == nil && seconds >= 0 {
		return end(now, now.Add(time.Duration(min(seconds, int(maxWait.Seconds())))*time.Second)), true
	}
	if limit := LimitOf(header); !limit.Reset.IsZero() && limit.Remaining == 0 {
		return end(now, limit.Reset), true
	}
	if status == http.StatusTooManyRequests || strings.Contains(strings.ToLower(message), "rate limit") {
		return now.Add(defaultWait), true
	}
	return time.Time{}, false
}

// end limits the end of a rate limit to the time from a second to a day after now.
func end(now, until time.Time) time.Time {
	switch {
	case until.Before(now.Add(time.Second)):
		return now.Add(time.Second)
	case until.After(now.Add(maxWait)):
		return now.Add(maxWait)
	}
	return until
}

// LimitOf returns the rate limit in the headers of an answer: X-RateLimit-* of GitHub, RateLimit-* of GitLab.
func LimitOf(header http.Header) forge.Limit {
	get := func(name string) int {
		n, _ := strconv.Atoi(cmp.Or(header.Get("X-Ratelimit-"+name), header.Get("Ratelimit-"+name)))
		return max(n, 0)
	}
	limit := forge.Limit{Total: get("Limit"), Remaining: get("Remaining")}
	if reset := get("Reset"); reset > 0 {
		limit.Reset = time.Unix(int64(reset), 0)
	}
	return limit
}
