package worktree

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/ref"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/land"
)

// A LostBranch is the branch of a task that a person has renamed or deleted, and that was created again.
type LostBranch struct {
	Name string // coven/x
	Tip  string // the commit where it is now
	Now  string // the branch that is checked out in the worktree, such as its new name; empty if there is none
}

func (b LostBranch) String() string {
	if b.Now != "" {
		return fmt.Sprintf("branch %s was gone; it was created again at %.10s, the tip of %s, which is yours", b.Name, b.Tip, b.Now)
	}
	return fmt.Sprintf("branch %s was gone; it was created again at %.10s", b.Name, b.Tip)
}

// HasLostBranch reports whether a worktree exists without its branch.
func HasLostBranch(ctx context.Context, w *repo.Worktree) (bool, error) {
	rec, err := w.Repo.ReadRecord(w.Name)
	if err != nil || !rec.Ready || !file.Exists(w.Path) {
		return false, nil //nolint:nilerr // it has never had one, or it is not complete
	}
	tip, err := w.TipIfAny(ctx)
	return tip == "" && err == nil, err
}

// RestoreBranch creates the branch of a task again if a person has renamed or deleted it while the worktree exists: at the
// commit that is checked out there, if it descends from the commit where the task started, or else at the last such commit
// in the reflog of the worktree, or where the task started. The files do not change: changes of lost commits become uncommitted changes.
// ok is false if there is nothing to restore.
func RestoreBranch(ctx context.Context, w *repo.Worktree) (b LostBranch, ok bool, err error) {
	if lost, err := HasLostBranch(ctx, w); err != nil || !lost {
		return b, false, err
	}
	l, err := w.Lock(ctx, "restore branch")
	if err != nil {
		return b, false, err
	}
	defer l.Release()
	if lost, err := HasLostBranch(ctx, w); err != nil || !lost {
		return b, false, err
	}
	b, err = restoreBranch(ctx, w)
	return b, err == nil, err
}

// restoreBranch is RestoreBranch for a branch that is gone. The caller holds the task's lock.
func restoreBranch(ctx context.Context, w *repo.Worktree) (LostBranch, error) {
	b := LostBranch{Name: w.Branch}
	rec, err := w.Repo.ReadRecord(w.Name)
	if err != nil {
		return b, err
	}
	head, now := headOf(ctx, w)
	candidates := []string{head}
	if last, err := lastCommit(ctx, w.Repo, w.Name); err == nil {
		candidates = append(candidates, last)
	}
	b.Tip = rec.Base
	for i, oid := range candidates {
		if oid == "" {
			continue
		}
		if own, err := w.Repo.Git().IsAncestor(ctx, rec.Base, oid); err == nil && own {
			if b.Tip = oid; i == 0 {
				b.Now = now
			}
			break
		}
	}
	err = w.Repo.Transact(ctx, w.Repo.Git(), "coven: restore branch", ref.Create(names.HeadsPrefix+w.Branch, b.Tip))
	failpoint.Point("branch.restored")
	if err != nil {
		return b, fmt.Errorf("restore branch %s: %w", w.Branch, err)
	}
	return b, nil
}

// headOf returns the commit that is checked out in a worktree, or "", and the name of its branch, or "". The file is one that
// an agent can write.
func headOf(ctx context.Context, w *repo.Worktree) (oid, branch string) {
	raw, err := file.Read(filepath.Join(w.Admin, "HEAD"), object.MaxGitFile)
	text := strings.TrimSpace(string(raw))
	if err != nil || object.IsID(text) {
		return text, ""
	}
	name, isRef := strings.CutPrefix(text, "ref: ")
	branch, isBranch := strings.CutPrefix(name, names.HeadsPrefix)
	if !isRef || !isBranch {
		return "", ""
	}
	if oid, err = w.Repo.Git().Ref(ctx, name); err != nil {
		return "", ""
	}
	return oid, branch
}

// BranchInUse returns a checkout that has the branch checked out, or "".
func BranchInUse(ctx context.Context, r *repo.Repo, branch string) (string, error) {
	name := names.HeadsPrefix + branch
	if _, err := r.Git().Ref(ctx, name); errors.Is(err, ref.ErrNoRef) {
		return "", nil
	}
	used, err := land.CheckoutsOf(ctx, r, name, nil)
	if err != nil || len(used) == 0 {
		return "", err
	}
	return used[0].Path, nil
}
