package worktree

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/ref"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// ErrBranch means that worktree.branch gives a task a branch that it cannot have.
var ErrBranch = exit.Sentinel(exit.Usage, "coven help worktrees", "change worktree.branch")

// A BranchNameError means that the branch of a task cannot be created, because another branch is in the way: git stores
// branches as files.
type BranchNameError struct{ Branch, Taken string }

func (e *BranchNameError) Error() string {
	if e.Branch == e.Taken {
		return fmt.Sprintf("the branch %s exists, and is not that of the task", e.Branch)
	}
	return fmt.Sprintf("git cannot create the branch %s while there is a branch %s", e.Branch, e.Taken)
}

// CommandExit returns exit.Usage.
func (e *BranchNameError) CommandExit() int { return exit.Usage }

// NextCommand returns the command that renames the other branch.
func (e *BranchNameError) NextCommand() string {
	return "git branch -m " + shellword.Word(e.Taken) + " NEW-NAME"
}

// A TaskTitle has the parts of a task's branch: see repo.Repo.BranchTemplate.
type TaskTitle struct{ ID, Slug string }

// CheckBranches returns an error if git cannot create the branches of tasks, if another task has one of them, or if two
// tasks would have the same one.
func CheckBranches(ctx context.Context, r *repo.Repo, tasks ...TaskTitle) error {
	sample := r.NewBranch("TASK", "TITLE")
	if err := checkParents(ctx, r, sample); err != nil {
		return err
	}
	if r.BranchTemplate != "" {
		if err := checkFormat(ctx, r, sample); err != nil {
			return err
		}
	}
	planned := map[string]string{} // tasks by their branches
	for _, task := range tasks {
		if err := checkBranch(ctx, r, task); err != nil {
			return err
		}
		if isRecorded(r, task.ID) {
			continue
		}
		branch := strings.ToLower(r.NewBranch(task.ID, task.Slug))
		if other := planned[branch]; other != "" && other != task.ID && r.BranchTemplate != "" {
			return fmt.Errorf("tasks %s and %s would both have the branch %s: %w", other, task.ID, branch, ErrBranch)
		}
		planned[branch] = task.ID
	}
	return nil
}

// CheckPlace returns an error if new worktrees cannot be created, unless each of the tasks has one.
func CheckPlace(r *repo.Repo, tasks ...TaskTitle) error {
	if len(tasks) > 0 && !slices.ContainsFunc(tasks, func(t TaskTitle) bool { return !isRecorded(r, t.ID) }) {
		return nil
	}
	return r.CheckPlace()
}

// isRecorded reports whether a task has a worktree, or remains of one, and therefore its branch.
func isRecorded(r *repo.Repo, taskID string) bool {
	rec, err := r.ReadRecord(names.SafeName(taskID))
	return err == nil && rec.Task == taskID
}

// checkBranch is CheckBranches for one task.
func checkBranch(ctx context.Context, r *repo.Repo, task TaskTitle) error {
	branch, recorded := r.NewBranch(task.ID, task.Slug), isRecorded(r, task.ID)
	if recorded {
		branch = r.BranchOf(task.ID)
	}
	mayExist := recorded || branch == names.Branch(task.ID) // the latter may be left over from an earlier run
	if !mayExist {
		if err := errors.Join(checkFormat(ctx, r, branch), checkParents(ctx, r, branch), checkRemotes(ctx, r, branch)); err != nil {
			return fmt.Errorf("task %s: %w", task.ID, err)
		}
	}
	taken, err := branchesBeside(ctx, r, branch)
	if err != nil {
		return err
	}
	for _, other := range taken {
		below := strings.HasPrefix(other, branch+"/")
		if below || !mayExist && other == branch {
			return &BranchNameError{Branch: branch, Taken: other}
		}
		if other != branch && strings.EqualFold(other, branch) && ignoresCase(ctx, r) {
			return &BranchNameError{Branch: branch, Taken: other}
		}
	}
	return nil
}

// branchesBeside lists the branches in the directory of a branch and below, and those that tasks have, without
// refs/heads/.
func branchesBeside(ctx context.Context, r *repo.Repo, branch string) ([]string, error) {
	dir := ""
	if parent := path.Dir(branch); parent != "." {
		dir = parent + "/"
	}
	refs, err := r.Git().Refs(ctx, names.HeadsPrefix+dir)
	if err != nil {
		return nil, fmt.Errorf("check the names of branches: %w", err)
	}
	owners, err := r.BranchOwners()
	if err != nil {
		return nil, fmt.Errorf("check the names of branches: %w", err)
	}
	var taken []string
	for _, found := range refs {
		taken = append(taken, strings.TrimPrefix(found.Name, names.HeadsPrefix))
	}
	for name := range owners { // a branch that was deleted is created again
		taken = append(taken, strings.TrimPrefix(name, names.HeadsPrefix))
	}
	return taken, nil
}

// checkFormat returns an error unless git accepts the name of a branch.
func checkFormat(ctx context.Context, r *repo.Repo, branch string) error {
	err := r.Git().Run(ctx, "check-ref-format", names.HeadsPrefix+branch)
	if git.ExitCode(err) > 0 || branch == "HEAD" || strings.HasPrefix(branch, "-") {
		return fmt.Errorf("git does not accept the name %q of a branch: %w", branch, ErrBranch)
	}
	return err
}

// checkParents returns a *BranchNameError if a directory of the branch is a branch.
func checkParents(ctx context.Context, r *repo.Repo, branch string) error {
	for parent := path.Dir(branch); parent != "."; parent = path.Dir(parent) {
		if _, err := r.Git().Ref(ctx, names.HeadsPrefix+parent); err == nil {
			return &BranchNameError{Branch: branch, Taken: parent}
		} else if !errors.Is(err, ref.ErrNoRef) {
			return fmt.Errorf("check the names of branches: %w", err)
		}
	}
	return nil
}

// checkRemotes returns an error if a remote has the branch: the task's would be taken for it.
func checkRemotes(ctx context.Context, r *repo.Repo, branch string) error {
	const remotes = "refs/remotes/"
	refs, err := r.Git().Refs(ctx, remotes)
	if err != nil {
		return fmt.Errorf("check the names of branches: %w", err)
	}
	for _, found := range refs {
		remote, name, _ := strings.Cut(strings.TrimPrefix(found.Name, remotes), "/")
		if name == branch {
			return fmt.Errorf("the branch %s exists on %s: %w", branch, remote, ErrBranch)
		}
	}
	return nil
}

// ignoresCase reports whether the file system of the repository does not distinguish upper and lower case.
func ignoresCase(ctx context.Context, r *repo.Repo) bool {
	settings, err := r.Git().Configured(ctx, `^core\.ignorecase$`, false)
	return err == nil && len(settings) > 0 && settings[len(settings)-1].Value == "true"
}
