package main

import (
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// address matches the addresses that coven web prints.
var address = regexp.MustCompile(`(?m)^  (http://\S+/login\?code=\S+)$`)

// cmdBrowse implements browse FILE STEP...: it opens the last address in the output of coven web, which FILE contains, and uses the
// page as a browser does. "sees PATH REGEXP" waits until the page at PATH matches. "sends PATH ACTION NAME=VALUE..." sends the
// form for ACTION of the page at PATH; a _ in a value is a space. The group of a REGEXP that matched is $FOUND, and {} in later steps.
func cmdBrowse(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: browse FILE STEP...")
	}
	b := newBrowser(ts, args[0])
	for _, step := range args[1:] {
		step = strings.ReplaceAll(step, "{}", ts.Getenv("FOUND"))
		switch words := strings.SplitN(step, " ", 3); words[0] {
		case "sees":
			b.sees(words[1], words[2])
		case "sends":
			words = strings.Fields(step)
			b.sends(words[1], words[2], words[3:])
		default:
			ts.Fatalf("browse: no step %q", step)
		}
	}
}

// browser is a browser that is logged in.
type browser struct {
	ts     *testscript.TestScript
	client *http.Client
	site   *url.URL
}

// loginAddress waits for an address in the output of coven web, and returns the last one.
func loginAddress(ts *testscript.TestScript, file string) string {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); pause() {
		text, err := os.ReadFile(ts.MkAbs(file))
		if urls := address.FindAllStringSubmatch(string(text), -1); err == nil && len(urls) > 0 {
			return urls[len(urls)-1][1]
		}
	}
	ts.Fatalf("%s has no address", file)
	return ""
}

func newBrowser(ts *testscript.TestScript, file string) *browser {
	login := loginAddress(ts, file)
	jar, err := cookiejar.New(nil)
	ts.Check(err)
	b := &browser{ts: ts, client: &http.Client{Jar: jar}}
	b.site, err = url.Parse(login)
	ts.Check(err)
	if status, text := b.load(http.MethodGet, b.site.RequestURI(), nil); status != http.StatusOK {
		ts.Fatalf("the login failed with %d: %s", status, text)
	}
	return b
}

// load loads a page, with a form if it is not nil.
func (b *browser) load(method, path string, form url.Values) (int, string) {
	r, err := http.NewRequest(method, "http://"+b.site.Host+path, strings.NewReader(form.Encode()))
	b.ts.Check(err)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	answer, err := b.client.Do(r)
	b.ts.Check(err)
	defer answer.Body.Close() //nolint:errcheck // read only
	text, err := io.ReadAll(answer.Body)
	b.ts.Check(err)
	return answer.StatusCode, string(text)
}

func (b *browser) sees(path, pattern string) {
	re, err := regexp.Compile(pattern)
	b.ts.Check(err)
	text := ""
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); pause() {
		_, text = b.load(http.MethodGet, path, nil)
		text = html.UnescapeString(text)
		if m := re.FindStringSubmatch(text); len(m) > 1 {
			b.ts.Setenv("FOUND", m[1])
		}
		if re.MatchString(text) {
			return
		}
	}
	b.ts.Fatalf("%s never matched %s:\n%s", path, pattern, text)
}

func (b *browser) sends(path, action string, values []string) {
	_, text := b.load(http.MethodGet, path, nil)
	nonce := regexp.MustCompile(`action="` + regexp.QuoteMeta(action) + `">\s*<input type="hidden" name="nonce" value="([^"]+)"`).FindStringSubmatch(text)
	if nonce == nil {
		b.ts.Fatalf("%s has no form for %s:\n%s", path, action, text)
	}
	form := url.Values{"nonce": {nonce[1]}}
	for _, v := range values {
		name, value, _ := strings.Cut(v, "=")
		form.Set(name, strings.ReplaceAll(value, "_", " "))
	}
	if status, text := b.load(http.MethodPost, action, form); status != http.StatusOK {
		b.ts.Fatalf("%s: %d: %s", action, status, text)
	}
}
