package forwarder

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// Time limits of a refresh. A refresh takes less time than refreshLockStale, so that no process
// takes over its lock.
const (
	answerTimeout  = 25 * time.Second // of the token endpoint
	writeLockWait  = 20 * time.Second
	refreshPatient = 75 * time.Second // how long a request waits for a refresh by another process
	pauseAfter     = 10 * time.Second // after a failed refresh
	youngFor       = time.Minute      // a refusal of a younger token does not cause a refresh
)

// maxLoginFile limits the login file and the responses of the token endpoint in bytes.
const maxLoginFile = 1 << 20

// saved is the part of a saved login that coven reads.
type saved struct {
	AccessToken      string   `json:"accessToken"`
	RefreshToken     string   `json:"refreshToken"`
	ExpiresAt        int64    `json:"expiresAt"` // ms since 1970; 0 if unknown
	Scopes           []string `json:"scopes"`
	ClientID         string   `json:"clientId"`
	SubscriptionType string   `json:"subscriptionType"`
	RateLimitTier    string   `json:"rateLimitTier"`
}

// expires reports whether the access token expires within a duration.
func (s saved) expires(within time.Duration) bool {
	return s.ExpiresAt != 0 && !time.Now().Add(within).Before(time.UnixMilli(s.ExpiresAt))
}

// loginError reports a login that cannot be used. Its text contains no part of the login.
type loginError struct {
	text  string
	again bool // it may work later
}

func (e *loginError) Error() string { return e.text }

// Is makes a permanently invalid login an ErrNoLogin.
func (e *loginError) Is(target error) bool { return target == ErrNoLogin && !e.again }

func (e *loginError) refusal() refusal {
	if e.again {
		return refusal{http.StatusServiceUnavailable, "api_error", e.text}
	}
	return refusal{http.StatusUnauthorized, "authentication_error", e.text}
}

// errInvalidGrant means that a refresh token was already used or was revoked.
var errInvalidGrant = &loginError{text: "the login has expired and could not be refreshed (invalid_grant); run: claude auth login"}

// oauth is a login in a file that the CLI refreshes, too. A refresh token can be used only
// once. So a refresh acquires the CLI's locks, rereads the file, and
// saves the new login unless the file has changed.
type oauth struct {
	dir, path string
	client    string
	endpoint  string
	transport http.RoundTripper
	reports   *reports
	patience  time.Duration // time limit for the token endpoint
	pause     time.Duration // after a failed refresh
	turn      chan struct{} // held by the process's only refresh

	mu      sync.Mutex
	unsaved *renewal  // a refreshed login that could not be written
	dead    string    // a rejected refresh token
	paused  time.Time // earliest time to repeat a failed refresh
	failure *loginError
	got     map[string]time.Time // time at which this process received each access token
}

// renewal is the result of a refresh.
type renewal struct {
	spent string // the used refresh token
	login saved
	until int64 // refreshTokenExpiresAt, ms since 1970; 0 if unknown
}

func newOAuth(dir, client string, transport http.RoundTripper, reports *reports) *oauth {
	return &oauth{
		dir: dir, path: filepath.Join(dir, credentialsFile), client: client, endpoint: tokenEndpoint,
		transport: transport, reports: reports, patience: answerTimeout, pause: pauseAfter, turn: make(chan struct{}, 1), got: map[string]time.Time{},
	}
}

func (o *oauth) renewable() bool { return true }

// current implements source.
func (o *oauth) current(ctx context.Context) (credential, error) {
	o.saveAgain(ctx)
	now, err := o.read()
	if err != nil {
		return credential{}, err
	}
	if !now.expires(expiryMargin) {
		return credential{bearer: now.AccessToken}, nil
	}
	next, err := o.refresh(ctx, now.AccessToken, false)
	switch {
	case err == nil:
		return credential{bearer: next.AccessToken}, nil
	case !now.expires(0):
		return credential{bearer: now.AccessToken}, nil // the token is still valid for some minutes
	}
	return credential{}, err
}

// after implements source.
func (o *oauth) after(ctx context.Context, refused credential) (next credential, ok bool) {
	now, err := o.read()
	if err != nil {
		return next, false
	}
	if now.AccessToken != refused.bearer {
		return credential{bearer: now.AccessToken}, true
	}
	if o.young(refused.bearer) {
		return next, false // a new token does not help
	}
	now, err = o.refresh(ctx, refused.bearer, true)
	return credential{bearer: now.AccessToken}, err == nil
}

// young reports whether this process has just received the access token.
func (o *oauth) young(token string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	at, ours := o.got[token]
	return ours && time.Since(at) < youngFor
}

