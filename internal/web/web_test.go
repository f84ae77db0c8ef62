package web

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/board"
	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/control/review"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/session/spending"
	"github.com/coven-run/coven/internal/session/usage"
	"github.com/coven-run/coven/plugins/reviewer"
)

// fakeSource has cards, and records the command lines of the page.
type fakeSource struct {
	files   []review.File // of a review; nil for sampleFiles
	mu      sync.Mutex
	cards   []board.Card
	started [][]string
	changed chan struct{}
	time    time.Time
}

func (s *fakeSource) Cards() ([]board.Card, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.cards), nil
}

func (s *fakeSource) All() ([]board.Card, error) { return s.Cards() }

func (s *fakeSource) Today() (budget.Day, error) {
	return budget.Day{Limit: budget.Amount{USD: 4}, Used: budget.Amount{USD: 1}}, nil
}

func (s *fakeSource) Charges(time.Time) ([]spending.Charge, error) {
	charge := func(ago time.Duration, usd float64) spending.Charge {
		tokens := budget.Tokens{Input: 1000, CacheRead: 3000}
		return spending.Charge{Session: "s4", Task: "app-4", Charge: usage.Charge{Time: s.time.Add(-ago), Path: "work#1", Tokens: tokens, USD: usd}}
	}
	return []spending.Charge{charge(48*time.Hour, 1), charge(0, 0.42)}, nil
}

func (s *fakeSource) Find(task string) (board.Card, error) {
	cards, _ := s.Cards()
	for _, c := range cards {
		if c.Task == task {
			return c, nil
		}
	}
	return board.Card{}, board.ErrNoTask
}

func (s *fakeSource) Changed() error {
	if _, open := <-s.changed; !open {
		return context.Canceled
	}
	return nil
}

func (s *fakeSource) Start(args []string) (func() (string, error), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = append(s.started, args)
	return func() (string, error) { return "landed 1234\n", nil }, nil
}

func (s *fakeSource) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.time
}

func (s *fakeSource) later(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.time = s.time.Add(d)
}

func (s *fakeSource) commands() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("%q", s.started)
}

const script = `<script>alert(1)</script><img src=x onerror=alert(1)>" onload="x` + "\x1b[31m\u202e\u200b"

// sample has a card that waits for a review, one that asks, one that waits for a budget, and one that runs.
func sample(now time.Time, dir string) []board.Card {
	view := func(id string, status event.Status, reason event.WaitReason) session.View {
		v := session.View{ID: id, Task: "t", Dir: filepath.Join(dir, id)}
		v.Status, v.Reason, v.Updated = status, reason, now
		return v
	}
	review := view("s1", session.Waiting, event.WaitReview)
	review.Open = []event.Finding{{Step: "review", Reviewer: "agent", Finding: reviewer.Finding{Severity: reviewer.Error, File: script, Line: 3, Message: script, Suggestion: script}}}
	review.Steps = []session.Step{{Path: "implement#1", Status: session.Completed, Summary: script}}
	review.Receipts = []event.Receipt{{Command: script}}
	review.Worktree, review.Used.USD, review.Used.Tokens = "/src/app.coven/"+script, 0.42, 12000
	asks := view("s2", session.Running, "")
	asks.Approvals = []session.Approval{{Approval: event.Approval{N: 1, Agent: "build", Tool: "Bash", Subject: script, Reason: script, Until: now.Add(time.Minute)}}}
	poor := view("s3", session.Waiting, event.WaitBudget)
	poor.More = "usd=+2"
	return []board.Card{
		{Section: board.NeedsYou, Task: "app-1", Short: "1", Title: "Add a flag " + script, State: "waiting (review)", Text: "the change is ready " + script, Next: "coven review app-1", Cost: 0.42, Since: now.Add(-3 * time.Minute), View: review},
		{Section: board.NeedsYou, Task: "app-2", Short: "2", Title: "Ask", State: "waiting (approval)", View: asks},
		{Section: board.NeedsYou, Task: "app-3", Short: "3", Title: "Spend", State: "waiting (budget)", View: poor},
		{Section: board.Running, Task: "a/../b <c>", Short: "a", Title: "Run", State: "running", View: view("s4", session.Running, "")},
		{Section: board.Waiting, Task: "app-5", Short: "5", Title: "Later", State: "ready"},
	}
}

