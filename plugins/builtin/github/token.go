package github

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// loginVariable is the prefix of the variables that hold the tokens of gh's logins, by host. Their names contain TOKEN, so that
// coven hides their values.
const loginVariable = "COVEN_TOKEN_"

// variables returns the user's variables with a token for a host, in the order in which gh reads them.
func variables(host string) []string {
	if host = strings.ToLower(host); isCloud(host) || strings.HasSuffix(host, ".localhost") {
		return []string{"GH_TOKEN", "GITHUB_TOKEN"}
	}
	return []string{"GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN"}
}

// tokenFor returns the token for a host, or "".
func tokenFor(host string, getenv func(string) string) string {
	for _, name := range append(variables(host), loginVariable+strings.ToLower(host)) {
		if token := strings.TrimSpace(getenv(name)); token != "" {
			return token
		}
	}
	return ""
}

// ghTimeout is the time limit for gh, which may ask a keyring.
const ghTimeout = 10 * time.Second

// Credentials returns the variables with the user's tokens for the plugin, as KEY=VALUE: those of the user's environment, and
// the tokens of gh's logins. The plugin cannot ask gh: its sandbox hides the files of gh and the keyring.
func Credentials(ctx context.Context, user []string) []string {
	var env []string
	lookup := map[string]string{}
	for _, kv := range user {
		name, value, _ := strings.Cut(kv, "=")
		lookup[name] = value
		if slices.Contains(append(variables("github.com"), variables("other")...), name) && strings.TrimSpace(value) != "" {
			env = append(env, kv)
		}
	}
	getenv := func(name string) string { return lookup[name] }
	for _, host := range logins(getenv) {
		if tokenFor(host, getenv) != "" {
			continue // gh prefers it, too
		}
		if token := ghToken(ctx, host, user); token != "" {
			env = append(env, loginVariable+host+"="+token)
		}
	}
	return env
}

// maxHosts is the number of hosts of which gh is asked, and maxHostsFile the largest size of its file in bytes.
const (
	maxHosts     = 10
	maxHostsFile = 1 << 20
)

// logins returns the hosts to which the user has logged in with gh, in lower case. gh lists them in this file even if it stores the tokens in
// a keyring.
func logins(getenv func(string) string) []string {
	dir := getenv("GH_CONFIG_DIR")
	if dir == "" && getenv("XDG_CONFIG_HOME") != "" {
		dir = filepath.Join(getenv("XDG_CONFIG_HOME"), "gh")
	}
	if dir == "" && getenv("HOME") != "" {
		dir = filepath.Join(getenv("HOME"), ".config", "gh")
	}
	if !filepath.IsAbs(dir) {
		return nil
	}
	file := filepath.Join(dir, "hosts.yml")
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxHostsFile {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	var hosts map[string]any
	if yaml.Unmarshal(text, &hosts) != nil {
		return nil
	}
	var names []string
	for name := range hosts {
		if name != "" && !strings.ContainsAny(name, "= \n\x00") && !strings.HasPrefix(name, "-") {
			names = append(names, strings.ToLower(name))
		}
	}
	slices.Sort(names)
	return names[:min(len(names), maxHosts)]
}

// ghToken returns the token that gh has stored for a host, or "".
func ghToken(ctx context.Context, host string, user []string) string {
	ctx, cancel := context.WithTimeout(ctx, ghTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "gh", "auth", "token", "--hostname", host)
	cmd.Env, cmd.WaitDelay = user, time.Second
	out, err := cmd.Output()
	token := strings.TrimSpace(string(bytes.TrimRight(out, "\n")))
	if err != nil || strings.ContainsAny(token, " \n\x00") {
		return ""
	}
	return token
}

// Login returns the command that logs in to a host.
func Login(host string) string { return fmt.Sprintf("gh auth login --hostname %s", host) }
