package forwarder_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/internal/sandbox/forwarder"
)

// loginFile returns a login file as written by the CLI, with fields that coven does not know.
func loginFile(access, refresh string, left time.Duration) string {
	return fmt.Sprintf(`{"mcpOAuth":{"a<b":1.50},"claudeAiOauth":{"accessToken":%q,"refreshToken":%q,"expiresAt":%d,`+
		`"refreshTokenExpiresAt":1,"scopes":["user:inference","user:profile"],"subscriptionType":"max","rateLimitTier":null,"later":{"big":12345678901234567890}}}`,
		access, refresh, time.Now().Add(left).UnixMilli())
}

// tokens is a token endpoint that accepts each refresh token once: RT0, RT1, ...
type tokens struct {
	*httptest.Server
	api    *api // accepts the access tokens
	mu     sync.Mutex
	next   int // number of the valid refresh token
	asked  []map[string]string
	by     []string                                                   // senders of the requests
	twice  int                                                        // number of repeated refresh tokens
	answer func(w http.ResponseWriter, r *http.Request, grant func()) // replaces the default response
}

func newTokens(t *testing.T, api *api) *tokens {
	t.Helper()
	e := &tokens{api: api}
	api.accepted = map[string]bool{}
	e.Server = httptest.NewServer(e)
	t.Cleanup(e.Close)
	return e
}

func (e *tokens) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	grant := func() { e.grant(w, r) }
	if e.answer != nil {
		e.answer(w, r, grant)
		return
	}
	grant()
}

func (e *tokens) grant(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var asked map[string]string
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	e.asked, e.by = append(e.asked, asked), append(e.by, r.UserAgent())
	if asked["refresh_token"] != fmt.Sprintf("RT%d", e.next) {
		e.twice++
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":"invalid_grant","error_description":"SECRET"}`)
		return
	}
	e.next++
	access := fmt.Sprintf("AT%d", e.next)
	e.api.mu.Lock()
	e.api.accepted = map[string]bool{access: true}
	e.api.mu.Unlock()
	check := json.NewEncoder(w).Encode(map[string]any{
		"access_token": access, "refresh_token": fmt.Sprintf("RT%d", e.next), "expires_in": 28800,
		"refresh_token_expires_in": 86400, "scope": asked["scope"], "token_type": "Bearer",
	})
	_ = check // the client may be gone
}

// count returns the number of received refresh tokens and of repeated ones.
func (e *tokens) count() (asked, twice int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.asked), e.twice
}

// account is a user with a login.
type account struct {
	api    *api
	tokens *tokens
	home   string
	file   string
}

func newAccount(t *testing.T, login string) account {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	a := account{api: newAPI(t), home: home, file: filepath.Join(home, ".claude", ".credentials.json")}
	a.tokens = newTokens(t, a.api)
	write(t, a.file, login)
	return a
}

func (a account) login(t *testing.T) *forwarder.Login {
	t.Helper()
	login, err := forwarder.Find(variables("ANTHROPIC_BASE_URL="+a.api.URL), a.home)
	check(t, err)
	forwarder.SetTokenEndpoint(login, a.tokens.URL)
	return login
}

// env returns the environment for another process of the user.
func (a account) env(more ...string) []string {
	return append(more, "HOME="+a.home, "ANTHROPIC_BASE_URL="+a.api.URL, "TOKEN_ENDPOINT="+a.tokens.URL)
}

// savedTokens returns the tokens in the login file.
func (a account) savedTokens(t *testing.T) (access, refresh string) {
	t.Helper()
	var file struct {
		Login struct{ AccessToken, RefreshToken string } `json:"claudeAiOauth"`
	}
	check(t, json.Unmarshal([]byte(read(t, a.file)), &file))
	return file.Login.AccessToken, file.Login.RefreshToken
}

