package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/ref"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// NextCommand returns the git command that shows the reason.
func (e *FetchError) NextCommand() string { return "git fetch" }

// An Upstream is a branch of a remote at the time of the fetch.
type Upstream struct {
	Name   string // origin/main
	Remote string // origin
	Branch string // of the remote: main
	Tip    string // oid of its commit
}

// Ref returns the remote-tracking ref.
func (u Upstream) Ref() string { return names.RemotesPrefix + u.Name }

// A FetchError means that the upstream of a branch could not be fetched.
type FetchError struct {
	Branch string
	Err    error
}

func (e *FetchError) Error() string {
	why, _, _ := strings.Cut(e.Err.Error(), "\n") // git's advice follows
	return fmt.Sprintf("the upstream of %s was not fetched: %s", e.Branch, why)
}

func (e *FetchError) Unwrap() error { return e.Err }

// ErrNoBranch means that a remote does not have a branch.
var ErrNoBranch = errors.New("has no branch")

// errNoUpstream means that a branch has no upstream to fetch.
var errNoUpstream = errors.New("there is no remote for it")

// FetchUpstream fetches the upstream of a branch: the configured branch of its remote, or the one with the
// same name. branch may also be a remote-tracking ref. Of the user's refs, only the remote-tracking branch moves, as with git fetch. git never
// prompts. If it fails or takes longer than timeout, the error is a *FetchError.
func FetchUpstream(ctx context.Context, r *repo.Repo, branch string, timeout time.Duration) (Upstream, error) {
	found, _, err := FetchUpstreamAnd(ctx, r, branch, timeout, nil)
	return found, err
}

// FetchUpstreamAnd is FetchUpstream, and fetches also the refs of the remote that match the patterns, which are as in Refs, unless they have the commits in here, which
// this repository has. It returns their commits by name. They do not move here.
func FetchUpstreamAnd(ctx context.Context, r *repo.Repo, branch string, timeout time.Duration, here map[string]string, patterns ...string) (up Upstream, others map[string]string, err error) {
	ctx, cancel := limited(ctx, timeout)
	defer cancel()
	up, others, err = fetchUpstream(ctx, r, branch, here, patterns)
	if err != nil {
		err = &FetchError{Branch: branch, Err: err}
	}
	return up, others, err
}

func fetchUpstream(ctx context.Context, r *repo.Repo, branch string, here map[string]string, patterns []string) (up Upstream, others map[string]string, err error) {
	settings, err := r.Git().Configured(ctx, `^(remote\..*\.(url|fetch)|branch\..*\.(remote|merge)|core\.sshcommand)$`, false)
	if err != nil {
		return up, nil, err
	}
	source, err := sourceOf(settings, branch)
	if err != nil {
		return up, nil, err
	}
	up = Upstream{Name: strings.TrimPrefix(source.tracking, names.RemotesPrefix), Remote: source.remote, Branch: strings.TrimPrefix(source.ref, names.HeadsPrefix)}
	l, err := r.Lock(ctx, "fetch-"+names.SafeName(source.remote), "fetch "+up.Name)
	if err != nil {
		return up, nil, err
	}
	defer l.Release()
	g := quietGit(r, settings)
	if others, err = list(ctx, g, source.remote, append([]string{source.ref}, patterns...)...); err != nil {
		return up, nil, err
	}
	if up.Tip = others[source.ref]; up.Tip == "" {
		return up, nil, fmt.Errorf("%s %w %s", source.remote, ErrNoBranch, strings.TrimPrefix(source.ref, names.HeadsPrefix))
	}
	keepMatching(others, patterns)
	before, err := r.Git().Ref(ctx, source.tracking)
	if err != nil && !errors.Is(err, ref.ErrNoRef) {
		return up, nil, err
	}
	missing := slices.DeleteFunc(slices.Sorted(maps.Keys(others)), func(name string) bool { return here[name] == others[name] })
	if before != up.Tip {
		missing = append(missing, source.ref)
	}
	if len(missing) > 0 {
		if err := fetch(ctx, g, source.remote, missing...); err != nil {
			return up, nil, err
		}
	}
	if before == up.Tip {
		return up, others, nil
	}
	if _, err := r.Git().Commit(ctx, up.Tip); err != nil {
		return up, nil, fmt.Errorf("%s changed meanwhile: %w", up.Name, err)
	}
	failpoint.Point("fetch.fetched")
	edit := ref.Create(source.tracking, up.Tip)
	if before != "" {
		edit = ref.Move(source.tracking, up.Tip, before)
	}
	if err := r.Transact(ctx, r.Git(), "fetch "+source.remote, edit); err != nil {
		if now, _ := r.Git().Ref(ctx, source.tracking); now != up.Tip { // the user may have fetched the same commit
			return up, nil, err
		}
	}
	return up, others, nil
}

// keepMatching deletes the refs whose names match none of the patterns: git compares only the ends of names.
func keepMatching(refs map[string]string, patterns []string) {
	maps.DeleteFunc(refs, func(name, _ string) bool {
		return !slices.ContainsFunc(patterns, func(p string) bool { matches, _ := path.Match(p, name); return matches })
	})
}

