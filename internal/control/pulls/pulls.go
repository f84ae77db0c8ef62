// Package pulls publishes changes as pull requests, and follows them on the host of the repository with a forge plugin.
//
// The coven processes of a repository share the states of its pull requests. One of them at a time asks the host, about all of them in
// one call, and not more often than Poll and the limits of the account permit. The others use the answer.
package pulls

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/plugins/forge"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/runner"
	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/remote"
)

// Time limits of git and of calls of the host.
const (
	gitTime  = 5 * time.Minute
	callTime = 2 * time.Minute
)

// Poll is how often the host is asked at most.
const Poll = 30 * time.Second

// maxPause limits the time between two attempts if the host does not answer, and maxLimit the time for which a host may refuse to.
const (
	maxPause = 10 * time.Minute
	maxLimit = 2 * time.Hour
)

// retryPause is how long a session waits after a problem of the host or its remote before it tries again.
const retryPause = 5 * time.Minute

// Plugins starts forge plugins: plugins.Host.
type Plugins interface {
	Forge(ctx context.Context, name string) (forge.Forge, error)
}

// Forge is the host of a repository.
type Forge struct {
	Repo   *worktree.Repo
	Config config.Forge
	Host   Plugins
	Hide   func(string) string // removes secrets from texts
	Now    func() time.Time
}

// hosts are the plugins for well-known hosts.
var hosts = map[string]string{"github.com": "github", "gitlab.com": "gitlab", "codeberg.org": "gitea", "gitea.com": "gitea"}

// location is where the pull requests of a target are.
type location struct {
	forge.Repository
	plugin   string
	base     remote.Upstream
	push     string // remote that gets the branches
	headPath string // path of its repository, if it is another one
}

// locate finds the host of a target, which is a remote-tracking ref.
func (f *Forge) locate(ctx context.Context, target string) (location, error) {
	base, err := remote.Followed(ctx, f.Repo, target)
	if err != nil {
		return location{}, exit.Usagef("git remote -v", "%s: %w", event.BranchName(target), err)
	}
	l := location{base: base, push: base.Remote}
	if l.Repository, err = f.repositoryOf(ctx, base.Remote); err != nil {
		return l, err
	}
	if f.Config.Repository != "" {
		l.Path = f.Config.Repository
	}
	l.API = f.Config.API
	if l.plugin = f.Config.Plugin; l.plugin == "" {
		l.plugin = hosts[l.Host]
	}
	switch {
	case l.plugin == "":
		return l, exit.Usagef("coven config set forge.plugin github", "%s is on %s, and coven does not know which forge plugin speaks with it", base.Remote, orLocal(l.Host))
	case l.Path == "":
		return l, exit.Usagef("coven config set --user forge.repository OWNER/NAME", "the URL of %s does not name a repository on a host", base.Remote)
	}
	if f.Config.Push == "" || f.Config.Push == base.Remote {
		return l, nil
	}
	l.push = f.Config.Push
	fork, err := f.repositoryOf(ctx, l.push)
	if err == nil && fork.Path != l.Path {
		l.headPath = fork.Path
	}
	return l, err
}

func orLocal(host string) string {
	if host == "" {
		return "this machine"
	}
	return host
}

// repositoryOf returns the repository of a remote, as far as its URL tells.
func (f *Forge) repositoryOf(ctx context.Context, name string) (forge.Repository, error) {
	host, path, err := remote.LocationOf(ctx, f.Repo, name)
	if err != nil {
		return forge.Repository{}, exit.Usagef("git remote -v", "forge: %w", err)
	}
	return forge.Repository{Host: host, Path: path}, nil
}

// client returns the plugin.
func (f *Forge) client(ctx context.Context, l location) (forge.Forge, error) {
	return f.Host.Forge(ctx, l.plugin)
}

// retry returns the wait of a session that tries again after some time.
func (f *Forge) retry(detail string) *runner.Wait {
	return &runner.Wait{Reason: event.WaitMerge, Next: "resume", Detail: detail, Until: f.Now().Add(retryPause)}
}

// wait returns the wait of a session for a host that does not answer as it should, or the error of one that refuses.
func (f *Forge) wait(l location, err error) error {
	w := f.retry(orLocal(l.Host) + ": " + forge.ClipLine(f.Hide(err.Error())))
	switch {
	case errors.Is(err, pluginerr.ErrLogin):
		w.Command = "gh auth login --hostname " + shellword.Word(l.Host)
		if l.plugin != "github" {
			w.Command = "coven plugins info forge " + shellword.Word(l.plugin)
		}
	case errors.Is(err, context.Canceled):
		return err
	case isRefusal(err):
		return &runner.RefusedError{Reason: w.Detail}
	}
	return w
}

