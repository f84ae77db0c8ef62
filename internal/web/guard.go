package web

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	loginLife  = 12 * time.Hour // of a cookie and of the forms of a page
	maxFailed  = 10             // failed logins within failedWithin
	maxBody    = 256 << 10      // bytes of a form
	policy     = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	loginPath  = "/login"
	assetsPath = "/assets/"

	failedWithin = time.Minute
)

// guard decides which requests reach the page. Before it authenticates a request, it requires the name of this server (against
// DNS rebinding) and no other site as its origin (against forged requests).
type guard struct {
	token       string           // proves a login; its cookies are valid as long as it is
	process     []byte           // proves forms, of this process alone
	certificate *tls.Certificate // nil without TLS, on loopback
	readOnly    bool
	now         func() time.Time
	loggedIn    func(from string) // is called after each login

	mu     sync.Mutex
	code   string               // for one login
	failed []time.Time          // logins
	used   map[string]time.Time // proofs of forms, with their ends
}

func newGuard(o Options) *guard {
	return &guard{
		token: o.Token, process: []byte(rand.Text()), certificate: o.Certificate, readOnly: o.ReadOnly, now: o.Source.Now,
		loggedIn: o.LoggedIn, code: rand.Text(), used: map[string]time.Time{},
	}
}

// protect returns a handler that passes allowed requests on.
func (g *guard) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setHeaders(w.Header())
		switch {
		case !g.isHost(r.Host):
			refuse(w, http.StatusMisdirectedRequest, "this server has another name: open the address that coven web has printed")
		case !isOwnSite(r):
			refuse(w, http.StatusForbidden, "another site has sent this request: open the address that coven web has printed directly")
		case r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodPost:
			refuse(w, http.StatusMethodNotAllowed, "there is no such method")
		case r.Method == http.MethodPost && g.readOnly:
			refuse(w, http.StatusForbidden, "this page is read-only")
		case strings.HasPrefix(r.URL.Path, assetsPath):
			next.ServeHTTP(w, r)
		case r.URL.Path == loginPath:
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
			g.login(w, r)
		case !g.isLoggedIn(r):
			g.refuseLogin(w, http.StatusUnauthorized, "")
		case r.Method == http.MethodPost:
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
			if status, text := g.checkForm(r); status != 0 {
				refuse(w, status, text)
				return
			}
			next.ServeHTTP(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

func refuse(w http.ResponseWriter, status int, text string) { http.Error(w, text, status) }

// isHost reports whether the value of a Host header names this server: with TLS a name of its certificate, else loopback. The port
// may be that of a tunnel.
func (g *guard) isHost(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	if g.certificate != nil {
		return g.certificate.Leaf.VerifyHostname(name) == nil
	}
	return name == "localhost" || name == "127.0.0.1" || name == "::1"
}

// isOwnSite reports whether a request was not sent by a page of another site. A POST must prove that it comes from a page of this
// server. A browser sends the origin "null" with forms, as the page has no referrer.
func isOwnSite(r *http.Request) bool {
	site, origin := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Origin")
	own := origin == "http://"+r.Host && r.TLS == nil || origin == "https://"+r.Host && r.TLS != nil
	if origin != "" && !own && (origin != "null" || site != "same-origin") {
		return false
	}
	if r.Method == http.MethodPost {
		return site == "same-origin" || site == "" && own
	}
	return site == "" || site == "same-origin" || site == "none"
}

// cookie returns the name of the cookie. Cookies do not tell ports apart, but servers do.
func (g *guard) cookie(r *http.Request) string {
	name := "coven-" + strconv.Itoa(int(sum16(r.Host)))
	if g.certificate != nil {
		return "__Host-" + name
	}
	return name
}

func sum16(text string) uint16 {
	sum := sha256.Sum256([]byte(text))
	return uint16(sum[0])<<8 | uint16(sum[1])
}

func prove(key []byte, parts ...string) string {
	mac := hmac.New(sha256.New, key)
	for _, part := range parts {
		_, _ = fmt.Fprintf(mac, "%d:%s", len(part), part) // a hash takes all
	}
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// isLoggedIn reports whether a request has a cookie for the address of this server.
func (g *guard) isLoggedIn(r *http.Request) bool {
	c, err := r.Cookie(g.cookie(r))
	if err != nil {
		return false
	}
	parts := strings.Split(c.Value, ".")
	return len(parts) == 3 && equal(parts[2], prove([]byte(g.token), "login", r.Host, parts[0], parts[1])) && g.isBefore(parts[0])
}

// isBefore reports whether the time, in Unix seconds, is in the future.
func (g *guard) isBefore(seconds string) bool {
	end, err := strconv.ParseInt(seconds, 10, 64)
	return err == nil && g.now().Unix() < end
}

func (g *guard) end() string { return strconv.FormatInt(g.now().Add(loginLife).Unix(), 10) }

// login exchanges the code or the token for a cookie. The redirect removes the code from the address.
func (g *guard) login(w http.ResponseWriter, r *http.Request) {
	given := ""
	switch {
	case r.Method == http.MethodPost && g.maySignIn():
		given = strings.TrimSpace(r.PostFormValue("token"))
	case r.Method == http.MethodGet && r.Header.Get("Sec-Purpose") == "": // a browser may load an address before it is opened
		given = r.URL.Query().Get("code")
	}
	if given == "" && g.maySignIn() {
		g.refuseLogin(w, http.StatusUnauthorized, "")
		return
	}
	if status := g.exchange(given); status != http.StatusOK {
		g.refuseLogin(w, status, map[int]string{
			http.StatusUnauthorized:    "The code was used or is wrong: coven web prints a new one after each login.",
			http.StatusTooManyRequests: "Too many logins have failed: try again in a minute.",
		}[status])
		return
	}
	g.loggedIn(r.RemoteAddr)
	end, salt := g.end(), rand.Text()
	http.SetCookie(w, &http.Cookie{
		Name: g.cookie(r), Value: strings.Join([]string{end, salt, prove([]byte(g.token), "login", r.Host, end, salt)}, "."),
		Path: "/", MaxAge: int(loginLife / time.Second), HttpOnly: true, Secure: g.certificate != nil, SameSite: http.SameSiteStrictMode,
	})
	to := "/"
	if task := r.URL.Query().Get("task"); task != "" {
		to = taskPath(task)
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// maySignIn reports whether not too many logins have failed.
func (g *guard) maySignIn() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failed = slices.DeleteFunc(g.failed, func(at time.Time) bool { return g.now().Sub(at) >= failedWithin })
	return len(g.failed) < maxFailed
}

// exchange checks a code or the token, and returns the HTTP status. A code is used up.
func (g *guard) exchange(given string) (status int) {
	if !g.maySignIn() {
		return http.StatusTooManyRequests
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case equal(given, g.code):
		g.code = rand.Text()
		return http.StatusOK
	case equal(given, g.token):
		return http.StatusOK
	}
	g.failed = append(g.failed, g.now())
	return http.StatusUnauthorized
}

// refuseLogin shows the page on which a person can log in.
func (g *guard) refuseLogin(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = templates().ExecuteTemplate(w, "login", map[string]any{"Text": text, "ReadOnly": g.readOnly}) // the browser has gone
}

// Code returns the present code for a login.
func (g *guard) Code() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.code
}

// nonce returns the proof of a form that is sent to path once, by the browser of r.
func (g *guard) nonce(r *http.Request, path string) string {
	end, salt := g.end(), rand.Text()
	return strings.Join([]string{end, salt, g.proveForm(r, path, end, salt)}, ".")
}

func (g *guard) proveForm(r *http.Request, path, end, salt string) string {
	login := ""
	if c, err := r.Cookie(g.cookie(r)); err == nil {
		login = c.Value
	}
	return prove(g.process, "form", login, path, end, salt)
}

// checkForm uses up the proof of a form. It returns 0, or the HTTP status and the reason of a refusal.
func (g *guard) checkForm(r *http.Request) (status int, text string) {
	if err := r.ParseForm(); err != nil {
		return http.StatusBadRequest, "the form cannot be read, or is larger than " + strconv.Itoa(maxBody>>10) + " KiB"
	}
	nonce := r.PostForm.Get("nonce")
	parts := strings.Split(nonce, ".")
	if len(parts) != 3 || !equal(parts[2], g.proveForm(r, r.URL.Path, parts[0], parts[1])) || !g.isBefore(parts[0]) {
		return http.StatusForbidden, "this form is not from the present page: go back, and load the page again"
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for old, end := range g.used {
		if g.now().After(end) {
			delete(g.used, old)
		}
	}
	if _, again := g.used[nonce]; again {
		return http.StatusConflict, "this form was sent before, and counts once"
	}
	g.used[nonce] = g.now().Add(loginLife)
	return 0, ""
}