// FetchCommit fetches a commit that no branch of a remote may contain any more, at most for timeout. No ref moves.
func FetchCommit(ctx context.Context, r *repo.Repo, remote, commit string, timeout time.Duration) error {
	if !object.IsID(commit) { // a host said it
		return fmt.Errorf("%q is not a commit", commit)
	}
	ctx, cancel := limited(ctx, timeout)
	defer cancel()
	settings, err := r.Git().Configured(ctx, `^core\.sshcommand$`, false)
	if err != nil {
		return err
	}
	return fetch(ctx, quietGit(r, settings), remote, commit)
}

// source describes the upstream of a branch.
type source struct {
	remote   string
	ref      string // ref in the remote repository
	tracking string // remote-tracking ref in this repository
}

// sourceOf finds the upstream of a branch, or of a remote-tracking ref, in the settings of remotes and branches.
func sourceOf(settings []git.Setting, branch string) (source, error) {
	if strings.HasPrefix(branch, names.RemotesPrefix) {
		return sourceOfTracking(settings, branch)
	}
	s := source{remote: remoteOf(settings, branch), ref: names.HeadsPrefix + branch}
	if s.remote == "" {
		return s, errNoUpstream
	}
	last := func(key string) (value string) {
		for _, setting := range settings {
			if setting.Key == key {
				value = setting.Value
			}
		}
		return value
	}
	if last("branch."+branch+".remote") == s.remote {
		s.ref = cmp.Or(last("branch."+branch+".merge"), s.ref)
	}
	for _, setting := range settings {
		if setting.Key != "remote."+s.remote+".fetch" || s.tracking != "" {
			continue
		}
		s.tracking = mapped(setting.Value, s.ref)
	}
	if s.tracking == "" {
		return s, fmt.Errorf("remote.%s.fetch gives %s of %s no remote-tracking branch", s.remote, strings.TrimPrefix(s.ref, names.HeadsPrefix), s.remote)
	}
	return s, nil
}

// sourceOfTracking finds the branch of a remote that a remote-tracking ref follows.
func sourceOfTracking(settings []git.Setting, tracking string) (source, error) {
	for _, setting := range settings {
		name, ok := strings.CutPrefix(setting.Key, "remote.")
		name, fetch := strings.CutSuffix(name, ".fetch")
		from, to, _ := strings.Cut(strings.TrimPrefix(setting.Value, "+"), ":")
		if !ok || !fetch {
			continue
		}
		if ref := translate(to, from, tracking); strings.HasPrefix(ref, names.HeadsPrefix) {
			return source{remote: name, ref: ref, tracking: tracking}, nil
		}
	}
	return source{}, errNoUpstream
}

// mapped returns the remote-tracking ref to which a refspec maps a ref, or "" if it does not.
func mapped(refspec, ref string) string {
	from, to, _ := strings.Cut(strings.TrimPrefix(refspec, "+"), ":")
	to = translate(from, to, ref)
	if !strings.HasPrefix(to, names.RemotesPrefix) {
		return "" // only remote-tracking refs move
	}
	return to
}

// translate returns the name to which a pair of patterns maps a ref, or "" if it does not.
func translate(from, to, ref string) string {
	prefix, suffix, glob := strings.Cut(from, "*")
	if glob {
		if len(ref) < len(prefix+suffix) || !strings.HasPrefix(ref, prefix) || !strings.HasSuffix(ref, suffix) {
			return ""
		}
		to = strings.Replace(to, "*", ref[len(prefix):len(ref)-len(suffix)], 1)
	} else if from != ref {
		return ""
	}
	return to
}

// quietGit returns a git.Repo for network access. It prompts neither for passwords nor for host keys; the user's programs
// in GIT_ASKPASS and GIT_SSH answer for themselves.
func quietGit(r *repo.Repo, settings []git.Setting) git.Repo {
	g := r.RootGit()
	g.Network = true
	g.WorkTree = r.Root                                                                       // relative paths of remotes are relative to Root
	g.Env = append(slices.Clone(g.Env), "SSH_ASKPASS_REQUIRE=never", "GCM_INTERACTIVE=never") // no dialogs
	if os.Getenv("GIT_ASKPASS") == "" {
		g.Env = append(g.Env, "GIT_ASKPASS=true")
	}
	ssh := os.Getenv("GIT_SSH_COMMAND")
	for _, s := range settings {
		if s.Key == "core.sshcommand" && os.Getenv("GIT_SSH_COMMAND") == "" {
			ssh = s.Value
		}
	}
	if ssh != "" || os.Getenv("GIT_SSH") == "" { // GIT_SSH may be a program with other options
		g.Env = append(g.Env, "GIT_SSH_COMMAND="+cmp.Or(ssh, "ssh")+" -o BatchMode=yes")
	}
	return g
}

// Contains reports whether other is reachable from commit.
func Contains(ctx context.Context, r *repo.Repo, commit, other string) (bool, error) {
	if !object.IsID(commit) || !object.IsID(other) { // a host may have said them
		return false, fmt.Errorf("%q or %q is not a commit", commit, other)
	}
	return r.Git().IsAncestor(ctx, other, commit)
}
