// Package commit commits the content of a worktree. It runs the repository's hooks and refuses files that
// look like secrets or mistakes.
package commit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/lock"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/ref"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/internal/submodule"
)

// A Request describes a commit of a worktree's content.
type Request struct {
	Message   string     // subject, and a body after an empty line
	Trailers  []string   // "Coven-Task: x"
	TargetTip string     // the target's commit, which provides the reserved paths
	Target    string     // the ref of the target, which may have moved; "" means TargetTip
	Hooks     HookRunner // nil to run none of the repository's commit hooks
	Allow     []string   // suspect paths that the user has approved
	// Merge is the target's commit that was merged into the files (Conflicted.TargetTip). It becomes the
	// second parent. A commit is then created even if the files have not changed, unless the branch already
	// contains Merge.
	Merge string
}

// A Commit is the result of Create.
type Commit struct {
	Oid, Tree string
	Files     []string // changed files
	LeftOut   []LeftOut
	Empty     bool // there was nothing to commit, and Oid is the unchanged tip
}

// LeftOut is a new path that is not part of the commit, although git does not ignore it.
type LeftOut = content.LeftOut

// Create commits everything in the worktree that is neither ignored nor LeftOut to the task's branch, on top of any commits
// by the agent. It makes `git status` in the worktree clean.
//
// Hooks run in git's order: pre-commit (after which the files are read again), prepare-commit-msg,
// commit-msg, post-commit. The error is a *HookError if a hook fails; a *SuspectError for files that should
// not be in a repository, even if the agent committed them; and, after MergeConflicted or with Merge, an
// *UnresolvedError if conflicts remain; a *MarkersError for other conflict markers. None of these errors changes the branch.
func Create(ctx context.Context, w *repo.Worktree, req Request) (Commit, error) {
	if strings.TrimSpace(req.Message) == "" {
		return Commit{}, errors.New("commit: empty message")
	}
	l, err := w.Lock(ctx, "commit")
	if err != nil {
		return Commit{}, err
	}
	defer l.Release()
	if err := integrate.FinishInterrupted(ctx, w, l); err != nil {
		return Commit{}, err
	}
	if req.TargetTip == "" {
		req.TargetTip = req.Merge
	}
	c, err := beginCommit(ctx, w, req, l)
	if err != nil {
		return Commit{}, fmt.Errorf("commit %s: %w", w.TaskID, err)
	}
	defer c.ix.Drop()
	done, err := c.run(ctx)
	if err != nil {
		return Commit{}, fmt.Errorf("commit %s: %w", w.TaskID, w.OrMissing(err))
	}
	return done, nil
}

type committing struct {
	w   *repo.Worktree
	req Request
	ix  *content.Index
	tip object.Commit
	// merge is the merged commit. It may be empty.
	merge string
	// rebases means that the target has dropped the start of the change. The merged commit is then the only parent, so that the
	// branch no longer contains dropped commits.
	rebases bool
	base    string // see fork
	left    []LeftOut
}

func beginCommit(ctx context.Context, w *repo.Worktree, req Request, l *lock.Lock) (*committing, error) {
	oid, err := w.Tip(ctx)
	if err != nil {
		return nil, err
	}
	tip, err := w.Repo.Git().Commit(ctx, oid)
	if err != nil {
		return nil, err
	}
	c := &committing{w: w, req: req, tip: tip}
	if req.Merge != "" {
		if c.merge, c.rebases, err = toMerge(ctx, w, oid, req.Merge); err != nil {
			return nil, err
		}
	}
	g := w.Git()
	g.Hold = l.File()
	c.ix, err = content.Open(w, g, content.CommitIndex)
	return c, err
}

// toMerge returns the object ID of the commit to merge, or "" if the branch already contains it, and whether the branch is
// rebased on it.
func toMerge(ctx context.Context, w *repo.Worktree, tip, merge string) (oid string, rebases bool, err error) {
	commit, err := w.Repo.Git().Commit(ctx, merge)
	if err != nil {
		return "", false, err
	}
	start, err := w.StartOf(ctx, tip, commit.Oid)
	if err != nil || start.Commit == commit.Oid {
		return "", false, err
	}
	return commit.Oid, start.Dropped, nil
}

func (c *committing) run(ctx context.Context) (Commit, error) {
	tree, err := c.stage(ctx)
	if err != nil {
		return Commit{}, err
	}
	hooks, err := Hooks(ctx, c.w, c.req.Hooks, c.ix)
	if err != nil {
		return Commit{}, err
	}
	defer hooks.Drop()
	if tree != c.tip.Tree && hooks.Has(PreCommit) {
		if tree, err = c.preCommit(ctx, hooks, tree); err != nil {
			return Commit{}, err
		}
	}
	if err := integrate.Unresolved(ctx, c.w, tree, c.tip.Oid, c.merge); err != nil {
		return Commit{}, err
	}
	if err := c.inspect(ctx, tree); err != nil {
		return Commit{}, err
	}
	failpoint.Point("commit.staged")
	if tree == c.tip.Tree && c.merge == "" {
		return Commit{Oid: c.tip.Oid, Tree: tree, LeftOut: c.left, Empty: true}, c.ix.Publish()
	}
	message, err := hooks.Message(ctx, WithTrailers(c.req.Message, c.req.Trailers),
		PrepareHook(), MessageHook{Name: CommitMsg})
	if err != nil {
		return Commit{}, err
	}
	done, err := c.record(ctx, tree, message)
	if err != nil {
		return Commit{}, err
	}
	hooks.after(ctx)
	if err := errors.Join(c.ix.Publish(), integrate.ForgetConflict(c.w), submodule.SetLeft(c.w, nil)); err != nil {
		return done, err
	}
	failpoint.Point("commit.published")
	return done, nil
}

