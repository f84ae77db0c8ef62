package pulls

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/control/comments"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/plugins/forge"
	"github.com/coven-run/coven/plugins/reviewer"
	"github.com/coven-run/coven/runner/pullrequest"
	"github.com/coven-run/coven/worktree/diff"
	"github.com/coven-run/coven/worktree/remote"
)

// Session follows the pull request of one session. It implements pullrequest.Host.
type Session struct {
	*Forge
	Task      string
	Dir       string // of the session, which has the comments
	StackedOn string // task whose change must land first, or ""
	Finder    *session.Finder

	pr event.PullRequest // of the last State
}

// Publish implements pullrequest.Host.
func (s *Session) Publish(ctx context.Context, candidate event.Landing, known []string, title, text string) (event.PullRequest, error) {
	all, _ := s.Finder.Summaries() // without those that cannot be read, their commits stay on the host
	for _, other := range all {
		if other.Task != s.Task {
			continue
		}
		if v, err := other.View(); err == nil && v.Pull != nil {
			known = append(known, v.Pull.Tip) // an earlier session of the task pushed it to the same branch
		}
	}
	return s.Forge.Publish(ctx, candidate, s.Repo.BranchOf(s.Task), known, title, text)
}

// State implements pullrequest.Host.
func (s *Session) State(ctx context.Context, of event.PullRequest) (pullrequest.State, error) {
	s.pr = of
	state, err := s.Forge.State(ctx, of)
	if err != nil {
		return pullrequest.State{}, err
	}
	pull := pullrequest.State{PullRequest: state, Contains: state.Head == of.Tip}
	if !pull.Contains && state.Head != "" && !state.HeadGone {
		_, _ = remote.FetchUpstream(ctx, s.Repo, of.TrackingRef(), gitTime) // without it, the answer is no
	}
	if in, err := remote.Contains(ctx, s.Repo, state.Head, of.Tip); err == nil {
		pull.Contains = in
	}
	if state.State == forge.Merged {
		if err := s.merged(ctx, of, &pull); err != nil {
			return pull, err
		}
	}
	pull.Stacked = s.StackedOn
	_, pull.Orphaned = Below(s.Finder, s.StackedOn)
	pull.Replied = replied(state.Comments)
	pull.Comments, pull.Others, err = s.comments(ctx, of, state)
	return pull, err
}

// merged fetches the commit of a merged pull request, and sets its tree.
func (s *Session) merged(ctx context.Context, of event.PullRequest, pull *pullrequest.State) error {
	pull.Target = of.Target
	if base := pull.Base; base != "" && base != of.Base { // a person has changed it
		pull.Target = strings.TrimSuffix(of.Target, of.Base) + base
	}
	up, err := remote.FetchUpstream(ctx, s.Repo, pull.Target, gitTime)
	if in, _ := remote.Contains(ctx, s.Repo, up.Tip, of.Tip); in && pull.Commit == "" {
		pull.Commit = of.Tip // the host noticed that another person pushed it
	}
	var lost error
	if pull.Tree, lost = remote.Tree(ctx, s.Repo, pull.Commit); lost != nil && up.Remote != "" && pull.Commit != "" { // the branch was deleted
		lost = remote.FetchCommit(ctx, s.Repo, up.Remote, pull.Commit, gitTime)
		if lost == nil {
			pull.Tree, lost = remote.Tree(ctx, s.Repo, pull.Commit)
		}
	}
	if lost == nil {
		return nil
	}
	return s.retry(fmt.Sprintf("pull request #%d was merged, but its commit was not fetched: %s", of.Number, oneline.Of(s.Hide(cmp.Or(err, lost).Error()))))
}

// Below returns the state of the change on which a session is stacked: the target in which it has landed, or the status of its session if that is over
// without a landing. Both are empty if it must land first, or if stackedOn is empty.
func Below(finder *session.Finder, stackedOn string) (target, orphaned string) {
	if stackedOn == "" {
		return "", ""
	}
	v, err := finder.OfTask(stackedOn)
	if err != nil {
		return "", ""
	}
	if target = landedIn(v); target == "" && !v.Live() {
		if orphaned = string(v.Status); v.Rejected {
			orphaned = "rejected"
		}
	}
	return target, orphaned
}

// Moved returns the session of a task. moved means that the change on which it is stacked has landed.
func Moved(finder *session.Finder, task string) (v session.View, moved bool) {
	v, err := finder.OfTask(task)
	if err != nil {
		return v, false
	}
	landed, _ := Below(finder, v.Info.StackedOn)
	return v, landed != ""
}

// landedIn returns the branch in which the change of a session is, or "". A session that is completed without a landing had nothing to land.
func landedIn(v session.View) string {
	if v.Landed.New == "" && v.Status != session.Completed {
		return ""
	}
	return cmp.Or(v.Landed.Target, v.Info.Target)
}

// Log implements pullrequest.Host.
func (s *Session) Log(ctx context.Context, check forge.Check) (string, error) {
	return s.Forge.Log(ctx, s.pr, check)
}

