package worktree

import (
	"errors"
	"maps"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/remote"
)

// A fetch moves the remote-tracking branch and nothing else.
func TestFetchUpstream(t *testing.T) {
	r, origin := sample(t), sample(t)
	gitIn(t, r.Root, "remote", "add", "origin", origin.Root)
	gitIn(t, r.Root, "config", "remote.origin.tagOpt", "--tags")
	gitIn(t, r.Root, "config", "fetch.prune", "true")
	gitIn(t, r.Root, "update-ref", "refs/remotes/origin/gone", "HEAD")
	gitIn(t, origin.Root, "commit", "-q", "--allow-empty", "-m", "newer")
	gitIn(t, origin.Root, "tag", "v1")
	gitIn(t, origin.Root, "branch", "other")
	before := userRefsOf(r, t)
	for range 2 {
		up, err := remote.FetchUpstream(t.Context(), r, "main", time.Minute)
		if err != nil || up.Name != "origin/main" || up.Tip != gitIn(t, origin.Root, "rev-parse", "HEAD") {
			t.Fatalf("%+v, %v", up, err)
		}
		if got, want := userRefsOf(r, t), before+"\n"+up.Tip+" refs/remotes/origin/main"; sorted(got) != sorted(want) {
			t.Errorf("the refs are\n%s\nwant\n%s", got, want)
		}
		if file.Exists(filepath.Join(r.GitDir, "FETCH_HEAD")) {
			t.Error("FETCH_HEAD was written")
		}
	}
	// Rewritten history also moves it.
	gitIn(t, origin.Root, "reset", "-q", "--hard", "HEAD^")
	gitIn(t, origin.Root, "commit", "-q", "--allow-empty", "-m", "rewritten")
	up, err := remote.FetchUpstream(t.Context(), r, "main", time.Minute)
	if err != nil || up.Tip != gitIn(t, r.Root, "rev-parse", "origin/main") || up.Tip != gitIn(t, origin.Root, "rev-parse", "HEAD") {
		t.Errorf("%+v, %v", up, err)
	}
}

func userRefsOf(r *repo.Repo, t *testing.T) string {
	t.Helper()
	return gitIn(t, r.Root, "for-each-ref", "--format=%(objectname) %(refname)")
}

func sorted(lines string) string {
	all := strings.Split(lines, "\n")
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// FetchUpstream returns an error in time for a remote that does not answer, asks for a password, or lacks
// the branch.
func TestFetchUpstreamFails(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close() //nolint:errcheck // nothing is sent
	ask := filepath.Join(t.TempDir(), "ask")
	if err := os.WriteFile(ask, []byte("#!/bin/sh\necho \"$@\" >"+ask+".asked\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GIT_ASKPASS", "")
	t.Setenv("SSH_ASKPASS", ask)
	for url, want := range map[string]string{
		"http://" + silent.Addr().String() + "/x": "it took longer than 50ms",
		t.TempDir():        "does not appear to be a git repository",
		"":                 "there is no remote for it",
		sample(t).Root:     "origin has no branch nowhere",
		"git@127.0.0.1:/x": "",
	} {
		r := sample(t)
		gitIn(t, r.Root, "config", "core.sshCommand", "echo >&2 no key; false")
		gitIn(t, r.Root, "config", "branch.main.remote", "origin")
		gitIn(t, r.Root, "config", "branch.main.merge", "refs/heads/nowhere")
		limit := time.Minute
		if url != "" {
			gitIn(t, r.Root, "remote", "add", "origin", url)
		}
		if strings.HasPrefix(want, "it took") {
			limit = 50 * time.Millisecond
		}
		_, err := remote.FetchUpstream(t.Context(), r, "main", limit)
		if failed := (*remote.FetchError)(nil); !errors.As(err, &failed) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", url, err)
		}
		if file.Exists(ask + ".asked") {
			t.Errorf("%s: somebody was asked", url)
		}
	}
}

// The user's programs in GIT_ASKPASS and GIT_SSH, and the settings in GIT_CONFIG_COUNT, are used for the upstream.
func TestFetchUpstreamUsesVariables(t *testing.T) {
	origin := sample(t)
	backend := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(output(t, "git", "--exec-path")), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + filepath.Dir(origin.Root), "GIT_HTTP_EXPORT_ALL=1"},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if user, password, _ := req.BasicAuth(); user != "secret" || password != "secret" {
			w.Header().Set("WWW-Authenticate", "Basic")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, req)
	}))
	defer server.Close()
	dir := t.TempDir()
	script := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		url string
		env map[string]string
	}{
		{server.URL + "/" + filepath.Base(origin.Root), map[string]string{"GIT_ASKPASS": script("ask", "echo secret")}},
		{"ssh://127.0.0.1:1" + origin.Root, map[string]string{"GIT_SSH": script("ssh", `while [ "$1" != 127.0.0.1 ]; do shift; done; shift; exec sh -c "$*"`)}},
		{"short:" + filepath.Base(origin.Root), map[string]string{
			"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "url." + filepath.Dir(origin.Root) + "/.insteadOf", "GIT_CONFIG_VALUE_0": "short:",
		}},
	} {
		t.Run(strings.Join(slices.Sorted(maps.Keys(c.env)), ","), func(t *testing.T) {
			r := sample(t)
			gitIn(t, r.Root, "remote", "add", "origin", c.url)
			if _, err := remote.FetchUpstream(t.Context(), r, "main", time.Minute); err == nil {
				t.Error("it can be fetched without the variable")
			}
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			if up, err := remote.FetchUpstream(t.Context(), r, "main", time.Minute); err != nil || up.Tip != gitIn(t, origin.Root, "rev-parse", "main") {
				t.Errorf("%+v, %v", up, err)
			}
		})
	}
}

// output returns the output of a program.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
