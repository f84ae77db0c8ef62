package control_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
)

// face opens the repository as another process would.
func face(t *testing.T, dir string) *control.Controller {
	t.Helper()
	env := project.NewEnv("test")
	env.Workdir = func() (string, error) { return dir, nil }
	env.Self = func() (string, error) { return exec.LookPath("coven") }
	p, err := project.Open(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	c, err := control.New(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// If several processes answer at once, one answer is recorded: the change lands, or it is stored and does
// not land. The others get an error of refusal.go.
func TestAnswersAtOnce(t *testing.T) {
	_, remove := scratch()
	defer remove()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	landed := 0
	for round := range 4 {
		first := face(t, dir)
		item, err := first.Project.AdHoc(t.Context(), fmt.Sprintf("Write a poem, take %d", round))
		if err != nil {
			t.Fatal(err)
		}
		// The fake agent writes the same poem each time, so remove it first.
		removePoem(t, dir)
		out, err := first.Run(t.Context(), item, control.Options{Grimoire: "none"})
		if err != nil || !out.WaitsForReview() {
			t.Fatalf("round %d: %+v, %v", round, out, err)
		}
		before := git(t, dir, "rev-parse", "HEAD")
		won := answerAtOnce(t, dir, item.Task.ID, round)
		if len(won) != 1 {
			t.Fatalf("round %d: %d answers were taken: %v", round, len(won), won)
		}
		v, err := first.Project.Find(t.Context(), item.Task.ID)
		if err != nil {
			t.Fatal(err)
		}
		moved := git(t, dir, "rev-parse", "HEAD") != before
		switch won[0] {
		case control.OpApprove:
			landed++
			if v.Status != session.Completed || !moved {
				t.Errorf("round %d: approved: %s, the target moved: %v", round, control.StateOf(v), moved)
			}
		default:
			if v.Status == session.Completed || moved || git(t, dir, "for-each-ref", "refs/coven/rescue/"+item.Task.ID) == "" {
				t.Errorf("round %d: dismissed by %s: %s, the target moved: %v", round, won[0], control.StateOf(v), moved)
			}
		}
	}
	t.Logf("%d of 4 changes landed", landed)
}

// answerAtOnce lets six controllers answer at once, and returns the accepted answers.
func answerAtOnce(t *testing.T, dir, id string, round int) []control.Operation {
	t.Helper()
	answers := []control.Operation{control.OpApprove, control.OpReject, control.OpCancel, control.OpApprove, control.OpReject, control.OpApprove}
	var won []control.Operation
	var mu sync.Mutex
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range answers {
		op := answers[(i+round)%len(answers)]
		c := face(t, dir)
		all.Go(func() {
			<-start
			err := answer(context.WithoutCancel(t.Context()), c, op, id)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won = append(won, op)
				return
			}
			refused := errors.As(err, new(*control.StateError)) || errors.Is(err, session.ErrBusy) ||
				errors.As(err, new(*control.ChangedError)) || errors.Is(err, control.ErrLanded) || errors.Is(err, errStopped)
			if t.Logf("round %d: %s: %v", round, op, err); !refused {
				t.Errorf("%s: %T %v", op, err, err)
			}
		})
	}
	close(start)
	all.Wait()
	return won
}

// errStopped reports an approval whose session was cancelled before it landed.
var errStopped = errors.New("the session was stopped")

func answer(ctx context.Context, c *control.Controller, op control.Operation, id string) error {
	if op != control.OpApprove {
		return operations()[op](ctx, c, id)
	}
	out, err := c.Approve(ctx, control.ApproveRequest{Task: id})
	if err == nil && out.Status != session.Completed { // interrupted or, if another process has recorded it, cancelled
		return errStopped
	}
	return err
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func removePoem(t *testing.T, dir string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, "poem.txt")); err == nil {
		git(t, dir, "rm", "-q", "poem.txt")
		git(t, dir, "commit", "-q", "-m", "no poem")
	}
}

// waitingChange returns a controller of a new repository, and a task whose change waits for a review.
func waitingChange(t *testing.T) (c *control.Controller, id string) {
	t.Helper()
	_, remove := scratch()
	t.Cleanup(remove)
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	c = face(t, dir)
	item, err := c.Project.AdHoc(t.Context(), "Write a poem")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := c.Run(t.Context(), item, control.Options{Grimoire: "none"}); err != nil || !out.WaitsForReview() {
		t.Fatalf("%+v, %v", out, err)
	}
	return c, item.Task.ID
}

// An approval of an empty change, seen while the worktree was reset, does not approve the change that has
// come back since.
func TestApproveWhatWasSeen(t *testing.T) {
	c, id := waitingChange(t)
	for _, seen := range []string{"", "another"} {
		_, err := c.Approve(t.Context(), control.ApproveRequest{Task: id, Patch: &seen})
		if !errors.As(err, new(*control.ChangedError)) {
			t.Errorf("a person who saw the patch %q: got %v", seen, err)
		}
	}
	page, err := c.Page(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := c.Approve(t.Context(), control.ApproveRequest{Task: id, Patch: &page.Diff.PatchID}); err != nil || out.Status != session.Completed {
		t.Errorf("a person who saw the change: got %+v, %v", out, err)
	}
}

// A request for changes is recorded, the agent runs again, and the session asks again. A request about a
// change that has been replaced since records nothing.
func TestRevise(t *testing.T) {
	c, id := waitingChange(t)
	seen, err := c.Project.Find(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, blank := range [][]string{nil, {" \n"}, {"a.go:3: "}} {
		if _, err := c.Revise(t.Context(), control.ReviseRequest{Task: id, Comments: blank}); exit.Code(err) != exit.Usage {
			t.Errorf("%q: %v", blank, err)
		}
	}
	out, err := c.Revise(t.Context(), control.ReviseRequest{Task: id, Comments: []string{"shorter", "poem.txt:3: a rhyme\nis missing", "see https://example.org"}})
	if err != nil || !out.WaitsForReview() {
		t.Fatalf("%+v, %v", out, err)
	}
	v, err := c.Project.Find(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range v.Revisions {
		for _, f := range r.Changes {
			got = append(got, fmt.Sprintf("%s %s:%d %q", f.Severity, f.File, f.Line, f.Message))
		}
	}
	want := []string{`error :0 "shorter"`, `error poem.txt:3 "a rhyme\nis missing"`, `error :0 "see https://example.org"`}
	if !slices.Equal(got, want) || v.Review.Path != "revise@1/land#1" {
		t.Errorf("asked %q, want %q; waits at %s", got, want, v.Review.Path)
	}
	if _, err := c.Revise(t.Context(), control.ReviseRequest{Task: id, Seen: seen, Comments: []string{"late"}}); !errors.As(err, new(*control.ChangedError)) {
		t.Errorf("about a change that was seen before: %v", err)
	}
	if v, _ := c.Project.Find(t.Context(), id); len(v.Revisions) != 1 {
		t.Errorf("recorded %+v", v.Revisions)
	}
}
