package worktree

import (
	"strings"
	"testing"

	"github.com/coven-run/coven/worktree/remote"
)

// The URL of a remote is the one to which git pushes, without a password.
func TestAddress(t *testing.T) {
	for name, settings := range map[string][]string{
		"url":         {"remote.up.url=https://p:x@host/a.git"},
		"push":        {"remote.up.url=/else", "remote.up.pushurl=https://host/a.git"},
		"rewritten":   {"remote.up.url=short:a.git", "url.https://host/.insteadOf=short:"},
		"to push":     {"remote.up.url=git://host/a.git", "url.https://host/.pushInsteadOf=git://host/"},
		"another one": {"remote.up.url=https://host/a.git", "url./else.insteadOf=none:"},
		"of several":  {"remote.up.url=https://host/a.git", "remote.up.url=/else"},
	} {
		t.Run(name, func(t *testing.T) {
			r := sample(t)
			for _, one := range settings {
				key, value, _ := strings.Cut(one, "=")
				gitIn(t, r.Root, "config", "--add", key, value)
			}
			equal(t, "address", value[string](t)(remote.Address(t.Context(), r, "up")), "https://host/a.git")
		})
	}
	_, err := remote.Address(t.Context(), sample(t), "up")
	equal(t, "without", err != nil, true)
}

func TestRemote(t *testing.T) {
	for name, test := range map[string]struct {
		config [][]string
		want   string
	}{
		"none":       {nil, ""},
		"only":       {[][]string{{"remote.up.url", "x"}}, "up"},
		"origin":     {[][]string{{"remote.up.url", "x"}, {"remote.origin.url", "x"}}, "origin"},
		"upstream":   {[][]string{{"remote.up.url", "x"}, {"remote.origin.url", "x"}, {"branch.main.remote", "up"}}, "up"},
		"of another": {[][]string{{"remote.up.url", "x"}, {"remote.origin.url", "x"}, {"branch.other.remote", "up"}}, "origin"},
		"gone":       {[][]string{{"remote.up.url", "x"}, {"branch.main.remote", "gone"}}, "up"},
		"itself":     {[][]string{{"branch.main.remote", "."}}, ""},
		"several":    {[][]string{{"remote.a.url", "x"}, {"remote.b.url", "x"}}, ""},
		"with a dot": {[][]string{{"remote.my.fork.url", "x"}}, "my.fork"},
	} {
		t.Run(name, func(t *testing.T) {
			r := sample(t)
			for _, setting := range test.config {
				gitIn(t, r.Root, "config", setting[0], setting[1])
			}
			if got, err := remote.Of(t.Context(), r, "main"); err != nil || got != test.want {
				t.Errorf("%q, %v; want %q", got, err, test.want)
			}
		})
	}
}
