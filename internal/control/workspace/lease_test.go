package workspace

import (
	"context"
	"errors"
	"os/exec"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/internal/sandbox"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task/holder"
	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/claim"
)

// newWorkspace returns a workspace of task t in a new repository, on a machine without a sandbox.
func newWorkspace(t *testing.T) *Workspace {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	for _, argv := range [][]string{{"init", "-q"}, {"-c", "user.name=T", "-c", "user.email=t@example.invalid", "commit", "-q", "--allow-empty", "-m", "first"}} {
		git(t, dir, argv...)
	}
	repo, err := worktree.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return &Workspace{
		Repo: repo, Session: newSession(t, repo.Root, "t"), Task: "t", Base: "HEAD", Holder: holder.Name(),
		Sandbox: sandbox.New(sandbox.Options{
			Getenv: func(string) string { return "" }, Enforcement: func() process.Enforcement { return process.Enforcement{} },
			Temp: t.TempDir(), Root: repo.Root, GitDir: repo.GitDir,
		}),
	}
}

// git runs git in a directory.
func git(t *testing.T, dir string, argv ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", argv...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", argv, err, out)
	}
}

// newSession creates a session that runs until the test ends.
func newSession(t *testing.T, root, task string) *session.Session {
	t.Helper()
	record, err := session.Create(root, task, task, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = record.Close() })
	if err := record.Append(event.Event{Type: event.SessionStarted}, event.Session{}); err != nil {
		t.Fatal(err)
	}
	return record
}

// A running session renews its claim, and ends when it has lost it.
func TestLease(t *testing.T) {
	s := newWorkspace(t)
	repo, record := s.Repo, s.Session
	first, err := s.Claim(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := s.Keep(t.Context(), 5*time.Millisecond)
	defer stop()
	renewed := awaitLease(t, func() (claim.Held, bool) {
		held, err := claim.Of(t.Context(), repo, "t")
		return held, err == nil && held.Oid != first.Oid
	})
	if ctx.Err() != nil || renewed.Session != record.ID || time.Until(renewed.Expires) > leaseTime || time.Until(renewed.Expires) < leaseTime/2 {
		t.Errorf("renewed: %+v, %v", renewed, ctx.Err())
	}
	awaitLease(t, func() (bool, bool) {
		held, err := claim.Of(t.Context(), repo, "t")
		return true, err == nil && claim.Release(t.Context(), repo, "t", held.Oid) == nil
	})
	select {
	case <-ctx.Done():
	case <-time.After(leasePatience):
		t.Fatal("the session goes on without its claim")
	}
	if cause := context.Cause(ctx); !errors.Is(cause, claim.ErrClaimLost) && !errors.Is(cause, claim.ErrNoClaim) {
		t.Errorf("it ended because: %v", cause)
	}
}

// leasePatience limits the wait for an expected state.
const leasePatience = time.Minute

// awaitLease calls look until it succeeds.
func awaitLease[T any](t *testing.T, look func() (T, bool)) T {
	t.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(leasePatience); time.Now().Before(deadline); <-ticker.C {
		if seen, ok := look(); ok {
			return seen
		}
	}
	t.Fatal("it never came")
	panic("not reached")
}
