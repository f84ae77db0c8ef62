package web_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/sandbox/egress"
	"github.com/coven-run/coven/internal/tool/web"
)

// site returns a server on the loopback interface.
func site(t *testing.T, calls *int) *httptest.Server {
	t.Helper()
	stop := make(chan struct{})
	pages := http.NewServeMux()
	page := func(path, kind, text string) {
		pages.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			*calls++
			if r.Header.Get("Referer") != "" || r.Header.Get("Cookie") != "" || r.Header.Get("Authorization") != "" {
				t.Errorf("%s was sent %v", path, r.Header)
			}
			w.Header().Set("Content-Type", kind)
			fmt.Fprint(w, text) //nolint:errcheck // the client reports it
		})
	}
	page("/page", "text/html; charset=utf-8", `<html><head><title>T</title><script>alert(1)</script></head><body><h1>Guide</h1><p>See <a href="/more">more</a>.</p><ul><li>one<li>two</ul></body></html>`)
	page("/plain", "text/plain", "as it is <b>\n")
	page("/json", "application/json", `{"a":1}`)
	page("/image", "image/png", "\x89PNG")
	page("/long", "text/plain", strings.Repeat("a", 60_000))
	page("/huge", "text/plain", strings.Repeat("a", 6<<20))
	page("/empty", "text/plain", "")
	page("/deep", "text/html", strings.Repeat("<div>", 100_000)+"x")
	pages.HandleFunc("/gone", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no such page", http.StatusNotFound) })
	pages.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/plain", http.StatusFound) })
	pages.HandleFunc("/round", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/round", http.StatusFound) })
	pages.HandleFunc("/to", func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
		http.Redirect(w, r, r.URL.Query().Get("url"), http.StatusFound)
	})
	pages.HandleFunc("/bomb", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		for range 64 {
			_, _ = z.Write(make([]byte, 1<<20)) // the client stops reading at some point
		}
		_ = z.Close()
	})
	pages.HandleFunc("/slow", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("a"))
		_ = http.NewResponseController(w).Flush()
		<-stop
	})
	s := httptest.NewServer(pages)
	t.Cleanup(func() { close(stop); s.Close() })
	return s
}

// through returns a transport through a coven network proxy that allows hosts.
func through(t *testing.T, allow ...string) func(context.Context) (http.RoundTripper, error) {
	t.Helper()
	var list []egress.Pattern
	for _, text := range allow {
		p, err := egress.ParsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	proxy, err := egress.Listen(t.Context(), egress.Options{Allow: list})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	return func(context.Context) (http.RoundTripper, error) { return proxy.Transport() }
}

func call(t *testing.T, o web.Options, address string) string {
	t.Helper()
	arguments, err := json.Marshal(map[string]string{"url": address})
	if err != nil {
		t.Fatal(err)
	}
	fetch := web.Tool(o)
	if err := fetch.Check(arguments); err != nil {
		return "✗ " + err.Error()
	}
	text, err := fetch.Call(t.Context(), arguments)
	if err != nil {
		return "✗ " + err.Error()
	}
	return text
}

// T-11: The results and limits of fetch.
func TestFetch(t *testing.T) {
	calls := 0
	s := site(t, &calls)
	host := strings.TrimPrefix(s.URL, "http://")
	o := web.Options{Transport: through(t, host), Allowed: func(host string) error { return errors.New("no rule allows " + host) }}
	for _, c := range []struct{ path, want string }{
		{"/page", "# Guide\n\nSee [more](" + s.URL + "/more).\n\n- one\n- two"},
		{"/plain", "as it is <b>\n"},
		{"/json", `{"a":1}`},
		{"/empty", "(the page is empty)"},
		{"/moved", "(" + s.URL + "/plain)\nas it is <b>\n"},
		{"/image", "✗ it is not text but image/png, 4 bytes"},
		{"/huge", "✗ the page has more than 5242880 bytes"},
		{"/bomb", "✗ the page has more than 5242880 bytes"},
		{"/gone", "✗ HTTP 404 Not Found\nno such page"},
		{"/round", "✗ it redirects more than 5 times"},
		{"/to?url=http://localhost:1/x", "✗ it redirects to http://localhost:1/x (no rule allows localhost); fetch that if you want it"},
		{"/to?url=file:///etc/passwd", "✗ it redirects to file:///etc/passwd: only http and https URLs can be fetched"},
		{"/to?url=http://me:pw@" + host + "/plain", "✗ it redirects to http://me:pw@" + host + "/plain: the URL must not have a user name or a password"},
	} {
		if got := call(t, o, s.URL+c.path); strings.TrimSpace(got) != strings.TrimSpace(c.want) {
			t.Errorf("%s:\n%q\nwant:\n%q", c.path, got, c.want)
		}
	}
	if got := call(t, o, s.URL+"/long"); len(got) > 50_100 || !strings.HasSuffix(got, "(cut: 50000 of 60000 bytes)") {
		t.Errorf("%d bytes, %s", len(got), got[len(got)-100:])
	}
	if got := call(t, o, s.URL+"/deep"); len(got) > 2000 {
		t.Errorf("a deep page is %d bytes", len(got))
	}
	o.Timeout = 200 * time.Millisecond
	if got := call(t, o, s.URL+"/slow"); got != "✗ it took more than 200ms" {
		t.Error(got)
	}
}

// Addresses of the machine and its network are reachable only if the user allows them, even through a
// redirect from an allowed host.
func TestPrivate(t *testing.T) {
	calls := 0
	s := site(t, &calls)
	host := strings.TrimPrefix(s.URL, "http://")
	port := host[strings.LastIndex(host, ":"):]
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was reached") }))
	defer other.Close()
	o := web.Options{Transport: through(t), Allowed: func(string) error { return nil }}
	for _, address := range []string{s.URL, "http://localhost" + port, "http://[::1]" + port, "http://169.254.169.254/latest", "http://10.0.0.1/", "http://0.0.0.0" + port, "http://127.1" + port, "http://2130706433" + port} {
		if got := call(t, o, address+"/plain"); !strings.HasPrefix(got, "✗ HTTP 4") || !strings.Contains(got, "coven: ") {
			t.Errorf("%s: %s", address, got)
		}
	}
	if calls != 0 {
		t.Errorf("the site was called %d times", calls)
	}
	o.Transport = through(t, host)
	for _, address := range []string{other.URL, "http://169.254.169.254/", "http://localhost" + port} {
		if got := call(t, o, s.URL+"/to?url="+address+"/x"); !strings.HasPrefix(got, "✗ HTTP 403") || !strings.Contains(got, "is not allowed") {
			t.Errorf("redirected to %s: %s", address, got)
		}
	}
	if got := call(t, o, "https://"+other.Listener.Addr().String()); !strings.Contains(got, "is not allowed") {
		t.Errorf("https: %s", got)
	}
}
