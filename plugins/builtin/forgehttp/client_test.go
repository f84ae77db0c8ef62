package forgehttp

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/plugins/pluginerr"
)

var now = time.Unix(1_800_000_000, 0)

// client returns a client of a host that answers with a function.
func client(t *testing.T, answer http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	base, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return &Client{Base: base, Header: http.Header{"Authorization": {"Bearer hunter2hunter2"}}, Secret: "hunter2hunter2", Now: func() time.Time { return now }}
}

// A refusal has the sentinel of its status, and its message contains no credential and no control characters.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		want   error
		text   string
	}{
		{401, `{"message": "Bad credentials"}`, pluginerr.ErrLogin, "Bad credentials"},
		{403, `{"message": "no, hunter2hunter2\u001b[31m"}`, fs.ErrPermission, "no, *** [31m"},
		{404, `<html>`, fs.ErrNotExist, "404 Not Found"},
		{410, ``, fs.ErrNotExist, "410"},
		{422, `{"message": "Validation Failed", "errors": [{"field": "head", "code": "invalid"}, "other"]}`, nil, "Validation Failed; head invalid; other"},
		{422, `{"message": {"base": ["is invalid"]}}`, nil, `{"base": ["is invalid"]}`},
		{409, `{"error": "conflict"}`, nil, "conflict"},
		{500, `{}`, pluginerr.ErrTransient, "500"},
		{503, strings.Repeat("x", 1<<20), pluginerr.ErrTransient, "503"},
	} {
		api := client(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(c.body))
		})
		_, err := api.JSON(t.Context(), Call{Path: "/x"}, nil)
		refusal := (*Refusal)(nil)
		if !errors.As(err, &refusal) || refusal.Status != c.status || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%d %.40s: %v", c.status, c.body, err)
		}
	}
}

func TestLimits(t *testing.T) {
	for name, c := range map[string]struct {
		status  int
		header  map[string]string
		message string
		wait    time.Duration // 0 if it is no limit
	}{
		"retry":               {403, map[string]string{"Retry-After": "60"}, "secondary", time.Minute},
		"retry at once":       {429, map[string]string{"Retry-After": "0"}, "", time.Second},
		"retry much later":    {429, map[string]string{"Retry-After": "99999999"}, "", maxWait},
		"retry in the past":   {429, map[string]string{"Retry-After": "-5"}, "", defaultWait},
		"none remains":        {403, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1800000300"}, "", 5 * time.Minute},
		"none remains, past":  {403, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "5"}, "", time.Second},
		"GitLab":              {429, map[string]string{"RateLimit-Remaining": "0", "RateLimit-Reset": "1800000060"}, "", time.Minute},
		"message":             {403, nil, "API rate limit exceeded", defaultWait},
		"a date":              {429, map[string]string{"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, "", defaultWait},
		"no limit":            {403, map[string]string{"X-RateLimit-Remaining": "5", "X-RateLimit-Reset": "1800000300"}, "not accessible", 0},
		"no limit, by status": {404, map[string]string{"Retry-After": "60"}, "", 0},
	} {
		api := client(t, func(w http.ResponseWriter, _ *http.Request) {
			for name, value := range c.header {
				w.Header().Set(name, value)
			}
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(`{"message": "` + c.message + `"}`))
		})
		_, err := api.JSON(t.Context(), Call{Path: "/x"}, nil)
		limited := (*Limited)(nil)
		if is := errors.As(err, &limited); is != (c.wait > 0) || is && !limited.Until.Equal(now.Add(c.wait)) || is && !errors.Is(err, pluginerr.ErrTransient) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A redirect keeps the method, the body and the credential on the same host. On another, it is followed only by Text, without them.
func TestRedirects(t *testing.T) {
	var elsewhere []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		elsewhere = append(elsewhere, r.Header.Get("Authorization")+r.Header.Get("Accept")+string(body))
		_, _ = w.Write([]byte("log"))
	}))
	t.Cleanup(other.Close)
	var home []string
	api := client(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		home = append(home, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization")+" "+string(body))
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/there", http.StatusTemporaryRedirect)
		case "/abroad":
			http.Redirect(w, r, other.URL+"/x", http.StatusFound)
		case "/plain":
			http.Redirect(w, r, "http://example.com/x", http.StatusFound)
		case "/again":
			http.Redirect(w, r, "/again", http.StatusMovedPermanently)
		default:
			_, _ = w.Write([]byte(`{"a": 1}`))
		}
	})
	api.Header.Set("Accept", "x")
	var got struct{ A int }
	if _, err := api.JSON(t.Context(), Call{Method: http.MethodPost, Path: "/moved", Body: "b"}, &got); err != nil || got.A != 1 {
		t.Errorf("on the same host: %+v %v", got, err)
	}
	if want := []string{`POST /moved Bearer hunter2hunter2 "b"`, `POST /there Bearer hunter2hunter2 "b"`}; strings.Join(home, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q", home)
	}
	if _, err := api.JSON(t.Context(), Call{Path: "/abroad"}, &got); !errors.Is(err, pluginerr.ErrTransient) || len(elsewhere) > 0 {
		t.Errorf("to another host: %v %q", err, elsewhere)
	}
	body, err := api.Text(t.Context(), Call{Path: "/abroad"})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(body); err != nil || string(text) != "log" || body.Close() != nil || len(elsewhere) != 1 || elsewhere[0] != "" {
		t.Errorf("a log: %q %v %q", text, err, elsewhere)
	}
	for _, path := range []string{"/plain", "/again"} {
		if _, err := api.Text(t.Context(), Call{Path: path}); !errors.Is(err, pluginerr.ErrTransient) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// Answers that are no JSON or too large are errors, and a known one is not read.
func TestAnswers(t *testing.T) {
	api := client(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/known":
			if r.Header.Get("If-None-Match") == `"e"` {
				w.WriteHeader(http.StatusNotModified)
			}
		case "/large":
			_, _ = w.Write([]byte(`"` + strings.Repeat("x", maxAnswer) + `"`))
		case "/short":
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("{"))
		case "/none":
			w.WriteHeader(http.StatusNoContent)
		default:
			_, _ = w.Write([]byte("<html>hunter2hunter2"))
		}
	})
	var got any
	for _, path := range []string{"/page", "/large", "/short", "/known"} {
		if _, err := api.JSON(t.Context(), Call{Path: path}, &got); !errors.Is(err, pluginerr.ErrTransient) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if answer, err := api.JSON(t.Context(), Call{Path: "/known", ETag: `"e"`}, &got); err != nil || answer.Status != http.StatusNotModified {
		t.Errorf("known: %+v %v", answer, err)
	}
	if _, err := api.JSON(t.Context(), Call{Method: http.MethodPost, Path: "/page"}, nil); !errors.Is(err, pluginerr.ErrTransient) {
		t.Errorf("a page as the answer to a request whose answer is of no interest: %v", err)
	}
	if _, err := api.JSON(t.Context(), Call{Path: "/none"}, &got); err != nil {
		t.Errorf("no content: %v", err)
	}
}
