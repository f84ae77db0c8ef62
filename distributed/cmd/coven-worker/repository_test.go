package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// fakeSSH is an SSH client that knows the host shop-key as git.example.com, and github.com as ssh.github.com.
func fakeSSH(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	script := "#!/bin/sh\n[ \"$1 $2\" = '-G --' ] || exit 1\ncase $3 in shop-key) h=git.example.com;; github.com) h=ssh.github.com;; *) h=$3;; esac\nprintf 'user git\\nhostname %s\\nport 22\\n' \"$h\"\n"
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte(script), 0o700); err != nil { //nolint:gosec // it is executed
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func TestName(t *testing.T) {
	fakeSSH(t)
	for want, addresses := range map[string][]string{
		"git.example.com/acme/shop.git": {
			"https://git.example.com/acme/shop.git", "https://git.example.com/acme/shop", "https://git.example.com:8443/acme/shop.git/", "http://ann:secret@GIT.example.com/acme//shop.git",
			"ssh://git@git.example.com:2222/acme/shop", "git+ssh://git.example.com/acme/shop.git", "git://git.example.com:9418/acme/shop.git", "git@git.example.com:acme/shop.git",
			"git@git.example.com:/acme/shop/", "git.example.com:acme/shop", "shop-key:acme/shop.git", "ssh://ann@shop-key/acme/shop.git", "https://git.example.com/scm/acme/shop.git",
			"git@ssh.git.example.com:acme/shop.git", "ssh://git@altssh.git.example.com:443/acme/shop.git",
		},
		"github.com/acme/shop.git":            {"https://github.com/acme/shop", "git@github.com:acme/shop.git", "ssh://git@ssh.github.com:443/acme/shop.git"},
		"git.example.com/a/x/shop.git":        {"https://git.example.com/a/x/shop.git", "git@git.example.com:a/x/shop"},
		"git.example.com/b/x/shop.git":        {"https://git.example.com/b/x/shop.git", "git@git.example.com:b/x/shop"},
		"git.example.com/b/x/shop/sub.git":    {"https://git.example.com/b/x/shop/sub.git"},
		"git.example.com/shop.git":            {"git@git.example.com:shop"},
		"git.example.com/~ann/shop.git":       {"ssh://git.example.com/~ann/shop.git", "git.example.com:~ann/shop.git"},
		"git.example.com/größe/ein laden.git": {"https://git.example.com/gr%C3%B6%C3%9Fe/ein%20laden.git", "git@git.example.com:größe/ein laden.git"},
		"::1/acme/shop.git":                   {"https://[::1]:8443/acme/shop.git"},
		"srv/git/acme/shop.git":               {"/srv/git/acme/shop.git", "file:///srv/git/acme/shop.git/", "/srv/git/acme/shop/.git", "../git/acme/shop.git", "file:///srv/git/acme/shop"},
		"srv/git/a:b/shop.git":                {"/srv/git/a:b/shop.git", "../git/a:b/shop.git"},
	} {
		for _, address := range addresses {
			if got := nameAt(t.Context(), "/srv/clone", address); got != want {
				t.Errorf("%s is called %s, not %s", address, got, want)
			}
		}
	}
}

// TestGivenName takes the name from the configuration of the clone.
func TestGivenName(t *testing.T) {
	t.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	dir := t.TempDir()
	for _, args := range [][]string{{"init", "-q"}, {"remote", "add", "origin", "https://10.0.0.5/acme/shop.git"}, {"config", nameKey, "git.example.com/acme/shop.git"}} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		if cmd.Dir = dir; cmd.Run() != nil {
			t.Fatal(args)
		}
	}
	got, err := repository(t.Context(), dir, "origin")
	if err != nil || got != "git.example.com/acme/shop.git" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := repository(t.Context(), dir, "upstream"); err == nil {
		t.Error("there is a remote upstream")
	}
	if _, err := repository(t.Context(), dir, "--push"); exitCode(err) != 2 {
		t.Errorf("--push: %v", err)
	}
}