// tidy checks that no lock and no temporary file is left.
func (a account) tidy(t *testing.T) {
	t.Helper()
	for _, dir := range []string{a.home, filepath.Join(a.home, ".claude")} {
		entries, err := os.ReadDir(dir)
		check(t, err)
		for _, entry := range entries {
			if name := entry.Name(); name != ".claude" && name != ".credentials.json" && name != "real.json" {
				t.Errorf("%s is left", filepath.Join(dir, name))
			}
		}
	}
}

// An expired login is refreshed before it is used. Saving it keeps other
// fields, the mode, and the symbolic link to it.
func TestRefresh(t *testing.T) {
	a := newAccount(t, loginFile("AT0", "RT0", time.Minute))
	target := filepath.Join(a.home, "real.json")
	check(t, os.Rename(a.file, target))
	check(t, os.Chmod(target, 0o640))
	check(t, os.Symlink("../real.json", a.file))
	f := startWith(t, a.login(t), nil)
	if status, body := post(f, "{}"); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	seen, _ := a.api.requests()
	if len(seen) != 1 || seen[0].Header.Get("Authorization") != "Bearer AT1" {
		t.Errorf("sent %v", seen)
	}
	want := map[string]string{
		"grant_type": "refresh_token", "refresh_token": "RT0", "client_id": "9d1c250a-e61b-44d9-88ed-5944d1962f5e", "scope": "user:inference user:profile",
	}
	if got := a.tokens.asked[0]; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("asked %v", got)
	}
	info, err := os.Lstat(a.file)
	check(t, err)
	real, err := os.Stat(target)
	check(t, err)
	if info.Mode()&os.ModeSymlink == 0 || real.Mode().Perm() != 0o640 {
		t.Errorf("the file is %v, its target %v", info.Mode(), real.Mode())
	}
	text := read(t, a.file)
	for _, part := range []string{`"mcpOAuth":{"a<b":1.50}`, `"later":{"big":12345678901234567890}`, `"subscriptionType":"max"`, `"rateLimitTier":null`, `"scopes":["user:inference","user:profile"]`} {
		if !strings.Contains(text, part) {
			t.Errorf("%s is lost: %s", part, text)
		}
	}
	var file struct {
		Login struct{ ExpiresAt, RefreshTokenExpiresAt int64 } `json:"claudeAiOauth"`
	}
	check(t, json.Unmarshal([]byte(text), &file))
	for name, left := range map[string]time.Duration{
		"access token":  time.Until(time.UnixMilli(file.Login.ExpiresAt)) - 8*time.Hour,
		"refresh token": time.Until(time.UnixMilli(file.Login.RefreshTokenExpiresAt)) - 24*time.Hour,
	} {
		if left.Abs() > time.Minute {
			t.Errorf("the time of the %s is off by %v", name, left)
		}
	}
	a.tidy(t)
	if status, body := post(f, "{}"); status != 200 || len(a.tokens.asked) != 1 {
		t.Errorf("%d %s, %d refreshes", status, body, len(a.tokens.asked))
	}
	if strings.Contains(fmt.Sprint(f.Env()), "AT1") {
		t.Errorf("the agent gets %q", f.Env())
	}
}

// A refresh by one process serves all requests of this process and other coven processes.
func TestRefreshOnce(t *testing.T) {
	a := newAccount(t, loginFile("AT0", "RT0", -time.Hour))
	login := a.login(t)
	forwarders := []*forwarder.Forwarder{startWith(t, login, nil), startWith(t, login, nil), startWith(t, a.login(t), nil)}
	var all sync.WaitGroup
	outputs := make([]string, 3)
	for i := range outputs {
		all.Go(func() { outputs[i] = run(t, 2, a.env()...) })
	}
	for _, f := range forwarders {
		for range 4 {
			all.Go(func() {
				if status, body := post(f, "{}"); status != 200 {
					t.Errorf("%d %s", status, body)
				}
			})
		}
	}
	all.Wait()
	for _, out := range outputs {
		if out != "200 fine\n200 fine\n" {
			t.Errorf("another process: %s", out)
		}
	}
	if asked, twice := a.tokens.count(); asked != 1 || twice != 0 {
		t.Errorf("%d refresh tokens were sent, %d of them again", asked, twice)
	}
	if access, refresh := a.savedTokens(t); access != "AT1" || refresh != "RT1" {
		t.Errorf("saved %s, %s", access, refresh)
	}
	a.tidy(t)
}

