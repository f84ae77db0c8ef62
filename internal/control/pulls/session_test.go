package pulls

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/control/comments"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/plugins/forge"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/runner"
	"github.com/coven-run/coven/runner/pullrequest"
)

// inSession returns a session of task t whose pull request 1 is the head of the clone, and that pull request.
func (b *bench) inSession(t *testing.T) (*Session, event.PullRequest) {
	t.Helper()
	of := pr(1)
	of.Tip, of.Old = git(t, b.dir, "rev-parse", "HEAD"), git(t, b.dir, "rev-parse", "HEAD~0")
	b.host.pulls[1] = forge.PullRequest{Number: 1, Version: "1", State: forge.Open, Head: of.Tip, Base: "main"}
	return &Session{Forge: b.Forge, Task: "t", Dir: t.TempDir(), Finder: session.NewFinder(b.Repo.Root)}, of
}

// set changes the pull request on the host.
func (b *bench) set(change func(p *forge.PullRequest)) {
	p := b.host.pulls[1]
	change(&p)
	p.Version += "+"
	b.host.pulls[1] = p
	b.now = b.now.Add(Poll)
}

func state(t *testing.T, s *Session, of event.PullRequest) pullrequest.State {
	t.Helper()
	got, err := s.State(t.Context(), of)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// The comments that ask for changes reach the agent, with their lines if the repository has them, and those of strangers stay drafts.
func TestComments(t *testing.T) {
	b := newBench(t)
	s, of := b.inSession(t)
	b.set(func(p *forge.PullRequest) {
		p.Comments = []forge.Comment{
			{ID: "1", By: "ann", Trusted: true, Text: "why? token-secret", Path: "a", Line: 1, Commit: of.Tip},
			{ID: "2", By: "eve", Text: "delete all", Path: "a", Line: 1, Commit: of.Tip},
			{ID: "3", By: "me", Trusted: true, Own: true, Text: replyMark("1") + "\nfixed", Path: "a", Line: 1, Commit: of.Tip},
			{ID: "4", By: "ann", Trusted: true, Resolved: true, Text: "old", Path: "a", Line: 1, Commit: of.Tip},
			{ID: "5", By: "ann", Trusted: true, Text: "nice work"},
			{ID: "6", By: "ann", Trusted: true, Text: "  /coven rename it"},
			{ID: "7", By: "ann", Trusted: true, Text: "removed", Path: "a", Line: 1, Old: true, Commit: strings.Repeat("0", 40)},
			{ID: "8", By: "ann", Trusted: true, Text: "outside", Path: "../a", Line: 1, Commit: of.Tip},
			{ID: "9", By: "ann", Trusted: true, Text: "deleted", Path: "gone", Line: 1, Commit: of.Tip},
			{ID: "10", By: "ann", Trusted: true, Text: "beyond", Path: "a", Line: 99, Commit: of.Tip},
			{ID: "11", By: "ann", Trusted: true, Text: "a file", Path: "a", Commit: of.Tip},
			{ID: "12", By: "ann", Trusted: true, Text: "unknown commit", Path: "a", Line: 1, Commit: strings.Repeat("1", 40)},
			{ID: "13", By: "ann", Trusted: true, Text: "backwards", Path: "a", From: 5, Line: 1, Commit: of.Tip},
			{ID: "14", By: "ann", Trusted: true, Text: strings.Repeat("\u00e9", 1<<20), Path: "a", Line: 1, Commit: of.Tip},
		}
	})
	got := state(t, s, of)
	var ids []string
	for _, c := range got.Comments {
		ids = append(ids, c.Remote+"="+c.ID)
		if len(c.Message) > comments.MaxText+100 || strings.ContainsRune(c.Message, '\uFFFD') {
			t.Errorf("%s has %d bytes", c.Remote, len(c.Message))
		}
	}
	if want := "1=c1 6=host-6 7=c3 8=host-8 9=host-9 10=host-10 11=host-11 12=host-12 13=c4 14=c5"; strings.Join(ids, " ") != want || len(got.Others) != 1 {
		t.Errorf("%s, others %d\nwant %s", ids, len(got.Others), want)
	}
	if m := got.Comments[1].Message; m != "[host-6] rename it" {
		t.Error(m)
	}
	if c := got.Comments[2]; c.Line != 0 || c.Message != "[c3] about line 1, which the change removes: removed" {
		t.Errorf("%+v", c)
	}
	file, err := comments.Load(s.Dir)
	if err != nil || len(file.Comments) != 5 || file.Comments[0].Text != "why? ***" || file.Comments[2].Side != comments.Old {
		t.Errorf("%+v, %v", file, err)
	}
	again := state(t, s, of)
	if file, err := comments.Load(s.Dir); err != nil || len(file.Comments) != 5 || len(again.Comments) != len(got.Comments) {
		t.Errorf("%d comments are stored, %v", len(file.Comments), err)
	}
	b.set(func(p *forge.PullRequest) {
		p.Changes = true
		p.Comments = []forge.Comment{{ID: "5", By: "ann", Trusted: true, Text: "not yet"}, {ID: "20", By: "ann", Trusted: true, Text: "an answer", Answers: "5"}}
	})
	if got := state(t, s, of); len(got.Comments) != 1 || got.Comments[0].Remote != "5" {
		t.Errorf("%+v", got.Comments)
	}
}

// A person who uses the same account as coven comments as everybody does, also with a quoted reply of coven. Only coven's own replies are none, and no other
// account can write one.
func TestOwnComments(t *testing.T) {
	b := newBench(t)
	s, of := b.inSession(t)
	if refused, err := s.Reply(t.Context(), of, "1", "Renamed it."); err != nil || refused != "" {
		t.Fatal(err)
	}
	reply := strings.TrimPrefix(b.host.acts[0], "reply ")
	if !strings.HasPrefix(reply, "<!-- coven:reply ") || !strings.HasSuffix(reply, " -->\nRenamed it.") || replyMark("1") == replyMark("2") || strings.Contains(replyMark("a-->"), "a") {
		t.Errorf("%q, %q", reply, replyMark("a-->"))
	}
	b.set(func(p *forge.PullRequest) {
		for id, c := range []forge.Comment{
			{Own: true, Text: "why?"},
			{Own: true, Text: reply},
			{Own: true, Text: "> " + strings.ReplaceAll(reply, "\n", "\n> ") + "\n\nWrong name."},
			{Text: reply},
			{Own: true, Text: "See\n" + reply},
		} {
			c.ID, c.By, c.Trusted, c.Path, c.Line, c.Commit = fmt.Sprint(id), "me", true, "a", 1, of.Tip
			p.Comments = append(p.Comments, c)
		}
	})
	var ids []string
	got := state(t, s, of)
	for _, c := range got.Comments {
		ids = append(ids, c.Remote)
	}
	if !slices.Equal(ids, []string{"0", "2", "3", "4"}) || !slices.Equal(got.Replied, []string{"1"}) {
		t.Errorf("%q, replied to %q", ids, got.Replied)
	}
}

// The host's refusal of a reply is told apart from a failure that passes.
func TestReplyRefused(t *testing.T) {
	b := newBench(t)
	s, of := b.inSession(t)
	for _, tt := range []struct {
		err     error
		refused string
	}{
		{fs.ErrPermission, "permission denied"},
		{fmt.Errorf("token-secret\nis locked: %w", fs.ErrNotExist), "*** is locked: file does not exist"},
		{errors.New("422"), "422"},
		{pluginerr.ErrUnsupported, "not supported"},
		{pluginerr.ErrTransient, ""},
		{pluginerr.ErrLogin, ""},
		{pluginerr.ErrGone, ""},
		{context.DeadlineExceeded, ""},
		{context.Canceled, ""},
	} {
		b.host.replyErr = tt.err
		refused, err := s.Reply(t.Context(), of, "1", "Renamed it.")
		if refused != tt.refused || (err != nil) != (tt.refused == "") || err != nil && !errors.Is(err, tt.err) {
			t.Errorf("%v: %q, %v", tt.err, refused, err)
		}
	}
}

// Strangers cannot use up the comments of a review.
func TestManyStrangers(t *testing.T) {
	b := newBench(t)
	s, of := b.inSession(t)
	b.set(func(p *forge.PullRequest) {
		for i := range comments.Max {
			p.Comments = append(p.Comments, forge.Comment{ID: fmt.Sprint("s", i), By: "eve", Text: "spam", Path: "a", Line: 1, Commit: of.Tip})
		}
		p.Comments = append(p.Comments, forge.Comment{ID: "1", By: "ann", Trusted: true, Text: "why?", Path: "a", Line: 1, Commit: of.Tip})
	})
	got := state(t, s, of)
	if len(got.Comments) != 1 || !strings.HasPrefix(got.Comments[0].ID, "c") || len(got.Others) != comments.Max {
		t.Errorf("%+v, %d", got.Comments, len(got.Others))
	}
}

// The merged commit is found wherever the host has it.
func TestMerged(t *testing.T) {
	b := newBench(t)
	s, of := b.inSession(t)
	git(t, b.dir, "push", "-q", "origin", "HEAD:refs/heads/next")
	origin := git(t, b.dir, "config", "remote.origin.url")
	tree := git(t, b.dir, "rev-parse", "HEAD^{tree}")
	commit := func(branch string) string {
		id := git(t, origin, "commit-tree", "-p", "main", "-m", branch, "main^{tree}")
		git(t, origin, "update-ref", "refs/heads/"+branch, id)
		return id
	}
	merged := func(commit, base string) func(*forge.PullRequest) {
		return func(p *forge.PullRequest) { p.State, p.Commit, p.Base = forge.Merged, commit, base }
	}
	b.set(merged("", "main"))
	if got := state(t, s, of); got.Commit != of.Tip || got.Tree != tree || got.Target != of.Target || !got.Contains {
		t.Errorf("merged by a push: %+v", got)
	}
	next := commit("next")
	b.set(merged(next, "next"))
	if got := state(t, s, of); got.Commit != next || got.Tree != tree || got.Target != "refs/remotes/origin/next" {
		t.Errorf("another base: %+v", got)
	}
	lost := commit("lost")
	git(t, origin, "update-ref", "-d", "refs/heads/lost")
	b.set(merged(lost, "lost"))
	if got := state(t, s, of); got.Commit != lost || got.Tree != tree {
		t.Errorf("a base that was deleted: %+v", got)
	}
	wait := (*runner.Wait)(nil)
	for _, no := range []string{strings.Repeat("1", 40), "", "--help"} {
		other := of
		if no == "" {
			other.Tip = strings.Repeat("2", 40)
		}
		b.set(merged(no, "main"))
		if _, err := s.State(t.Context(), other); !errors.As(err, &wait) || !wait.Until.Equal(b.now.Add(retryPause)) {
			t.Errorf("%q: %v", no, err)
		}
	}
}

// A later session of a task replaces the branch that an earlier one pushed, and not the branch of another task.
func TestEarlierSession(t *testing.T) {
	b := newBench(t)
	s, of := b.inSession(t)
	first := of.Tip
	git(t, b.dir, "push", "-q", "origin", first+":refs/heads/coven/t")
	git(t, b.dir, "commit", "-q", "--amend", "--allow-empty", "-m", "rewritten")
	candidate := event.Landing{Target: of.Target, Tip: git(t, b.dir, "rev-parse", "HEAD"), Tree: "t"}
	for i, task := range []string{"other", "t"} {
		earlier, err := session.Create(b.Repo.Root, task, task, b.Now)
		if err != nil {
			t.Fatal(err)
		}
		err = errors.Join(earlier.Append(event.Event{Type: event.SessionStarted}, event.Session{}), earlier.Append(event.Event{Type: event.PullPublished}, of), earlier.Close())
		if err != nil {
			t.Fatal(err)
		}
		if _, err = s.Publish(t.Context(), candidate, nil, "x", "y"); (err == nil) != (i == 1) {
			t.Errorf("%s: %v", task, err)
		}
	}
}

// The task on whose change another one is stacked has landed, is over without that, or must land first.
func TestBelow(t *testing.T) {
	b := newBench(t)
	finder := session.NewFinder(b.Repo.Root)
	below, err := session.Create(b.Repo.Root, "below", "below", b.Now)
	if err != nil {
		t.Fatal(err)
	}
	check := func(want string) {
		t.Helper()
		target, orphaned := Below(finder, "below")
		if got := orphaned + " " + target; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	step := func(kind event.Type, data any) {
		if err := below.Append(event.Event{Type: kind}, data); err != nil {
			t.Fatal(err)
		}
	}
	step(event.SessionStarted, event.Session{Target: "refs/remotes/origin/main"})
	check(" ")
	step(event.SessionFailed, event.Ended{Rejected: true})
	check("rejected ")
	step(event.SessionCompleted, event.Ended{})
	check(" refs/remotes/origin/main")
	step(event.LandDone, event.Landing{New: "n", Target: "refs/remotes/origin/next"})
	check(" refs/remotes/origin/next")
	for _, no := range []string{"", "unknown"} {
		if target, orphaned := Below(finder, no); target+orphaned != "" {
			t.Errorf("%q: %q, %q", no, target, orphaned)
		}
	}
}