// preCommit runs the pre-commit hook, and returns the tree with its changes. A hook that fails because it has changed files, as that
// of the pre-commit framework does, runs once more on its own changes.
func (c *committing) preCommit(ctx context.Context, hooks *HookSet, tree string) (string, error) {
	refused := hooks.Run(ctx, PreCommit)
	if refused != nil && !errors.As(refused, new(*HookError)) {
		return "", refused
	}
	changed, err := c.stage(ctx)
	if err != nil {
		return "", cmp.Or(refused, err)
	}
	if refused == nil || changed == tree {
		return changed, refused
	}
	if err := hooks.Run(ctx, PreCommit); err != nil {
		return "", err
	}
	return c.stage(ctx)
}

// invalidPath matches git's message about a name that it does not put into an index.
var invalidPath = lazyregexp.New(`(?m)^error: [Ii]nvalid path '(.*)'$`)

func (c *committing) stage(ctx context.Context) (string, error) {
	names, err := c.ix.Unstageable(ctx)
	if err != nil {
		return "", err
	}
	tree, err := c.ix.StageFor(ctx, c.tip.Oid, c.req.TargetTip)
	if failed, ok := errors.AsType[*git.Error](err); ok {
		if match := invalidPath.FindStringSubmatch(failed.Stderr); match != nil { // the agent has committed it
			names = append(names, match[1])
		}
	}
	if len(names) > 0 {
		refused := &SuspectError{}
		for _, name := range names {
			refused.Files = append(refused.Files, Suspect{name, "a name that another system takes for .git"})
		}
		return "", refused
	}
	if c.left = c.ix.LeftOut; err != nil {
		return tree, err
	}
	return c.dropLeftOut(ctx, tree)
}

// dropLeftOut removes paths from the staged tree that an agent has committed, and that would otherwise be left out.
func (c *committing) dropLeftOut(ctx context.Context, tree string) (string, error) {
	g := c.w.Repo.Git()
	fork, err := c.fork(ctx)
	if err != nil || fork == c.tip.Oid {
		return tree, err
	}
	changes, err := g.Changes(ctx, fork, tree)
	if err != nil {
		return "", err
	}
	links := map[string][]string{} // by object ID
	for _, change := range changes {
		if change.Status == 'A' && change.Mode == "120000" {
			links[change.Oid] = append(links[change.Oid], change.Path)
		}
	}
	targets := map[string]string{}
	err = g.Objects(ctx, slices.Collect(maps.Keys(links)), func(o object.Object, body io.Reader) error {
		target, err := io.ReadAll(io.LimitReader(body, maxTarget))
		for _, p := range links[o.Oid] {
			targets[p] = string(target)
		}
		return err
	})
	if err != nil {
		return "", err
	}
	left, err := c.ix.DropLeftOut(ctx, fork, changes, targets)
	if err != nil || len(left) == 0 {
		return tree, err
	}
	c.left = append(c.left, left...)
	slices.SortFunc(c.left, func(a, b LeftOut) int { return strings.Compare(a.Path, b.Path) })
	return c.ix.WriteTree(ctx)
}

// maxTarget limits the target of a link, in bytes. The kernel has the same limit.
const maxTarget = 4096

// fork returns the commit at which the branch left the target, or the merged commit.
func (c *committing) fork(ctx context.Context) (string, error) {
	if c.base = cmp.Or(c.base, c.merge); c.base != "" {
		return c.base, nil
	}
	target := c.req.TargetTip
	if c.req.Target != "" {
		now, err := c.w.Repo.Git().Ref(ctx, c.req.Target)
		if err != nil && !errors.Is(err, ref.ErrNoRef) {
			return "", err
		}
		target = cmp.Or(now, target)
	}
	var err error
	start, err := c.w.StartOf(ctx, c.tip.Oid, target)
	c.base = start.Commit
	return c.base, err
}

// record creates the commit and moves the branch.
func (c *committing) record(ctx context.Context, tree, message string) (Commit, error) {
	changes, err := c.ix.Git.Changes(ctx, c.tip.Tree, tree)
	if err != nil {
		return Commit{}, err
	}
	done := Commit{Tree: tree, LeftOut: c.left}
	for _, change := range changes {
		done.Files = append(done.Files, change.Path)
	}
	parents, err := c.parents()
	if err != nil {
		return Commit{}, err
	}
	if done.Oid, err = c.w.Repo.MakeCommit(ctx, tree, message, nil, parents...); err != nil {
		return Commit{}, err
	}
	failpoint.Point("commit.made")
	edit := ref.Move(names.HeadsPrefix+c.w.Branch, done.Oid, c.tip.Oid)
	if err := c.w.Repo.Transact(ctx, c.ix.Git, "coven: commit", edit); err != nil {
		return Commit{}, err
	}
	failpoint.Point("commit.moved")
	return done, nil
}

// parents returns the parents of the commit, and records the merge.
func (c *committing) parents() ([]string, error) {
	switch {
	case c.merge == "":
		return []string{c.tip.Oid}, nil
	case c.rebases:
		return []string{c.merge}, c.w.RecordMerged(c.merge, c.tip.Oid)
	}
	return []string{c.tip.Oid, c.merge}, c.w.RecordMerged(c.merge, "")
}