// If the API refuses a login before it expires, the login is refreshed, and the request is sent
// again with its body.
func TestRefused(t *testing.T) {
	a := newAccount(t, loginFile("AT0", "RT0", time.Hour))
	f := startWith(t, a.login(t), nil)
	body := strings.Repeat("x", 1<<20)
	if status, text := post(f, body); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	seen, bodies := a.api.requests()
	if len(seen) != 2 || bodies[0] != body || bodies[1] != body || seen[1].Header.Get("Authorization") != "Bearer AT1" {
		t.Errorf("%d requests", len(seen))
	}
	// A refused token that is new is not refreshed again, because that would not help.
	a.api.mu.Lock()
	a.api.refused["AT1"] = true
	a.api.mu.Unlock()
	for range 3 {
		if status, text := post(f, "{}"); status != 401 || !strings.Contains(text, "refused") {
			t.Errorf("%d %s", status, text)
		}
	}
	if asked, _ := a.tokens.count(); asked != 1 {
		t.Errorf("%d refreshes", asked)
	}
}

// A refused request is sent again with a login that another process has saved.
func TestRefusedAndChanged(t *testing.T) {
	a := newAccount(t, loginFile("AT0", "RT0", time.Hour))
	f := startWith(t, a.login(t), nil)
	once := sync.OnceFunc(func() { _ = os.WriteFile(a.file, []byte(loginFile("ATX", "RTX", time.Hour)), 0o600) })
	a.api.accepted = nil
	a.api.answer = func(w http.ResponseWriter, r *http.Request) {
		once()
		if r.Header.Get("Authorization") != "Bearer ATX" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}
	if status, text := post(f, "{}"); status != 200 {
		t.Errorf("%d %s", status, text)
	}
	if asked, _ := a.tokens.count(); asked != 0 {
		t.Errorf("%d refreshes", asked)
	}
}

// A body over the limit is streamed once; the CLI repeats the request.
func TestRefusedBigBody(t *testing.T) {
	a := newAccount(t, loginFile("AT0", "RT0", time.Hour))
	f := startWith(t, a.login(t), nil)
	body := strings.Repeat("x", forwarder.MaxKept+1)
	if status, text := post(f, body); status != 401 {
		t.Errorf("%d %s", status, text)
	}
	if seen, bodies := a.api.requests(); len(seen) != 1 || len(bodies[0]) != len(body) {
		t.Errorf("%d requests", len(seen))
	}
}

// A failed refresh does not change the file, is not repeated immediately, and reveals no tokens to the
// agent's CLI.
func TestRefreshFails(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer func(w http.ResponseWriter, r *http.Request, grant func())
		status int
		text   string
	}{
		{"used", func(w http.ResponseWriter, _ *http.Request, _ func()) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":"invalid_grant","error_description":"RT0 SECRET"}`)
		}, 401, "claude auth login"},
		{"scope", func(w http.ResponseWriter, _ *http.Request, _ func()) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":"invalid_scope"}`)
		}, 503, "400 invalid_scope"},
		{"500", func(w http.ResponseWriter, _ *http.Request, _ func()) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, `{"error":"SECRET RT0"}`)
		}, 503, "500"},
		{"garbage", func(w http.ResponseWriter, _ *http.Request, _ func()) {
			_, _ = io.WriteString(w, `<html>RT0 SECRET`)
		}, 503, "invalid answer"},
		{"empty", func(w http.ResponseWriter, _ *http.Request, _ func()) { _, _ = io.WriteString(w, `{}`) }, 503, "invalid answer"},
		{"redirect", func(w http.ResponseWriter, r *http.Request, _ func()) {
			http.Redirect(w, r, "/again", http.StatusTemporaryRedirect)
		}, 503, "307"},
		{"hangs", func(_ http.ResponseWriter, r *http.Request, _ func()) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}, 503, "cannot be reached"},
		{"breaks", func(http.ResponseWriter, *http.Request, func()) { panic(http.ErrAbortHandler) }, 503, "cannot be reached"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := newAccount(t, loginFile("AT0", "RT0", -time.Hour))
			before, calls := read(t, a.file), atomic.Int64{}
			a.tokens.answer = func(w http.ResponseWriter, r *http.Request, grant func()) { calls.Add(1); tt.answer(w, r, grant) }
			login := a.login(t)
			forwarder.SetPatience(login, time.Second, time.Hour)
			f := startWith(t, login, nil)
			for range 2 {
				status, body := post(f, "{}")
				if _, message := problem(t, body); status != tt.status || !strings.Contains(message, tt.text) || strings.Contains(message, "SECRET") || strings.Contains(message, "RT0") {
					t.Errorf("%d %s", status, body)
				}
			}
			if n := calls.Load(); n != 1 {
				t.Errorf("%d refreshes were tried", n)
			}
			if after := read(t, a.file); after != before {
				t.Errorf("the file changed: %s", after)
			}
			if seen, _ := a.api.requests(); len(seen) != 0 {
				t.Error("a request was sent without a login")
			}
			a.tidy(t)
		})
	}
}

