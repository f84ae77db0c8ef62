package worktree

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/ref"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/isolation"
)

// A MissingObject is an object that a ref of coven's or a task's branch names, and that is missing, as after a power
// failure. Operations that read the ref fail.
type MissingObject struct{ Ref, Oid string }

// MissingObjects lists them by the names of the refs.
func MissingObjects(ctx context.Context, r *repo.Repo) ([]MissingObject, error) {
	refs, err := Refs(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("find missing objects: %w", err)
	}
	var oids []string
	for _, one := range refs {
		oids = append(oids, one.Oid)
	}
	kinds, err := r.Git().Kinds(ctx, oids)
	if err != nil {
		return nil, fmt.Errorf("find missing objects: %w", err)
	}
	var missing []MissingObject
	for _, one := range refs {
		if kinds[one.Oid] == "" {
			missing = append(missing, MissingObject{one.Name, one.Oid})
		}
	}
	return missing, nil
}

// Heal moves a task's branch back to the last commit in the reflog of its worktree that exists, and deletes another ref.
// It returns the new object, or "".
func Heal(ctx context.Context, r *repo.Repo, m MissingObject) (string, error) {
	owners, err := r.BranchOwners()
	if err != nil {
		return "", err
	}
	name, isBranch := owners.Task(m.Ref)
	if !isBranch {
		return "", r.Transact(ctx, r.Git(), "coven: heal", ref.Delete(m.Ref, m.Oid))
	}
	last, err := lastCommit(ctx, r, name)
	if err == nil && last == "" {
		err = fmt.Errorf("no commit of %s is left", m.Ref)
	}
	if err != nil {
		return "", err
	}
	return last, r.Transact(ctx, r.Git(), "coven: heal", ref.Move(m.Ref, last, m.Oid))
}

// lastCommit returns the last existing commit in the reflog of a task's worktree, or "".
func lastCommit(ctx context.Context, r *repo.Repo, name string) (string, error) {
	rec, err := r.ReadRecord(name)
	if err != nil || rec.Admin == "" {
		return "", err
	}
	log, err := file.Read(filepath.Join(r.GitDir, "worktrees", rec.Admin, "logs", "HEAD"), isolation.MaxHeadLog)
	if err != nil {
		return "", err
	}
	var commits []string
	for line := range strings.Lines(string(log)) {
		if fields := strings.Fields(line); len(fields) > 1 {
			commits = append(commits, fields[0], fields[1])
		}
	}
	kinds, err := r.Git().Kinds(ctx, commits)
	for _, commit := range slices.Backward(commits) {
		if kinds[commit] == "commit" {
			return commit, err
		}
	}
	return "", err
}
