package github

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coven-run/coven/plugins/forge"
)

func TestTokenFor(t *testing.T) {
	env := map[string]string{"GITHUB_TOKEN": "cloud", "GH_ENTERPRISE_TOKEN": "own", "COVEN_TOKEN_other.example.com": "login"}
	getenv := func(name string) string { return env[name] }
	for host, want := range map[string]string{"github.com": "cloud", "GitHub.com": "cloud", "x.ghe.com": "cloud", "git.example.com": "own", "notgithub.com": "own", "github.com.evil.example": "own"} {
		if got := tokenFor(host, getenv); got != want {
			t.Errorf("%s: %q, want %q", host, got, want)
		}
	}
	delete(env, "GH_ENTERPRISE_TOKEN")
	for host, want := range map[string]string{"other.example.com": "login", "Other.example.com": "login", "git.example.com": ""} {
		if got := tokenFor(host, getenv); got != want {
			t.Errorf("%s: %q, want %q", host, got, want)
		}
	}
}

// The tokens of gh's logins are passed by host, unless the environment has a token.
func TestCredentials(t *testing.T) {
	home, bin := t.TempDir(), t.TempDir()
	config := filepath.Join(home, ".config", "gh")
	script := "#!/bin/sh\n[ \"$1 $2 $3\" = 'auth token --hostname' ] || exit 1\n[ \"$4\" != broken.example.com ] || exit 1\necho \"gho_$4\"\n"
	hosts := "github.com:\n    user: ann\nGit.example.com:\n    user: ann\nbroken.example.com: {}\n"
	for path, text := range map[string]string{filepath.Join(config, "hosts.yml"): hosts, filepath.Join(bin, "gh"): script} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin)
	user := []string{"HOME=" + home, "PATH=" + bin, "SECRET=x"}
	want := []string{"COVEN_TOKEN_git.example.com=gho_git.example.com", "COVEN_TOKEN_github.com=gho_github.com"}
	if got := Credentials(t.Context(), user); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	want = []string{"GH_TOKEN=t", "COVEN_TOKEN_git.example.com=gho_git.example.com"}
	if got := Credentials(t.Context(), append(user, "GH_TOKEN=t")); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := Credentials(t.Context(), []string{"HOME=" + t.TempDir()}); len(got) > 0 {
		t.Errorf("without a login: %q", got)
	}
}

// The token is sent only to the host's own API.
func TestAddresses(t *testing.T) {
	f := Forge{Getenv: func(string) string { return "t" }}
	for _, c := range []struct{ host, api, rest, graphQL string }{
		{"github.com", "", "https://api.github.com", "https://api.github.com/graphql"},
		{"x.ghe.com", "", "https://api.x.ghe.com", "https://api.x.ghe.com/graphql"},
		{"git.example.com", "", "https://git.example.com/api/v3", "https://git.example.com/api/graphql"},
		{"git.example.com", "https://git.example.com/api/v3/", "https://git.example.com/api/v3", "https://git.example.com/api/graphql"},
		{"127.0.0.1:1", "http://127.0.0.1:1/api/v3", "http://127.0.0.1:1/api/v3", "http://127.0.0.1:1/api/graphql"},
		{"github.com", "https://evil.example", "", ""},
		{"github.com", "https://github.com.evil.example", "", ""},
		{"github.com", "http://api.github.com", "", ""},
		{"github.com", "http://127.0.0.1:1", "", ""},
		{"github.com", "https://u:p@api.github.com", "", ""},
		{"evil.example/github.com", "", "", ""},
		{"", "", "", ""},
	} {
		r, err := f.open(forge.Repository{Host: c.host, API: c.api, Path: "o/r"})
		if c.rest == "" {
			if err == nil {
				t.Errorf("%s %s: the API is %s", c.host, c.api, r.Base)
			}
		} else if err != nil || r.Base.String() != c.rest || r.graphQL != c.graphQL {
			t.Errorf("%s %s: %v %v", c.host, c.api, r, err)
		}
	}
	for _, path := range []string{"", "o", "o/r/x", "o/r?x", "/r", "o/"} {
		if _, err := f.open(forge.Repository{Host: "github.com", Path: path}); err == nil || strings.Contains(err.Error(), "token") {
			t.Errorf("path %q: %v", path, err)
		}
	}
}
