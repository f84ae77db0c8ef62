package driver

import "strings"

// inherited lists the variables that every child inherits from the user's environment.
// Programs need them to run, and none holds a credential. A trailing * matches any suffix.
var inherited = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TERM", "COLORTERM",
	"TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
	"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
	"GOPATH", "GOCACHE", "GOMODCACHE", "GOPROXY", "GOFLAGS", "CARGO_HOME", "RUSTUP_HOME", "JAVA_HOME", "NVM_DIR", "PYENV_ROOT",
}

// Environment returns the variables of the user's environment that a child inherits: the
// default ones and those named in pass.
func Environment(user, pass []string) []string {
	env := []string{"GIT_TERMINAL_PROMPT=0"}
	for _, kv := range user {
		name, _, _ := strings.Cut(kv, "=")
		if matches(inherited, name) || matches(pass, name) {
			env = append(env, kv)
		}
	}
	return env
}

// Names reports whether a list of names contains name. A trailing * in the list
// matches any suffix.
func Names(list []string, name string) bool { return matches(list, name) }

func matches(names []string, name string) bool {
	for _, n := range names {
		if prefix, open := strings.CutSuffix(n, "*"); n == name || open && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