// isRefusal reports whether the same call of a host would fail again, whatever the user's credential is.
func isRefusal(err error) bool {
	passing := []error{pluginerr.ErrTransient, pluginerr.ErrLogin, pluginerr.ErrGone, context.DeadlineExceeded, context.Canceled}
	return err != nil && !slices.ContainsFunc(passing, func(one error) bool { return errors.Is(err, one) })
}

// Publish pushes a commit to a branch and opens its pull request, or updates it. known are tips that coven has pushed.
func (f *Forge) Publish(ctx context.Context, candidate event.Landing, branch string, known []string, title, text string) (event.PullRequest, error) {
	l, err := f.locate(ctx, candidate.Target)
	if err != nil {
		return event.PullRequest{}, err
	}
	client, err := f.client(ctx, l) // before anything is pushed
	if err != nil {
		return event.PullRequest{}, err
	}
	if err := f.push(ctx, l, branch, candidate.Tip, known); err != nil {
		return event.PullRequest{}, err
	}
	failpoint.Point("pull.pushed")
	calling, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	opened, err := client.Open(calling, forge.Request{
		Repository: l.Repository, Head: branch, HeadPath: l.headPath, Base: l.base.Branch, Title: titleOf(f.Hide(title), branch), Text: forge.ClipText(f.Hide(text)), Draft: f.Config.Draft,
	})
	if err != nil {
		return event.PullRequest{}, f.wait(l, fmt.Errorf("the pull request was not opened: %w", err))
	}
	failpoint.Point("pull.opened")
	if opened.Number <= 0 {
		return event.PullRequest{}, fmt.Errorf("the forge plugin %s opened a pull request without a number: %w", l.plugin, pluginerr.ErrInvalid)
	}
	return event.PullRequest{
		Number: opened.Number, URL: opened.URL, Target: candidate.Target, Remote: l.push, Branch: branch, Base: l.base.Branch,
		Tip: candidate.Tip, Tree: candidate.Tree, Old: candidate.Old,
	}, f.stale(ctx, l, opened.Number)
}

// maxTitle limits the title of a pull request, in characters. GitHub permits 256.
const maxTitle = 250

// titleOf returns a title as hosts accept it.
func titleOf(title, branch string) string {
	return cmp.Or(oneline.Clip(forge.ClipLine(title), maxTitle), branch)
}

// push pushes a commit to a branch.
func (f *Forge) push(ctx context.Context, l location, branch, commit string, known []string) error {
	err := remote.Push(ctx, f.Repo, l.push, branch, commit, known, gitTime)
	occupied, failed := (*remote.OccupiedError)(nil), (*remote.PushError)(nil)
	switch {
	case errors.As(err, &occupied):
		return &runner.RefusedError{Reason: err.Error() + "; coven leaves them there. To take them over: git fetch " + shellword.Word(l.push) + ", and merge FETCH_HEAD in the worktree"}
	case errors.As(err, &failed) && failed.Denied:
		return &runner.RefusedError{Reason: f.Hide(err.Error()) + "; to push to a fork, name its remote in forge.push"}
	case errors.As(err, &failed):
		return f.retry(f.Hide(err.Error()))
	}
	return err
}

// follow returns the entry of a pull request.
func (s *stored) follow(number int) *followed {
	p := s.Pulls[number]
	if p == nil {
		p = &followed{}
		s.Pulls[number] = p
	}
	return p
}

// State returns the state of a pull request. The host is asked if it is time, or if coven has changed the pull request since.
func (f *Forge) State(ctx context.Context, of event.PullRequest) (forge.PullRequest, error) {
	l, err := f.locate(ctx, of.Target)
	if err != nil {
		return forge.PullRequest{}, err
	}
	s, err := change(ctx, f.Repo.Root, l.Repository, func(s *stored) error {
		p := s.follow(of.Number)
		if p.Stale || p.Version == "" {
			s.hurry()
		}
		f.refresh(ctx, l, s)
		if p.Seen = p.Version; p.Stale {
			p.Seen = "" // the session does not get it
		}
		return nil
	})
	if err != nil {
		return forge.PullRequest{}, err
	}
	p := s.follow(of.Number)
	if p.Stale || p.Version == "" {
		w := &runner.Wait{Reason: event.WaitMerge, Next: "resume", Until: s.Next, Detail: orLocal(l.Host) + ": " + oneline.Of(s.Problem)}
		return forge.PullRequest{}, w
	}
	return p.PullRequest, nil
}

