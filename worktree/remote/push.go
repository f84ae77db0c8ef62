package remote

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// An OccupiedError means that the branch of a remote has commits that coven did not push.
type OccupiedError struct{ Remote, Branch, Tip string }

func (e *OccupiedError) Error() string {
	return fmt.Sprintf("branch %s of %s has commits that coven did not push (%.10s)", e.Branch, e.Remote, e.Tip)
}

// NextCommand returns the git command that shows them.
func (e *OccupiedError) NextCommand() string { return "git fetch " + e.Remote }

// A PushError means that a branch could not be pushed.
type PushError struct {
	Remote, Branch string // Branch may also be a ref: refs/coven/x
	Denied         bool   // the remote refused it
	Err            error
}

func (e *PushError) Error() string {
	what := e.Branch
	if !strings.HasPrefix(what, "refs/") {
		what = "branch " + what
	}
	return fmt.Sprintf("%s was not pushed to %s: %s", what, e.Remote, reason(e.Err))
}

func (e *PushError) Unwrap() error { return e.Err }

// NextCommand returns the git command that shows the reason.
func (e *PushError) NextCommand() string { return "git push " + e.Remote + " " + e.Branch }

// reason returns the line of git's output that says why a push failed.
func reason(err error) string {
	var first string
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimSpace(line)
		for _, word := range []string{"remote: ", "fatal: ", "! [", "error: "} {
			if i := strings.Index(line, word); i >= 0 {
				return strings.TrimPrefix(line[i:], "remote: ")
			}
		}
		if first == "" {
			first = line
		}
	}
	return first
}

// Push pushes a commit to a branch of a remote, at most for timeout. It moves the branch only if its present tip is contained in the commit, or is one of known,
// which are tips that coven has pushed. Otherwise the error is an *OccupiedError. Other errors are a *PushError.
// Hooks do not run: the checks have passed on the commit, and a pre-push hook would see another checkout. The contents of Git LFS are pushed, too.
func Push(ctx context.Context, r *repo.Repo, remote, branch, commit string, known []string, timeout time.Duration) error {
	ctx, cancel := limited(ctx, timeout)
	defer cancel()
	settings, err := r.Git().Configured(ctx, `^core\.sshcommand$`, false)
	if err != nil {
		return err
	}
	g := quietGit(r, settings)
	ref := names.HeadsPrefix + branch
	listed, err := g.Line(ctx, "ls-remote", "--quiet", "--", remote, ref)
	if err != nil {
		return &PushError{Remote: remote, Branch: branch, Denied: denied(err), Err: err}
	}
	tip, _, _ := strings.Cut(listed, "\t")
	switch {
	case tip == commit:
		return nil
	case tip == "", slices.Contains(known, tip), r.Git().KnownAncestor(ctx, tip, commit):
	default:
		return &OccupiedError{remote, branch, tip}
	}
	if err := pushLFS(ctx, r, g, remote, ref, commit, cmp.Or(tip, strings.Repeat("0", len(commit)))); err != nil {
		return &PushError{Remote: remote, Branch: branch, Denied: denied(err), Err: err}
	}
	g.Settings = append(slices.Clone(g.Settings), negotiate)
	err = g.Run(ctx, "push", "--quiet", "--no-follow-tags", "--recurse-submodules=no", "--force-with-lease="+ref+":"+tip, "--", remote, commit+":"+ref)
	switch {
	case err != nil && strings.Contains(err.Error(), "stale info"):
		return &OccupiedError{remote, branch, "just now"}
	case err != nil:
		return &PushError{Remote: remote, Branch: branch, Denied: denied(err), Err: err}
	}
	return nil
}

// PushLFS pushes the contents of Git LFS that a commit names, and that old, the tip of the branch at the remote, does not.
func PushLFS(ctx context.Context, r *repo.Repo, remote, branch, commit, old string) error {
	g, err := networkGit(ctx, r)
	if err != nil {
		return err
	}
	return pushLFS(ctx, r, g, remote, names.HeadsPrefix+branch, commit, old)
}

// pushLFS pushes the contents of Git LFS that a commit names, as the pre-push hook of Git LFS does. tip is the present commit of the remote's ref.
func pushLFS(ctx context.Context, r *repo.Repo, g git.Repo, remote, ref, commit, tip string) error {
	stored, err := os.ReadDir(filepath.Join(r.LFS, "objects"))
	if err != nil || len(stored) == 0 {
		return nil //nolint:nilerr // Git LFS has stored nothing here
	}
	pushes := fmt.Sprintf("%s %s %s %s\n", ref, commit, ref, tip)
	_, err = g.Feed(ctx, []byte(pushes), "lfs", "pre-push", "--", remote, remote)
	return err
}

