package control_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/coven-run/coven/internal/control"
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

// Faces that answer at once get one answer recorded: the change lands, or it is stored and
// does not. Everyone else gets an error of refusal.go.
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
		// The fake agent writes the same poem each time: it is new if it is not there.
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
		v, err := first.Project.Find(item.Task.ID)
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

// answerAtOnce lets six faces answer, and returns the answers that were taken.
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
			refused := errors.As(err, new(*control.StateError)) || errors.As(err, new(*control.BusyError)) ||
				errors.As(err, new(*control.ChangedError)) || errors.As(err, new(*control.LandedError)) || errors.Is(err, errStopped)
			if !refused {
				t.Errorf("%s: %T %v", op, err, err)
			}
		})
	}
	close(start)
	all.Wait()
	return won
}

// errStopped reports an approval whose session was cancelled while it landed.
var errStopped = errors.New("the session was stopped")

func answer(ctx context.Context, c *control.Controller, op control.Operation, id string) error {
	if op != control.OpApprove {
		return operations()[op](ctx, c, id)
	}
	out, err := c.Approve(ctx, control.ApproveRequest{Task: id})
	if err == nil && out.Status == session.Interrupted {
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

// An approval of an empty change, seen while the worktree was reset, does not approve the
// change that is there again.
func TestApproveWhatWasSeen(t *testing.T) {
	_, remove := scratch()
	defer remove()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	c := face(t, dir)
	item, err := c.Project.AdHoc(t.Context(), "Write a poem")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := c.Run(t.Context(), item, control.Options{Grimoire: "none"}); err != nil || !out.WaitsForReview() {
		t.Fatalf("%+v, %v", out, err)
	}
	for _, seen := range []string{"", "another"} {
		_, err := c.Approve(t.Context(), control.ApproveRequest{Task: item.Task.ID, Patch: &seen})
		if !errors.As(err, new(*control.ChangedError)) {
			t.Errorf("a person who saw the patch %q: got %v", seen, err)
		}
	}
	page, err := c.Page(t.Context(), item.Task.ID)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := c.Approve(t.Context(), control.ApproveRequest{Task: item.Task.ID, Patch: &page.Diff.PatchID}); err != nil || out.Status != session.Completed {
		t.Errorf("a person who saw the change: got %+v, %v", out, err)
	}
}