// site is a running server with a browser of the person.
type site struct {
	*Server
	t      *testing.T
	source *fakeSource
	dir    string
	host   string
	client *http.Client
	logins chan string
	stop   func()
}

func newSite(t *testing.T, change ...func(*Options)) *site {
	t.Helper()
	now := time.Date(2026, 1, 2, 15, 0, 0, 0, time.UTC)
	s := &site{t: t, dir: t.TempDir(), source: &fakeSource{time: now, changed: make(chan struct{})}, logins: make(chan string, 100)}
	s.source.cards = sample(now, s.dir)
	token, _, err := Token(filepath.Join(s.dir, "private"))
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Source: s.source, Name: "app", Token: token, LoggedIn: func(from string) { s.logins <- from }}
	for _, f := range change {
		f(&o)
	}
	s.stop = s.serve(o, "127.0.0.1:0")
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	s.client = &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return s
}

// serve starts the server. It ends with the test, or when the returned function is called.
func (s *site) serve(o Options, address string) (stop func()) {
	s.t.Helper()
	l, err := (&net.ListenConfig{}).Listen(s.t.Context(), "tcp", address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.Server, s.host = New(o), l.Addr().String()
	s.beat = 20 * time.Millisecond
	ctx, cancel := context.WithCancel(s.t.Context())
	ended := make(chan error)
	server := s.Server
	go func() { ended <- server.Serve(ctx, l) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
	})
	s.t.Cleanup(stop)
	return stop
}

// login logs in with the code.
func (s *site) login() *site {
	s.t.Helper()
	s.get(strings.TrimPrefix(s.LoginURL(s.host, ""), "http://"+s.host), http.StatusSeeOther)
	return s
}

// request sends a request with headers, and returns the response and its body.
func (s *site) request(method, path, body string, headers ...string) (*http.Response, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.host+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if r.Header.Set(name, value); name == "Host" {
			r.Host = value
		}
	}
	answer, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // read only
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer, string(text)
}

func (s *site) get(path string, status int, headers ...string) string {
	s.t.Helper()
	answer, text := s.request(http.MethodGet, path, "", headers...)
	if answer.StatusCode != status {
		s.t.Errorf("GET %s %v: %d, want %d: %s", path, headers, answer.StatusCode, status, text)
	}
	return text
}

// nonce returns the proof of the form with an action on a page.
func (s *site) nonce(page, action string) string {
	s.t.Helper()
	text := s.get(page, http.StatusOK)
	m := regexp.MustCompile(`action="` + regexp.QuoteMeta(strings.NewReplacer("<", "&lt;").Replace(action)) + `">\s*<input type="hidden" name="nonce" value="([^"]+)"`).FindStringSubmatch(text)
	if m == nil {
		s.t.Fatalf("%s has no form for %s:\n%s", page, action, text)
	}
	return m[1]
}

// post sends the form of a page as a browser does, with further values in pairs.
func (s *site) post(page, action string, status int, values ...string) string {
	s.t.Helper()
	form := url.Values{"nonce": {s.nonce(page, action)}}
	for i := 0; i < len(values); i += 2 {
		form.Set(values[i], values[i+1])
	}
	answer, text := s.request(http.MethodPost, action, form.Encode(), "Origin: null", "Sec-Fetch-Site: same-origin")
	if answer.StatusCode != status {
		s.t.Errorf("POST %s: %d, want %d: %s", action, answer.StatusCode, status, text)
	}
	return text
}

