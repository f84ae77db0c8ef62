package workspace

import (
	"errors"
	"testing"

	"github.com/coven-run/coven/runner"
)

// Commits that cannot be taken cause a RefusedError, unless the program itself has failed.
func TestIsolated(t *testing.T) {
	for _, failure := range []error{nil, errors.New("the program failed")} {
		s := newWorkspace(t)
		if _, err := s.Enter(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Isolated(t.Context(), func() error { return failure }); !errors.Is(err, failure) {
			t.Errorf("no commits: %v, want %v", err, failure)
		}
		err := s.Isolated(t.Context(), func() error {
			git(t, s.Worktree.Path, "symbolic-ref", "refs/heads/"+s.Worktree.Branch, "refs/heads/elsewhere")
			return failure
		})
		if refused := (*runner.RefusedError)(nil); errors.As(err, &refused) != (failure == nil) || failure != nil && !errors.Is(err, failure) {
			t.Errorf("after %v: %v", failure, err)
		}
	}
}