// read returns the current login, or ErrNoLogin.
func (o *oauth) read() (saved, error) {
	login, _, err := readLogin(o.path)
	if err != nil {
		return saved{}, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.unsaved != nil && o.unsaved.spent == login.RefreshToken {
		return o.unsaved.login, nil
	}
	return login, nil
}

// readLogin returns the login in a file, and the content of the file.
func readLogin(path string) (saved, []byte, error) {
	raw, err := readRegular(path)
	if errors.Is(err, os.ErrNotExist) {
		return saved{}, nil, fmt.Errorf("%w (%s does not exist)", ErrNoLogin, path)
	}
	if err != nil {
		return saved{}, nil, &loginError{text: "cannot read the login: " + err.Error(), again: true}
	}
	var file map[string]json.RawMessage
	var login saved
	if err := json.Unmarshal(raw, &file); err != nil {
		return saved{}, nil, &loginError{text: "cannot read the login: " + path + " is not valid JSON; run: claude auth login", again: true}
	}
	if value := file[loginField]; len(value) == 0 || json.Unmarshal(value, &login) != nil ||
		login.AccessToken == "" || !slices.Contains(login.Scopes, inferenceScope) {
		return saved{}, nil, fmt.Errorf("%w (%s has none)", ErrNoLogin, path)
	}
	return login, raw, nil
}

// readRegular reads a regular file of limited size.
func readRegular(path string) ([]byte, error) {
	raw, err := regularfile.Read(path, maxLoginFile)
	if errors.Is(err, regularfile.ErrNotFile) || errors.As(err, new(*regularfile.SizeError)) {
		return nil, fmt.Errorf("%s is not a regular file of at most %d bytes", path, maxLoginFile)
	}
	return raw, err
}

// refresh replaces the access token used, unless another process has done so. Without
// force, it does so only if the token is about to expire.
func (o *oauth) refresh(ctx context.Context, used string, force bool) (saved, error) {
	ctx, cancel := context.WithTimeout(ctx, refreshPatient)
	defer cancel()
	select {
	case o.turn <- struct{}{}:
		defer func() { <-o.turn }()
	case <-ctx.Done():
		return saved{}, &loginError{text: "the login is being refreshed", again: true}
	}
	done := func() (saved, bool, error) {
		now, err := o.read()
		return now, err != nil || now.AccessToken != used || !force && !now.expires(expiryMargin), err
	}
	if now, enough, err := done(); enough {
		return now, err
	}
	lock, err := o.lock(ctx, func() bool { _, enough, _ := done(); return enough })
	if err != nil {
		return saved{}, err
	}
	defer lock.release()
	now, enough, err := done()
	if enough {
		return now, err
	}
	if err := o.refused(now); err != nil {
		return saved{}, err
	}
	// The client may disconnect from here on: a refresh token that was sent must be replaced.
	return o.exchange(context.WithoutCancel(ctx), now, lock)
}

// refused returns an error if the refresh token must not be sent.
func (o *oauth) refused(now saved) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case now.RefreshToken == "":
		return &loginError{text: "the login has expired and cannot be refreshed; run: claude auth login"}
	case now.RefreshToken == o.dead:
		return errInvalidGrant
	case o.failure != nil && time.Now().Before(o.paused):
		return o.failure
	}
	return nil
}

// exchange sends the refresh token and saves the new login.
func (o *oauth) exchange(ctx context.Context, now saved, lock *refreshLocks) (saved, error) {
	// Reserve space for the new login before the token is used up.
	file, err := reserve(o.path)
	if err != nil {
		return saved{}, o.failed(now, &loginError{text: "cannot refresh the login, because it could not be saved: " + plain(err), again: true})
	}
	defer file.drop()
	if !lock.held() {
		return saved{}, &loginError{text: "cannot refresh the login: another process took the lock", again: true}
	}
	next, err := o.post(ctx, now)
	if err != nil {
		return saved{}, o.failed(now, err)
	}
	failpoint.Point("login.refreshed")
	login, err := o.save(ctx, next, file)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.got = map[string]time.Time{next.login.AccessToken: time.Now()}
	o.failure, o.unsaved = nil, nil
	switch {
	case errors.Is(err, ErrNoLogin): // the user has logged out since
		return saved{}, err
	case err != nil:
		o.unsaved, o.paused = next, time.Now().Add(o.pause)
		o.reports.send(fmt.Errorf("the refreshed login could not be saved and is lost when coven ends: %s: %s; make room there, or run: claude auth login", o.path, plain(err)))
		return next.login, nil
	}
	return login, nil
}