// The board lists the cards by section, titles first.
func TestBoard(t *testing.T) {
	s := newSite(t).login()
	text := s.get("/", http.StatusOK)
	for _, want := range []string{"Needs you <span class=\"count\">3<", ">Add a flag", "<strong>waiting (review)</strong>", "$0.42", "<span>3m</span>", `href="/task/a%2F..%2Fb%20%3Cc%3E"`, "coven run", "Landed today"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// Each action runs the command line that the page shows, and is offered only if it is possible.
func TestActions(t *testing.T) {
	for _, test := range []struct {
		page, action string
		values       []string
		started      string
	}{
		{"/task/app-1", "/task/app-1/do/a", nil, `[["approve" "app-1"]]`},
		{"/task/app-1", "/task/app-1/do/r", []string{"text", "--all\r\nuse it"}, `[["revise" "app-1" "-m" "--all\nuse it"]]`},
		{"/task/app-1", "/task/app-1/do/x", []string{"text", "no"}, `[["reject" "app-1" "--reason" "no"]]`},
		{"/task/app-1", "/task/app-1/do/t", nil, `[["retry" "app-1"]]`},
		{"/task/app-3", "/task/app-3/do/e", nil, `[["resume" "app-3"]]`},
		{"/task/app-3", "/task/app-3/do/b", []string{"text", "usd=+7"}, `[["resume" "app-3" "--budget" "usd=+7"]]`},
		{"/task/app-2", "/task/app-2/questions/1/a", nil, `[["approvals" "approve" "app-2" "1"]]`},
		{"/task/app-2", "/task/app-2/questions/1/x", []string{"text", "why"}, `[["approvals" "deny" "app-2" "1" "--reason" "why"]]`},
		{"/task/a%2F..%2Fb%20%3Cc%3E", "/task/a%2F..%2Fb%20%3Cc%3E/do/c", nil, `[["cancel" "a/../b <c>"]]`},
		{"/", "/do/R", nil, `[["run"]]`},
		{"/", "/tasks", []string{"title", "--help", "description", "d", "accept", "one\r\n\r\ntwo"}, `[["task" "add" "--description" "d" "--accept" "one" "--accept" "two" "--" "--help"]]`},
	} {
		s := newSite(t).login()
		s.post(test.page, test.action, http.StatusSeeOther, test.values...)
		if got := s.source.commands(); got != test.started {
			t.Errorf("%s: started %s, not %s", test.action, got, test.started)
		}
		if text := s.get(test.page, http.StatusOK); !strings.Contains(text, `<ol class="commands">`) || !strings.Contains(text, "landed 1234") && !strings.Contains(text, "running …") {
			t.Errorf("%s: no command log:\n%s", test.action, text)
		}
	}
	s := newSite(t).login()
	s.post("/task/app-1", "/task/app-1/do/r", http.StatusUnprocessableEntity, "text", " \r\n")
	s.post("/", "/tasks", http.StatusUnprocessableEntity, "title", "-")
	for _, path := range []string{"/task/app-5/do/a", "/task/app-1/do/e2", "/task/app-1/do/v", "/task/app-1/do/R", "/do/a", "/task/nope/do/a", "/task/app-2/questions/x/a", "/task/app-2/questions/1/c", "/task/app-1/do/b"} {
		form := url.Values{"nonce": {s.ownNonce(path)}, "text": {"x"}}
		answer, _ := s.request(http.MethodPost, path, form.Encode(), "Sec-Fetch-Site: same-origin")
		if answer.StatusCode != http.StatusNotFound && answer.StatusCode != http.StatusConflict {
			t.Errorf("%s: %d", path, answer.StatusCode)
		}
	}
	if got := s.source.commands(); got != "[]" {
		t.Error("started", got)
	}
}

// ownNonce returns the proof that a form of the page would have for a path.
func (s *site) ownNonce(path string) string {
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://"+s.host+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, c := range s.client.Jar.Cookies(r.URL) {
		r.AddCookie(c)
	}
	return s.guard.nonce(r, path)
}

// A question that another person has answered says who did.
func TestAnswered(t *testing.T) {
	s := newSite(t).login()
	nonce := s.nonce("/task/app-2", "/task/app-2/questions/1/a")
	s.source.mu.Lock()
	s.source.cards[1].View.Approvals[0].Answer = &event.ApprovalAnswer{N: 1, Answer: event.Denied, By: "ann"}
	s.source.mu.Unlock()
	answer, text := s.request(http.MethodPost, "/task/app-2/questions/1/a", "nonce="+nonce, "Sec-Fetch-Site: same-origin")
	if answer.StatusCode != http.StatusConflict || !strings.Contains(text, "by ann") {
		t.Error(answer.StatusCode, text)
	}
}

// Each question of a task has its own answers, which never answer another one, and each action is offered once.
func TestQuestions(t *testing.T) {
	s := newSite(t).login()
	s.source.mu.Lock()
	second := s.source.cards[1].View.Approvals[0]
	second.N = 2
	s.source.cards[1].View.Approvals = append(s.source.cards[1].View.Approvals, second)
	s.source.mu.Unlock()
	text := s.get("/task/app-2", http.StatusOK)
	for _, line := range []string{"approvals approve app-2 1", "approvals approve app-2 2", "approvals deny app-2 1", "approvals deny app-2 2", "reject app-2", "cancel app-2"} {
		if n := strings.Count(text, "<code>coven "+line); n != 1 {
			t.Errorf("%s is there %d times:\n%s", line, n, text)
		}
	}
	if text := s.get("/task/app-3", http.StatusOK); strings.Count(text, "--budget") != 1 || !strings.Contains(text, ">usd=&#43;2</textarea>") {
		t.Errorf("budget:\n%s", text)
	}
	s.post("/task/app-2", "/task/app-2/questions/2/a", http.StatusSeeOther)
	s.post("/task/app-2", "/task/app-2/do/x", http.StatusSeeOther, "text", "no")
	if got := s.source.commands(); got != `[["approvals" "approve" "app-2" "2"] ["reject" "app-2" "--reason" "no"]]` {
		t.Error(got)
	}
}

// The costs are added up by time, and listed by task.
func TestCosts(t *testing.T) {
	s := newSite(t).login()
	s.source.mu.Lock()
	old := s.source.cards[0]
	old.Task, old.Cost, old.View.Updated = "app-0", 2, s.source.time.AddDate(0, 0, -30)
	s.source.cards = append(s.source.cards, old)
	s.source.mu.Unlock()
	text := s.get("/costs", http.StatusOK)
	for _, want := range []string{"<dt>Today</dt><dd>$0.42, 75% from the cache<", "<dt>Seven days</dt><dd>$1.42, ", `value="0.25">██░░░░░░░░</meter> $1.00 of $4.00`, "<dt>All sessions</dt><dd>$2.42<", "/task/app-0", "12.0k tok"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// The token is 256 bits in a file of its owner, and the same in every process. A file that others could have read is refused.
func TestToken(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "private")
	tokens := make([]string, 8)
	var all sync.WaitGroup
	for i := range tokens {
		all.Go(func() {
			token, _, err := Token(dir)
			if tokens[i] = token; err != nil || len(token) != 64 {
				t.Error(token, err)
			}
		})
	}
	all.Wait()
	if len(slices.Compact(tokens)) != 1 {
		t.Error(tokens)
	}
	_, file, _ := Token(dir)
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Error("left", left)
	}
	if err := os.Chmod(file, 0o644); err != nil { //nolint:gosec // the fault
		t.Fatal(err)
	}
	if _, _, err := Token(dir); err == nil || !strings.Contains(err.Error(), "only you can read") {
		t.Error(err)
	}
	if err := os.Rename(file, file+".0"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file+".0", file); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Token(dir); err == nil {
		t.Error("read a link")
	}
}
