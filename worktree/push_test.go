package worktree

import (
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/worktree/remote"
)

// bareRemote gives a repository an empty remote named name, and returns its directory.
func bareRemote(t *testing.T, root, name string, args ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a remote's copy.git")
	gitIn(t, root, append(append([]string{"init", "-q", "--bare"}, args...), dir)...)
	gitIn(t, root, "config", "remote."+name+".url", dir)
	return dir
}

// A push moves one branch, also of a SHA-256 repository and of remotes with unusual names, and runs no hooks.
func TestPush(t *testing.T) {
	for _, name := range []string{"origin", "a/b", "up.stream", "-x", "--upload-pack=touch x"} {
		for _, format := range []string{"sha1", "sha256"} {
			r := sample(t, "--object-format="+format)
			dir := bareRemote(t, r.Root, name, "--object-format="+format)
			write(t, filepath.Join(r.GitDir, "hooks", "pre-push"), "#!/bin/sh\nexit 1\n")
			tip := gitIn(t, r.Root, "rev-parse", "HEAD")
			err := remote.Push(t.Context(), r, name, "coven/t", tip, nil, time.Minute)
			if strings.HasPrefix(name, "-") && err != nil && !strings.Contains(err.Error(), "touch") {
				continue // git does not permit all names
			}
			if err != nil || gitIn(t, dir, "for-each-ref", "--format=%(refname) %(objectname)") != "refs/heads/coven/t "+tip {
				t.Errorf("%s, %s: %v", name, format, err)
			}
			gitIn(t, r.Root, "commit", "-q", "--amend", "--allow-empty", "-m", "rewritten")
			rewritten := gitIn(t, r.Root, "rev-parse", "HEAD")
			occupied := (*remote.OccupiedError)(nil)
			if err := remote.Push(t.Context(), r, name, "coven/t", rewritten, nil, time.Minute); !errors.As(err, &occupied) {
				t.Errorf("%s, %s: %v", name, format, err)
			}
			if err := remote.Push(t.Context(), r, name, "coven/t", rewritten, []string{tip}, time.Minute); err != nil {
				t.Errorf("%s, %s: %v", name, format, err)
			}
		}
	}
}

// The contents of Git LFS reach the remote before the branch that names them.
func TestPushLFS(t *testing.T) {
	if err := exec.Command("git", "lfs", "version").Run(); err != nil {
		t.Skip("there is no Git LFS")
	}
	r := sample(t)
	dir := bareRemote(t, r.Root, "origin")
	gitIn(t, r.Root, "lfs", "install", "--local")
	gitIn(t, r.Root, "lfs", "track", "*.bin")
	write(t, filepath.Join(r.Root, "a.bin"), "content")
	gitIn(t, r.Root, "add", "-A")
	gitIn(t, r.Root, "commit", "-q", "-m", "large")
	if err := remote.Push(t.Context(), r, "origin", "coven/t", gitIn(t, r.Root, "rev-parse", "HEAD"), nil, time.Minute); err != nil {
		t.Fatal(err)
	}
	if found, err := filepath.Glob(filepath.Join(dir, "lfs", "objects", "??", "??", "*")); err != nil || len(found) != 1 {
		t.Errorf("the remote has %q, %v", found, err)
	}
}

// A push returns in time, with the reason, and without the password in the URL of the remote.
func TestPushFails(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close() //nolint:errcheck // nothing is sent
	address := silent.Addr().String()
	for url, limit := range map[string]time.Duration{
		"http://user:sekrit@" + address + "/o/r.git": 50 * time.Millisecond,
		"http://user:sekrit@127.0.0.1:1/o/r.git":     time.Minute,
		"https://sekrit@127.0.0.1:1/o/r.git":         time.Minute,
		"ssh://user:sekrit@127.0.0.1:1/o/r.git":      time.Minute,
		"nosuch://user:sekrit@host/o/r.git":          time.Minute,
		"ext::sh -c 'echo sekrit >&2'":               time.Minute,
	} {
		r := sample(t)
		gitIn(t, r.Root, "config", "remote.origin.url", url)
		gitIn(t, r.Root, "config", "core.sshCommand", "echo >&2 no key; false")
		err := remote.Push(t.Context(), r, "origin", "coven/t", gitIn(t, r.Root, "rev-parse", "HEAD"), nil, limit)
		if failed := (*remote.PushError)(nil); !errors.As(err, &failed) || strings.Contains(err.Error(), "sekrit") {
			t.Errorf("%s: %v", url, err)
		}
		host, path, err := remote.LocationOf(t.Context(), r, "origin")
		if strings.Contains(host+path, "sekrit") {
			t.Errorf("%s: %s, %s, %v", url, host, path, err)
		}
	}
}

// A commit can be fetched although no branch has it any more. No ref moves.
func TestFetchCommit(t *testing.T) {
	r, origin := sample(t), sample(t)
	gitIn(t, r.Root, "config", "remote.origin.url", origin.Root)
	gitIn(t, origin.Root, "commit", "-q", "--allow-empty", "-m", "gone")
	gone := gitIn(t, origin.Root, "rev-parse", "HEAD")
	gitIn(t, origin.Root, "reset", "-q", "--hard", "HEAD^")
	before := userRefsOf(r, t)
	if err := remote.FetchCommit(t.Context(), r, "origin", gone, time.Minute); err != nil || gitIn(t, r.Root, "cat-file", "-t", gone) != "commit" || userRefsOf(r, t) != before {
		t.Errorf("%v", err)
	}
	for _, wrong := range []string{"", "--upload-pack=x", strings.Repeat("1", 40)} {
		if err := remote.FetchCommit(t.Context(), r, "origin", wrong, time.Minute); err == nil {
			t.Errorf("%q was fetched", wrong)
		}
	}
}

// A branch is pushed without the history, although the only branch of the remote has just moved.
func TestPushBranchIsSmall(t *testing.T) {
	one, two, dir, _ := machines(t, "sha1")
	gitIn(t, dir, "config", "receive.unpackLimit", "1") // a pack for each push
	for range 50 {
		gitIn(t, one.Root, "commit", "-q", "--allow-empty", "-m", "earlier")
	}
	gitIn(t, one.Root, "push", "-q", "origin", "HEAD:main")
	gitIn(t, two.Root, "pull", "-q", "--ff-only")
	gitIn(t, two.Root, "commit", "-q", "--allow-empty", "-m", "of another")
	gitIn(t, two.Root, "push", "-q", "origin", "HEAD:main")
	before := gitIn(t, dir, "count-objects", "-v")
	gitIn(t, one.Root, "commit", "-q", "--allow-empty", "-m", "of this one")
	must(t, remote.Push(t.Context(), one, "origin", "change", gitIn(t, one.Root, "rev-parse", "HEAD"), nil, time.Minute))
	if after := gitIn(t, dir, "count-objects", "-v"); packed(t, after)-packed(t, before) != 1 {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// packed returns the number of objects in packs, from the output of git count-objects.
func packed(t *testing.T, text string) (n int) {
	t.Helper()
	_, rest, _ := strings.Cut(text, "in-pack: ")
	_, err := fmt.Sscan(rest, &n)
	must(t, err)
	return n
}