// A login that is still valid is used while it cannot be refreshed.
func TestRefreshFailsEarly(t *testing.T) {
	a := newAccount(t, loginFile("AT0", "RT0", 2*time.Minute))
	a.api.accepted = map[string]bool{"AT0": true}
	a.tokens.answer = func(w http.ResponseWriter, _ *http.Request, _ func()) { w.WriteHeader(http.StatusBadGateway) }
	f := startWith(t, a.login(t), nil)
	if status, body := post(f, "{}"); status != 200 {
		t.Errorf("%d %s", status, body)
	}
}

// After a new login, the forwarder works again without a restart.
func TestLoginAgain(t *testing.T) {
	a := newAccount(t, loginFile("AT0", "RT-used", -time.Hour))
	f := startWith(t, a.login(t), nil)
	if status, body := post(f, "{}"); status != 401 || !strings.Contains(body, "claude auth login") {
		t.Errorf("%d %s", status, body)
	}
	check(t, os.Remove(a.file))
	if status, body := post(f, "{}"); status != 401 || !strings.Contains(body, "claude auth login") {
		t.Errorf("%d %s", status, body)
	}
	write(t, a.file, loginFile("ATX", "RTX", time.Hour))
	a.api.mu.Lock()
	a.api.accepted = map[string]bool{"ATX": true}
	a.api.mu.Unlock()
	if status, body := post(f, "{}"); status != 200 {
		t.Errorf("%d %s", status, body)
	}
}

// While the CLI holds its lock, coven waits, and then uses the CLI's new login.
func TestWaitsForTheCLI(t *testing.T) {
	for _, lock := range []string{".claude/.oauth_refresh.lock", ".claude.lock"} {
		t.Run(lock, func(t *testing.T) {
			a := newAccount(t, loginFile("AT0", "RT0", -time.Hour))
			a.api.accepted = map[string]bool{"ATX": true}
			path := filepath.Join(a.home, lock)
			check(t, os.Mkdir(path, 0o755))
			f := startWith(t, a.login(t), nil)
			answered := make(chan string)
			go func() {
				status, body := post(f, "{}")
				answered <- fmt.Sprint(status, body)
			}()
			select {
			case got := <-answered:
				t.Fatalf("the lock was not respected: %s", got)
			case <-time.After(300 * time.Millisecond):
			}
			write(t, a.file+".new", loginFile("ATX", "RTX", time.Hour))
			check(t, os.Rename(a.file+".new", a.file))
			select {
			case got := <-answered: // before the lock is released
				if got != "200fine" {
					t.Error(got)
				}
			case <-time.After(patience):
				t.Fatal("no answer")
			}
			if asked, _ := a.tokens.count(); asked != 0 {
				t.Errorf("%d refreshes", asked)
			}
			check(t, os.Remove(path)) // coven has not removed the lock
		})
	}
}