// failed records a failed refresh.
func (o *oauth) failed(now saved, err error) error {
	failure := &loginError{text: "cannot refresh the login", again: true}
	errors.As(err, &failure)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failure, o.paused = failure, time.Now().Add(o.pause)
	if !failure.again {
		o.dead = now.RefreshToken
	}
	return failure
}

// answer is a response of the token endpoint.
type answer struct {
	Access       string  `json:"access_token"`
	Refresh      string  `json:"refresh_token"`
	Expires      float64 `json:"expires_in"` // seconds
	RefreshUntil float64 `json:"refresh_token_expires_in"`
	Scope        string  `json:"scope"`
	Error        any     `json:"error"`
}

// post sends the refresh token, with the client and the scopes of the login.
func (o *oauth) post(ctx context.Context, now saved) (*renewal, error) {
	ctx, cancel := context.WithTimeout(ctx, o.patience)
	defer cancel()
	body := map[string]string{"grant_type": "refresh_token", "refresh_token": now.RefreshToken, "client_id": o.client}
	if now.ClientID != "" {
		body["client_id"] = now.ClientID
	}
	if len(now.Scopes) > 0 {
		body["scope"] = strings.Join(now.Scopes, " ")
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode refresh: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, o.endpoint, bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("refresh: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "coven")
	resp, err := o.transport.RoundTrip(req) // does not follow redirects
	if err != nil {
		return nil, &loginError{text: "cannot refresh the login: " + req.URL.Host + " cannot be reached", again: true}
	}
	defer func() { _ = resp.Body.Close() }()
	return o.decode(now, resp)
}

// decode reads a response of the token endpoint.
func (o *oauth) decode(now saved, resp *http.Response) (*renewal, error) {
	var got answer
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxLoginFile))
	if err == nil {
		err = json.Unmarshal(raw, &got)
	}
	switch code := errorCode(got.Error); {
	case resp.StatusCode != http.StatusOK && code == "invalid_grant":
		return nil, errInvalidGrant
	case resp.StatusCode != http.StatusOK:
		return nil, &loginError{text: strings.TrimSpace(fmt.Sprintf("cannot refresh the login: the token endpoint answered %d %s", resp.StatusCode, code)), again: true}
	case err != nil || got.Access == "" || got.Expires <= 0:
		return nil, &loginError{text: "cannot refresh the login: the token endpoint sent an invalid answer", again: true}
	}
	next := &renewal{spent: now.RefreshToken, login: now}
	next.login.AccessToken, next.login.ExpiresAt = got.Access, milliseconds(got.Expires)
	if got.Refresh != "" {
		next.login.RefreshToken = got.Refresh
	}
	if got.RefreshUntil > 0 {
		next.until = milliseconds(got.RefreshUntil)
	}
	if scopes := strings.Fields(got.Scope); len(scopes) > 0 {
		next.login.Scopes = scopes
	}
	return next, nil
}

// milliseconds returns the time that is seconds from now, in milliseconds since 1970.
func milliseconds(seconds float64) int64 {
	return time.Now().UnixMilli() + int64(min(seconds, 10*365*24*3600)*1000)
}

// word matches an error code that is safe to show.
var word = lazyregexp.New(`^[a-z_]{1,40}$`)

func errorCode(value any) string {
	if object, ok := value.(map[string]any); ok {
		value = object["type"]
	}
	if code, ok := value.(string); ok && word.MatchString(code) {
		return code
	}
	return ""
}

// saveAgain retries to write a login that could not be saved, if that is due.
func (o *oauth) saveAgain(ctx context.Context) {
	o.mu.Lock()
	next := o.unsaved
	due := next != nil && time.Now().After(o.paused)
	if due {
		o.paused = time.Now().Add(o.pause)
	}
	o.mu.Unlock()
	if !due {
		return
	}
	file, err := reserve(o.path)
	if err != nil {
		return
	}
	defer file.drop()
	if _, err := o.save(context.WithoutCancel(ctx), next, file); err != nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.unsaved == next {
		o.unsaved = nil
	}
}

// plain returns the text of a file system error without the path.
func plain(err error) string {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}

// reports holds the functions that receive problem reports.
type reports struct {
	mu sync.Mutex
	to map[*Forwarder]func(error)
}

func (r *reports) add(f *Forwarder, to func(error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.to == nil {
		r.to = map[*Forwarder]func(error){}
	}
	r.to[f] = to
}

func (r *reports) remove(f *Forwarder) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.to, f)
}

func (r *reports) send(err error) {
	r.mu.Lock()
	to := slices.Collect(maps.Values(r.to))
	r.mu.Unlock()
	for _, report := range to {
		report(err)
	}
}