// hurry makes the next question due, unless the limit of the account is reached.
func (s *stored) hurry() { s.Next = s.Limit.Until }

// Ask makes coven ask for the state of a pull request when it is used next.
func (f *Forge) Ask(ctx context.Context, of event.PullRequest) error {
	l, err := f.locate(ctx, of.Target)
	if err != nil {
		return err
	}
	return f.stale(ctx, l, of.Number)
}

// refresh asks the host about all followed pull requests, if it is time.
func (f *Forge) refresh(ctx context.Context, l location, s *stored) {
	now := f.Now()
	if left := s.Next.Sub(now); left > 0 && left <= maxLimit { // a later time is of a clock that was wrong
		return
	}
	query := forge.Query{Repository: l.Repository, Version: s.Version}
	for number, p := range s.Pulls {
		known := forge.Known{Number: number, Version: p.Version}
		if p.Stale {
			known.Version = ""
		}
		query.Known = append(query.Known, known)
	}
	slices.SortFunc(query.Known, func(a, b forge.Known) int { return b.Number - a.Number })
	query.Known = query.Known[:min(len(query.Known), forge.MaxKnown)]
	report, err := f.ask(ctx, l, query)
	if err != nil {
		s.Failures++
		s.Problem = f.Hide(err.Error())
		s.Next = now.Add(min(Poll<<min(s.Failures, 8), maxPause))
		return
	}
	if latest := now.Add(maxLimit); report.Limit.Until.After(latest) {
		report.Limit.Until = latest
	}
	s.Limit = report.Limit
	if report.Limit.Until.After(now) {
		s.Problem = "the limit of your account is reached until " + report.Limit.Until.Local().Format("15:04")
		s.Next = report.Limit.Until
		return
	}
	s.Failures, s.Problem, s.Asked = 0, "", now
	s.Version, s.Next = report.Version, now.Add(pause(report.Limit, now))
	for _, changed := range report.Changed {
		if p := s.Pulls[changed.Number]; p != nil {
			p.PullRequest, p.Stale = changed, false
		}
	}
	for _, p := range s.Pulls {
		if p.Stale && p.Version != "" {
			p.Stale = false // the host knows nothing newer
		}
	}
	if s.Moved = report.Moved; s.Moved == l.Path {
		s.Moved = ""
	}
}