// Close does not wait for the lock of another process, but waits for its own refresh to be
// saved.
func TestCloseDuringRefresh(t *testing.T) {
	a := newAccount(t, loginFile("AT0", "RT0", -time.Hour))
	path := filepath.Join(a.home, ".claude.lock")
	check(t, os.Mkdir(path, 0o755))
	waiting, ended := startWith(t, a.login(t), nil), make(chan struct{})
	go func() { defer close(ended); _, _ = post(waiting, "{}") }()
	<-time.After(300 * time.Millisecond) // the request is waiting or has not arrived; both must end
	begun := time.Now()
	check(t, waiting.Close())
	<-ended
	if took := time.Since(begun); took > patience/2 {
		t.Errorf("it took %v", took)
	}
	check(t, os.Remove(path))

	sent, f := make(chan struct{}), startWith(t, a.login(t), nil)
	a.tokens.answer = func(_ http.ResponseWriter, r *http.Request, grant func()) {
		close(sent)
		select {
		case <-time.After(300 * time.Millisecond):
			grant()
		case <-r.Context().Done():
			t.Error("the refresh was given up")
		}
	}
	go func() { _, _ = post(f, "{}") }()
	<-sent
	check(t, f.Close())
	if access, refresh := a.savedTokens(t); access != "AT1" || refresh != "RT1" {
		t.Errorf("saved %s, %s", access, refresh)
	}
	a.tidy(t)
}

// The lock of a dead process is removed when it is old.
func TestDeadLock(t *testing.T) {
	a := newAccount(t, loginFile("AT0", "RT0", -time.Hour))
	old := time.Now().Add(-2 * time.Minute)
	for _, lock := range []string{".claude/.oauth_refresh.lock", ".claude.lock", ".claude/.storage-write.lock"} {
		path := filepath.Join(a.home, lock)
		check(t, os.Mkdir(path, 0o755))
		check(t, os.Chtimes(path, old, old))
	}
	if status, body := post(startWith(t, a.login(t), nil), "{}"); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	a.tidy(t)
}

// A lock that another process has taken over is not released.
func TestLostLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held, release, err := forwarder.TryLock(path)
	check(t, err)
	if !held() {
		t.Error("a lock is not held")
	}
	check(t, os.Remove(path))
	if held() {
		t.Error("a lock that was removed is held")
	}
	check(t, os.Mkdir(path, 0o755))
	check(t, os.Chtimes(path, time.Time{}, time.Now().Add(time.Second)))
	if release(); held() {
		t.Error("a lock of somebody else is held")
	}
	check(t, os.Remove(path)) // release has not removed it
}

// A permanently invalid login counts as no login.
func TestInvalidGrant(t *testing.T) {
	if err := forwarder.ErrInvalidGrant; !errors.Is(err, forwarder.ErrNoLogin) || errors.Is(err, forwarder.ErrNotForwarded) {
		t.Errorf("%v", err)
	}
}

// The file with a refreshed login keeps its owner, even if root runs coven.
func TestSaveKeepsOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root makes files of others")
	}
	a := newAccount(t, loginFile("AT0", "RT0", -time.Hour))
	check(t, os.Chown(a.file, 65534, 65533))
	if status, body := post(startWith(t, a.login(t), nil), "{}"); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	info, err := os.Stat(a.file)
	check(t, err)
	if owner := info.Sys().(*syscall.Stat_t); owner.Uid != 65534 || owner.Gid != 65533 {
		t.Errorf("the file belongs to %d:%d", owner.Uid, owner.Gid)
	}
}

// A login that the user creates during a refresh is kept.
func TestLoginDuringRefresh(t *testing.T) {
	a := newAccount(t, loginFile("AT0", "RT0", -time.Hour))
	a.tokens.answer = func(_ http.ResponseWriter, _ *http.Request, grant func()) {
		_ = os.WriteFile(a.file, []byte(loginFile("ATX", "RTX", time.Hour)), 0o600)
		grant()
		a.api.mu.Lock()
		a.api.accepted["ATX"] = true
		a.api.mu.Unlock()
	}
	if status, body := post(startWith(t, a.login(t), nil), "{}"); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	if access, refresh := a.savedTokens(t); access != "ATX" || refresh != "RTX" {
		t.Errorf("saved %s, %s", access, refresh)
	}
}

