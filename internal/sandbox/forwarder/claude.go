package forwarder

import (
	"bufio"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// This file contains everything specific to Claude Code, as observed with version 2.1.330:
// docs/decisions/credentials.md has the observations.

// ErrNoLogin means that the user has no credential for the API.
var ErrNoLogin = errors.New("not logged in to Claude; run: claude auth login")

// ErrNotForwarded means that the user's login method cannot be forwarded. The CLI needs
// the credential itself then, and the agent can read it.
var ErrNotForwarded = errors.New("this way to log in cannot be forwarded")

const (
	defaultAPI      = "https://api.anthropic.com"
	tokenEndpoint   = "https://platform.claude.com/v1/oauth/token"
	clientID        = "9d1c250a-e61b-44d9-88ed-5944d1962f5e" // Claude Code's own, which is public
	credentialsFile = ".credentials.json"
	loginField      = "claudeAiOauth" // in credentialsFile
	inferenceScope  = "user:inference"
	// expiryMargin is how long before its expiry the CLI refreshes a login.
	expiryMargin = 5 * time.Minute
)

// Locks of the CLI in its credentials directory. A lock is a directory that is
// created and removed. A lock that is older than its limit belongs to a dead process.
const (
	refreshLock      = ".oauth_refresh.lock" // and DIRECTORY.lock next to the directory
	refreshLockStale = time.Minute
	writeLock        = ".storage-write.lock"
	writeLockStale   = 15 * time.Second
)

// otherModes lists variables that make the CLI use another API or another login method.
var otherModes = []string{
	"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY", "CLAUDE_CODE_USE_MANTLE",
	"CLAUDE_CODE_USE_ANTHROPIC_AWS", "CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD", "CLAUDE_CODE_USE_GATEWAY",
	"ANTHROPIC_UNIX_SOCKET", "ANTHROPIC_PROFILE", "ANTHROPIC_FEDERATION_RULE_ID",
	"CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR", "CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR",
	"CLAUDE_CODE_CLIENT_CERT", "CLAUDE_CODE_CUSTOM_OAUTH_URL",
}

// routes matches the requests of the CLI below ANTHROPIC_BASE_URL.
var routes = map[string]*lazyregexp.Regexp{
	http.MethodHead: lazyregexp.New(`^/$`),
	http.MethodGet:  lazyregexp.New(`^/v1/models(/[A-Za-z0-9][A-Za-z0-9._-]*)?$`),
	http.MethodPost: lazyregexp.New(`^/v1/messages(/count_tokens)?$`),
}

// secretName matches variables of the CLI that hold a credential, point to one,
// or redirect its requests. A variable that ends with TOKENS is a number.
var secretName = lazyregexp.New(`^(ANTHROPIC|CLAUDE)_(.*_)?(` +
	`KEY|TOKEN|SECRET|AUTH|HEADERS|PASSPHRASE|CREDENTIALS?|IDENTITY|PROFILE|DESCRIPTOR|SOCKET|CERT|BASE_URL|OAUTH|FEDERATION` +
	`)(_.*)?$`)

// Login is the user's account of a model API.
type Login struct {
	kind      string
	file      string // of a login; empty if the credential is from variables
	config    string // of the CLI; see configFile
	upstream  *url.URL
	source    source
	further   *extraHeaders
	transport *http.Transport
	variables map[string]string // for the CLI; the placeholder replaces placeholderValue
	reports   *reports
}

// extraHeaders holds the user's own headers, which may contain credentials.
type extraHeaders struct{ header http.Header }

// placeholderValue marks the placeholder in Login.variables.
const placeholderValue = "\x00"

// Find finds the user's credential for the Anthropic API in the same order as the CLI:
// ANTHROPIC_AUTH_TOKEN, ANTHROPIC_API_KEY, CLAUDE_CODE_OAUTH_TOKEN, and the login
// file. getenv reads the user's environment; home is the user's home directory.
// It returns ErrNoLogin if there is none, and ErrNotForwarded for other login methods.
func Find(getenv func(string) string, home string) (*Login, error) {
	if err := otherMode(getenv); err != nil {
		return nil, err
	}
	upstream, err := apiURL(getenv("ANTHROPIC_BASE_URL"))
	if err != nil {
		return nil, err
	}
	header, err := customHeaders(getenv("ANTHROPIC_CUSTOM_HEADERS"))
	if err != nil {
		return nil, err
	}
	l := &Login{
		upstream: upstream, further: &extraHeaders{header}, reports: &reports{},
		transport: newTransport(getenv("NODE_EXTRA_CA_CERTS")), variables: map[string]string{},
	}
	noProxy := withoutProxy(getenv("NO_PROXY"), getenv("no_proxy"))
	l.variables["NO_PROXY"], l.variables["no_proxy"] = noProxy, noProxy
	if l.fromVariables(getenv) {
		return l, nil
	}
	if err := l.fromFile(getenv, home); err != nil {
		return nil, err
	}
	return l, nil
}

// withoutProxy adds loopback to the user's lists of hosts that need no proxy. The CLI
// sends even requests to loopback through HTTP_PROXY, unless the address is listed.
func withoutProxy(lists ...string) string {
	var hosts []string
	for _, host := range strings.Split(strings.Join(append(lists, "127.0.0.1"), ","), ",") {
		if host = strings.TrimSpace(host); host != "" && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	if slices.Contains(hosts, "*") {
		return "*"
	}
	return strings.Join(hosts, ",")
}

func otherMode(getenv func(string) string) error {
	for _, name := range otherModes {
		switch strings.ToLower(getenv(name)) {
		case "", "0", "false", "no", "off":
		default:
			return fmt.Errorf("%w: %s is set", ErrNotForwarded, name)
		}
	}
	return nil
}

// fromVariables reads the credential from the environment and reports whether it has one.
func (l *Login) fromVariables(getenv func(string) string) bool {
	token, key, oauth := getenv("ANTHROPIC_AUTH_TOKEN"), getenv("ANTHROPIC_API_KEY"), getenv("CLAUDE_CODE_OAUTH_TOKEN")
	switch {
	case token != "": // the CLI sends a key in addition
		l.kind, l.source = "ANTHROPIC_AUTH_TOKEN", &fixed{credential{key: key, bearer: token}}
		if key != "" {
			l.variables["ANTHROPIC_API_KEY"] = placeholderValue
		}
	case key != "":
		l.kind, l.source = "ANTHROPIC_API_KEY", &fixed{credential{key: key}}
	case oauth != "":
		l.kind, l.source = "CLAUDE_CODE_OAUTH_TOKEN", &fixed{credential{bearer: oauth}}
		l.plan(getenv("CLAUDE_CODE_SUBSCRIPTION_TYPE"), getenv("CLAUDE_CODE_RATE_LIMIT_TIER"))
	default:
		return false
	}
	l.variables[l.kind] = placeholderValue
	return true
}

// fromFile reads the login of `claude auth login`.
func (l *Login) fromFile(getenv func(string) string, home string) error {
	dir := credentialsDir(getenv, home)
	l.kind, l.file, l.config = "claude.ai login", filepath.Join(dir, credentialsFile), configFile(getenv, home)
	client := cmp.Or(getenv("CLAUDE_CODE_OAUTH_CLIENT_ID"), clientID)
	login := newOAuth(dir, client, l.transport, l.reports)
	saved, err := login.read()
	switch {
	case err == nil:
	case !errors.Is(err, ErrNoLogin):
		return err
	case helperConfigured(dir):
		return fmt.Errorf("%w: apiKeyHelper in %s", ErrNotForwarded, filepath.Join(dir, "settings.json"))
	case inKeychain:
		return fmt.Errorf("%w: a login may be in the macOS keychain, which coven does not read", ErrNotForwarded)
	default:
		return err
	}
	l.source = login
	l.variables["CLAUDE_CODE_OAUTH_TOKEN"] = placeholderValue
	l.plan(saved.SubscriptionType, saved.RateLimitTier)
	return nil
}

// plan passes on the subscription type and tier, which determine the CLI's default model.
func (l *Login) plan(subscription, tier string) {
	for name, value := range map[string]string{"CLAUDE_CODE_SUBSCRIPTION_TYPE": subscription, "CLAUDE_CODE_RATE_LIMIT_TIER": tier} {
		if value != "" {
			l.variables[name] = value
		}
	}
}

// credentialsDir returns the CLI's credentials directory.
func credentialsDir(getenv func(string) string, home string) string {
	for _, name := range []string{"CLAUDE_SECURESTORAGE_CONFIG_DIR", "CLAUDE_CONFIG_DIR"} {
		if dir := getenv(name); dir != "" {
			return dir
		}
	}
	return filepath.Join(home, ".claude")
}

// maxSettings limits the user's settings and certificates, in bytes.
const maxSettings = 16 << 20

// helperConfigured reports whether the user's settings configure a program that prints a key.
func helperConfigured(dir string) bool {
	var settings struct {
		Helper string `json:"apiKeyHelper"`
	}
	raw, err := regularfile.Read(filepath.Join(dir, "settings.json"), maxSettings)
	return err == nil && json.Unmarshal(raw, &settings) == nil && settings.Helper != ""
}

// apiURL parses ANTHROPIC_BASE_URL.
func apiURL(base string) (*url.URL, error) {
	base = cmp.Or(base, defaultAPI)
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, errors.New("ANTHROPIC_BASE_URL is not an http or https URL")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("ANTHROPIC_BASE_URL must have no user, query or fragment")
	}
	return u.JoinPath("/"), nil
}

// customHeaders parses ANTHROPIC_CUSTOM_HEADERS: lines of "Name: value".
func customHeaders(lines string) (http.Header, error) {
	header := http.Header{}
	scanner := bufio.NewScanner(strings.NewReader(lines))
	for n := 1; scanner.Scan(); n++ {
		line := strings.TrimSpace(scanner.Text())
		if line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || strings.TrimSpace(name) == "" {
			return nil, fmt.Errorf("ANTHROPIC_CUSTOM_HEADERS, line %d: not of the form Name: value", n)
		}
		header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("ANTHROPIC_CUSTOM_HEADERS: %w", err)
	}
	return header, nil
}

// newTransport returns the transport to the API. Like the CLI, it uses the proxy of the
// environment, and ignores extra certificates that cannot be read.
func newTransport(extraCerts string) *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableCompression = true // responses are passed on unchanged
	t.MaxIdleConnsPerHost = 8
	if extraCerts == "" {
		return t
	}
	pem, err := regularfile.Read(extraCerts, maxSettings)
	if err != nil {
		return t
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	roots.AppendCertsFromPEM(pem)
	t.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	return t
}

// env returns the variables of the CLI.
func (l *Login) env(url, placeholder string) []string {
	env := []string{"ANTHROPIC_BASE_URL=" + url}
	for name, value := range l.variables {
		if value == placeholderValue {
			value = placeholder
		}
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env
}

// allows reports whether an agent may make a request.
func (l *Login) allows(r *http.Request) bool {
	route := routes[r.Method]
	return route != nil && r.URL.RawPath == "" && route.MatchString(r.URL.Path)
}

// Withholds reports whether an agent must not get a variable of the user's environment.
func (l *Login) Withholds(name string) bool { return secretName.MatchString(name) }

// Kind returns the source of the credential: the name of a variable, or "claude.ai login".
func (l *Login) Kind() string { return l.kind }

// File returns the path of the login file, which agents must not be able to
// read. It is empty if the credential is from a variable. The file is replaced when the login
// is refreshed, so its directory must be hidden: a mount that hides only the file
// would vanish with it.
func (l *Login) File() string { return l.file }

// String keeps the credential out of logs.
func (l *Login) String() string { return l.kind }

// GoString is like String.
func (l *Login) GoString() string { return l.kind }