// Rerun implements pullrequest.Host.
func (s *Session) Rerun(ctx context.Context, check forge.Check) error {
	return s.Forge.Rerun(ctx, s.pr, check)
}

// Command begins a comment on the whole change that coven gives to the agent. Others are conversation.
const Command = "/coven"

// replyPrefix begins coven's replies. Hosts do not show it. A person may use the same account as coven: without it, coven's replies and the
// person's comments could not be told apart.
const replyPrefix = "<!-- coven:reply "

// replyMark returns the first line of the reply to a comment.
func replyMark(comment string) string {
	return fmt.Sprintf("%s%.16x -->", replyPrefix, sha256.Sum256([]byte(comment)))
}

// isReply reports whether coven has written a comment. A person who quotes a reply writes something before its mark.
func isReply(c forge.Comment) bool { return c.Own && strings.HasPrefix(c.Text, replyPrefix) }

// replied returns the IDs of the comments to which coven has replied.
func replied(all []forge.Comment) (ids []string) {
	for _, c := range all {
		answers := func(reply forge.Comment) bool {
			return isReply(reply) && strings.HasPrefix(reply.Text, replyMark(c.ID))
		}
		if slices.ContainsFunc(all, answers) {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// comments stores the comments of a pull request that ask for changes among those of the session's review, and returns them. Comments of people who may not
// write to the repository stay drafts: others are their IDs.
func (s *Session) comments(ctx context.Context, of event.PullRequest, state forge.PullRequest) (found []pullrequest.Comment, others []string, err error) {
	var asks []forge.Comment
	for _, c := range state.Comments {
		if !isReply(c) && !c.Resolved && (c.Path != "" || strings.HasPrefix(strings.TrimSpace(c.Text), Command) || state.Changes && c.Answers == "") {
			asks = append(asks, c)
		}
	}
	if len(asks) == 0 {
		return nil, nil, nil
	}
	err = comments.Change(s.Dir, func(file *comments.File) error {
		for _, c := range asks {
			stored := s.store(ctx, file, of, c)
			if !c.Trusted {
				others = append(others, c.ID)
				continue
			}
			found = append(found, pullrequest.Comment{Remote: c.ID, ID: stored, By: "@" + oneline.Of(c.By), Finding: finding(c, stored)})
		}
		return nil
	})
	return found, others, err
}

// store adds a comment to those of the review, unless it is there or is not about lines, and returns its ID.
func (s *Session) store(ctx context.Context, file *comments.File, of event.PullRequest, c forge.Comment) (id string) {
	if i := slices.IndexFunc(file.Comments, func(other comments.Comment) bool { return other.Remote == c.ID }); i >= 0 {
		return file.Comments[i].ID
	}
	own := "host-" + oneline.Of(c.ID)
	if !c.Trusted && len(file.Comments) >= comments.Max/2 {
		return own // the rest is for people who may write
	}
	anchor, ok := s.anchor(ctx, of, c)
	if !ok {
		return own
	}
	added := comments.Comment{By: "@" + oneline.Of(c.By), At: c.Time, Anchor: anchor, Text: cut(s.Hide(c.Text)), Remote: c.ID}
	if !file.Add(&added) {
		return own
	}
	return added.ID
}

// anchor returns the place of a comment. ok is false if the repository does not have its lines.
func (s *Session) anchor(ctx context.Context, of event.PullRequest, c forge.Comment) (a comments.Anchor, ok bool) {
	from := c.Line
	if c.From > 0 && c.From < c.Line {
		from = c.From
	}
	a = comments.Anchor{Path: c.Path, Side: comments.New, From: from, To: c.Line}
	commit := c.Commit
	if c.Old {
		a.Side, commit = comments.Old, of.Old
	}
	if c.Line < 1 || !comments.IsPath(c.Path) {
		return a, false
	}
	tree, err := remote.Tree(ctx, s.Repo, commit)
	if err != nil {
		return a, false
	}
	if a.Tree = tree; c.Old {
		a.Tree = commit
	}
	content, err := diff.FileIn(ctx, s.Repo, a.Tree, c.Path, comments.MaxFile)
	if err != nil {
		return a, false
	}
	lines := comments.LinesOf(content)
	if c.Line > len(lines) {
		return a, false
	}
	a.Hash = comments.HashOf(lines[from-1 : c.Line])
	return a, true
}

// cut returns a text without the part after comments.MaxText bytes.
func cut(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), comments.MaxText)], "")
}

// finding returns a comment as the agent gets it.
func finding(c forge.Comment, id string) reviewer.Finding {
	text := cut(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(c.Text), Command)))
	f := reviewer.Finding{Severity: reviewer.Error, File: c.Path, Line: c.Line, Message: "[" + id + "] " + text}
	if c.Old {
		f.Line, f.Message = 0, fmt.Sprintf("[%s] about line %d, which the change removes: %s", id, c.Line, text)
	}
	return f
}