// No refresh token is used up if the disk is full.
func TestFullDisk(t *testing.T) {
	a := newAccount(t, loginFile("AT0", "RT0", -time.Hour))
	before := read(t, a.file)
	out := run(t, 1, a.env("FULL_DISK=1")...)
	if asked, _ := a.tokens.count(); asked != 0 || !strings.Contains(out, "503") || !strings.Contains(out, "could not be saved") {
		t.Errorf("%d refreshes: %s", asked, out)
	}
	if read(t, a.file) != before {
		t.Error("the file changed")
	}
	a.tidy(t)
}

// A refreshed login that cannot be saved is reported, used, and saved later.
func TestNotSaved(t *testing.T) {
	a := newAccount(t, loginFile("AT0", "RT0", -time.Hour))
	before := read(t, a.file)
	a.tokens.answer = func(_ http.ResponseWriter, _ *http.Request, grant func()) {
		entries, _ := filepath.Glob(filepath.Join(filepath.Dir(a.file), ".*credentials*"))
		for _, name := range entries {
			if name != a.file {
				_ = os.Remove(name) // the reserved file
			}
		}
		grant()
	}
	login := a.login(t)
	forwarder.SetPatience(login, time.Minute, time.Hour)
	problems := make(chan error, 1)
	f := startWith(t, login, func(err error) { problems <- err })
	if status, body := post(f, "{}"); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	if err := <-problems; !strings.Contains(err.Error(), a.file) || strings.Contains(err.Error(), "AT1") || strings.Contains(err.Error(), "RT") {
		t.Errorf("reported %v", err)
	}
	if read(t, a.file) != before {
		t.Error("the file changed")
	}
	if status, body := post(f, "{}"); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	forwarder.RetryNow(login)
	if status, body := post(f, "{}"); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	if access, refresh := a.savedTokens(t); access != "AT1" || refresh != "RT1" {
		t.Errorf("saved %s, %s", access, refresh)
	}
	a.tidy(t)
}

// If coven is killed after the refresh token was used and before the new login is saved, the login
// is lost, and the next process reports the fix. At other times, no login is lost.
func TestKilled(t *testing.T) {
	for _, tt := range []struct {
		point string
		lost  bool
	}{{"login.refreshed", true}, {"login.save", true}, {"login.saved", false}} {
		t.Run(tt.point, func(t *testing.T) {
			a := newAccount(t, loginFile("AT0", "RT0", -time.Hour))
			if out := run(t, 1, a.env(failpoint.Env+"="+tt.point)...); out != "" {
				t.Fatalf("it was not killed: %s", out)
			}
			old := time.Now().Add(-2 * time.Minute)
			for _, lock := range []string{".claude/.oauth_refresh.lock", ".claude.lock", ".claude/.storage-write.lock"} {
				path := filepath.Join(a.home, lock)
				if err := os.Chtimes(path, old, old); err != nil && !errors.Is(err, os.ErrNotExist) {
					t.Fatal(err)
				}
			}
			out := run(t, 1, a.env()...)
			want := out == "200 fine\n"
			if tt.lost {
				want = strings.HasPrefix(out, "401") && strings.Contains(out, "claude auth login")
			}
			if !want {
				t.Error(out)
			}
		})
	}
}

// The error for an unreadable file contains its path.
func TestUnreadable(t *testing.T) {
	a := newAccount(t, loginFile("AT0", "RT0", time.Hour))
	f := startWith(t, a.login(t), nil)
	check(t, os.Remove(a.file))
	check(t, os.Mkdir(a.file, 0o700))
	status, body := post(f, "{}")
	if _, message := problem(t, body); status != 503 || !strings.Contains(message, a.file) {
		t.Errorf("%d %s", status, body)
	}
}