func (f *Forge) ask(ctx context.Context, l location, query forge.Query) (forge.Report, error) {
	if len(query.Known) == 0 {
		return forge.Report{Version: query.Version}, nil
	}
	client, err := f.client(ctx, l)
	if err != nil {
		return forge.Report{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	report, err := client.Poll(ctx, query)
	for i := range report.Changed {
		if p := &report.Changed[i]; p.Version == "" { // coven could not say that it has this state
			text, _ := json.Marshal(p) // strings and numbers can always be encoded
			p.Version = fmt.Sprintf("%x", sha256.Sum256(text))
		}
	}
	return report, err
}

// pause returns how long to wait before the next question, so that coven uses at most half of the rest of the account's limit.
func pause(limit forge.Limit, now time.Time) time.Duration {
	left := limit.Reset.Sub(now)
	if limit.Cost <= 0 || limit.Total <= 0 || left <= 0 {
		return Poll
	}
	affordable := limit.Remaining / 2 / limit.Cost
	if affordable < 1 {
		return min(left, maxLimit)
	}
	return min(max(Poll, left/time.Duration(affordable)), maxLimit)
}

// Changed returns those of the followed pull requests that have a state on which their sessions have not acted yet. It asks the hosts if it is
// time, and stops following all others. A person who asks now does not wait for Poll. The error is about some of the hosts.
func (f *Forge) Changed(ctx context.Context, of []event.PullRequest, now bool) (changed []event.PullRequest, err error) {
	var problems []error
	byTarget := map[string][]event.PullRequest{}
	for _, pr := range of {
		byTarget[pr.Target] = append(byTarget[pr.Target], pr)
	}
	at, in := map[forge.Repository]location{}, map[forge.Repository][]event.PullRequest{}
	for _, target := range slices.Sorted(maps.Keys(byTarget)) {
		l, err := f.locate(ctx, target)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		at[l.Repository], in[l.Repository] = l, append(in[l.Repository], byTarget[target]...)
	}
	for repository, those := range in {
		some, err := f.changedIn(ctx, at[repository], those, now)
		changed, problems = append(changed, some...), append(problems, err)
	}
	return changed, errors.Join(problems...)
}

// changedIn is Changed for the pull requests of one repository.
func (f *Forge) changedIn(ctx context.Context, l location, of []event.PullRequest, now bool) (changed []event.PullRequest, err error) {
	s, err := change(ctx, f.Repo.Root, l.Repository, func(s *stored) error {
		for _, pr := range of {
			s.follow(pr.Number)
		}
		maps.DeleteFunc(s.Pulls, func(number int, _ *followed) bool {
			return !slices.ContainsFunc(of, func(pr event.PullRequest) bool { return pr.Number == number })
		})
		if now {
			s.hurry()
		}
		f.refresh(ctx, l, s)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, pr := range of {
		if p := s.Pulls[pr.Number]; p.Version != p.Seen && !p.Stale {
			changed = append(changed, pr)
		}
	}
	switch {
	case s.Problem != "":
		return changed, exit.Failedf("coven resume", "%s: %s", orLocal(l.Host), oneline.Of(s.Problem))
	case s.Moved != "":
		return changed, exit.Failedf("git remote set-url "+shellword.Word(l.base.Remote)+" URL", "%s: the repository %s is now %s", orLocal(l.Host), l.Path, oneline.Of(s.Moved))
	}
	return changed, nil
}

// act runs a call that changes a pull request, whose state is asked for again afterwards, also if coven is killed before it knows the answer.
func (f *Forge) act(ctx context.Context, of event.PullRequest, call func(context.Context, forge.Forge, location) error) error {
	l, err := f.locate(ctx, of.Target)
	if err != nil {
		return err
	}
	if err := f.stale(ctx, l, of.Number); err != nil {
		return err
	}
	if err := f.call(ctx, of, call); err != nil {
		return err
	}
	failpoint.Point("pull.acted")
	return f.stale(ctx, l, of.Number) // another coven may have asked too early
}

// stale makes coven ask for the state of a pull request when it is used next.
func (f *Forge) stale(ctx context.Context, l location, number int) error {
	_, err := change(ctx, f.Repo.Root, l.Repository, func(s *stored) error {
		s.follow(number).Stale = true
		return nil
	})
	return err
}

// call runs a call about a pull request.
func (f *Forge) call(ctx context.Context, of event.PullRequest, call func(context.Context, forge.Forge, location) error) error {
	l, err := f.locate(ctx, of.Target)
	if err != nil {
		return err
	}
	client, err := f.client(ctx, l)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return call(ctx, client, l)
}

// Log returns the end of the log of a check.
func (f *Forge) Log(ctx context.Context, of event.PullRequest, check forge.Check) (text string, err error) {
	const limit = 16 << 10
	err = f.call(ctx, of, func(ctx context.Context, client forge.Forge, l location) error {
		text, err = client.Log(ctx, l.Repository, check, limit)
		return err
	})
	if len(text) > limit {
		text = strings.ToValidUTF8(text[len(text)-limit:], "")
	}
	return f.Hide(text), err
}

// Rerun runs a failed check again.
func (f *Forge) Rerun(ctx context.Context, of event.PullRequest, check forge.Check) error {
	return f.act(ctx, of, func(ctx context.Context, client forge.Forge, l location) error {
		return client.Rerun(ctx, l.Repository, check)
	})
}

// Reply answers a comment. refused is the reason if the host will never accept that: the conversation is locked, or the comment was deleted.
func (f *Forge) Reply(ctx context.Context, of event.PullRequest, comment, text string) (refused string, err error) {
	err = f.act(ctx, of, func(ctx context.Context, client forge.Forge, l location) error {
		err := client.Reply(ctx, l.Repository, forge.Reply{Number: of.Number, Comment: comment, Text: forge.ClipText(replyMark(comment) + "\n" + f.Hide(text))})
		if isRefusal(err) {
			refused = forge.ClipLine(f.Hide(err.Error()))
			return nil
		}
		return err
	})
	return refused, err
}

// Merge merges a pull request if its head is the published commit. strategy is a strategy of landings, or empty.
func (f *Forge) Merge(ctx context.Context, of event.PullRequest) error {
	return f.act(ctx, of, func(ctx context.Context, client forge.Forge, l location) error {
		_, err := client.Merge(ctx, l.Repository, forge.Merge{Number: of.Number, Head: of.Tip})
		return err
	})
}