// denied reports whether a remote refused a push for a reason that does not pass by itself.
func denied(err error) bool {
	text := strings.ToLower(err.Error())
	return slices.ContainsFunc([]string{"denied", "403", "not allowed", "protected", "declined", "hook", "not found", "read-only", "permission"}, func(word string) bool {
		return strings.Contains(text, word)
	})
}

// Followed returns the branch of a remote that a remote-tracking ref follows, without its tip.
func Followed(ctx context.Context, r *repo.Repo, tracking string) (Upstream, error) {
	settings, err := r.Git().Configured(ctx, `^remote\..*\.fetch$`, false)
	if err != nil {
		return Upstream{}, fmt.Errorf("read the remotes: %w", err)
	}
	s, err := sourceOfTracking(settings, tracking)
	return Upstream{Name: strings.TrimPrefix(tracking, names.RemotesPrefix), Remote: s.remote, Branch: strings.TrimPrefix(s.ref, names.HeadsPrefix)}, err
}

// Tree returns the tree of a commit.
func Tree(ctx context.Context, r *repo.Repo, commit string) (string, error) {
	if !object.IsID(commit) { // a host said it
		return "", fmt.Errorf("%q is not a commit", commit)
	}
	return r.Git().Tree(ctx, commit)
}

// LocationOf returns the host and the path of a remote's repository: see Location. They are empty for a local repository.
func LocationOf(ctx context.Context, r *repo.Repo, name string) (host, path string, err error) {
	settings, err := r.Git().Configured(ctx, `^remote\..*\.url$`, false)
	if err != nil {
		return "", "", fmt.Errorf("read the remotes: %w", err)
	}
	address := ""
	for _, s := range settings {
		if s.Key == "remote."+name+".url" {
			address = s.Value
		}
	}
	if address == "" {
		return "", "", fmt.Errorf("there is no remote %s", name)
	}
	if host, path, ok := Location(address); ok {
		return host, path, nil
	}
	if address, err = r.Git().Line(ctx, "remote", "get-url", "--", name); err != nil { // url.*.insteadOf
		return "", "", err
	}
	host, path, ok := Location(address)
	if !ok {
		return "", "", nil
	}
	return host, path, nil
}

// Location returns the host, and the path of the repository there, of a remote's URL, in one of the forms https://host/path.git,
// ssh://user@host:port/path and user@host:path. ok is false for a local repository.
func Location(address string) (host, path string, ok bool) {
	if !strings.Contains(address, "://") {
		host, path, ok = strings.Cut(address, ":")
		if strings.Contains(host, "/") {
			return "", "", false // a local path
		}
		_, after, found := strings.Cut(host, "@")
		if found {
			host = after
		}
	} else if u, err := url.Parse(address); err == nil && u.Scheme != "file" {
		host, path, ok = u.Host, u.Path, u.Host != ""
		if u.Scheme != "http" && u.Scheme != "https" {
			host = u.Hostname() // the port is not that of the API
		}
	}
	path = strings.TrimSuffix(strings.Trim(path, "/"), ".git")
	return strings.ToLower(host), path, ok && host != "" && strings.Contains(path, "/")
}

// configured returns the URL to which git pushes, or "" if only git can tell: there are several, or URLs are rewritten.
func configured(ctx context.Context, r *repo.Repo, name string) (string, error) {
	settings, err := r.Git().Configured(ctx, `^(remote|url)\..*url$|^url\..*insteadof$`, false)
	var urls, pushes []string
	for _, s := range settings {
		switch {
		case strings.HasPrefix(s.Key, "url."):
			return "", err
		case s.Key == "remote."+name+".url":
			urls = append(urls, s.Value)
		case s.Key == "remote."+name+".pushurl":
			pushes = append(pushes, s.Value)
		}
	}
	if len(pushes) > 0 {
		urls = pushes
	}
	if err != nil || len(urls) != 1 {
		return "", err
	}
	return urls[0], nil
}

// Address returns the URL of a remote without the user's name and password.
func Address(ctx context.Context, r *repo.Repo, name string) (string, error) {
	address, err := configured(ctx, r, name)
	if err == nil && address == "" {
		address, err = r.Git().Line(ctx, "remote", "get-url", "--push", "--", name)
	}
	if err != nil {
		return "", exit.Usagef("git remote -v", "there is no remote %s", name)
	}
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		u.User = nil
		return u.String(), nil
	}
	return address, nil
}
