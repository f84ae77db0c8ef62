// Package workspace adapts a task's worktree, its claim and its landing to the runner's
// interfaces.
package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/coven-run/coven/internal/control/handover"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/internal/sandbox"
	"github.com/coven-run/coven/internal/secret"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/runner"
	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/claim"
	"github.com/coven-run/coven/worktree/commit"
	"github.com/coven-run/coven/worktree/diff"
	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/isolation"
	"github.com/coven-run/coven/worktree/rescue"
	"github.com/coven-run/coven/worktree/snapshot"
	"github.com/coven-run/coven/worktree/tripwire"
)

// Workspace is the worktree of one session's task. It implements the workspace, tripwire,
// landing and claims of package runner.
type Workspace struct {
	Repo     *worktree.Repo
	Session  *session.Session
	Launcher *process.Launcher
	Sandbox  *sandbox.Sandbox
	Network  *Network
	Environ  func() []string
	Secrets  *secret.Store
	Pass     []string
	Task     string
	Slug     string      // the title of the task, for the name of its branch
	Base     string      // commit that the worktree starts from
	Forked   *event.Fork // optional; its snapshot has the uncommitted files to start with
	Upstream string      // remote-tracking branch of Base; optional
	Target   worktree.Target
	Holder   string
	Attempt  int
	NoSync   bool              // a landing does not wait for the disk
	Allow    []string          // globs of new paths that land regardless of their names and targets
	Trailers []string          // of the commits, besides those of coven
	Signoff  bool              // the commits have a Signed-off-by trailer
	Link     []string          // directories of the main checkout that the worktree shows
	Teardown Teardown          // of the worktree, before Leave removes it
	Keeper   *handover.Keeper  // keeps the session on a remote; nil if none does
	Turns    Turns             // of machines to land; nil if there are none
	Warn     func(text string) // receives warnings; nil records them in the session, which is not over

	Worktree *worktree.Worktree

	mark *tripwire.Mark // of the last Watch

	mu   sync.Mutex // landing and renewing the claim exclude each other
	held claim.Held

	calls   calls
	proxied proxied
	warned  sync.Once         // about refusals by the sandbox
	leftOut map[string]bool   // paths that a warning has named
	linked  map[string]string // directories of the worktree, and those of the main checkout that programs see there
}

// Turns are the turns of machines to land on a branch.
type Turns interface {
	// Turn waits until no other machine lands on the branch.
	Turn(ctx context.Context, branch string) (release func(), err error)
}

// Enter finds or creates the worktree, and finishes the work of a killed coven. It returns the number of
// the worktree.
func (s *Workspace) Enter(ctx context.Context) (int, error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	return s.Worktree.Number, errors.Join(s.except(), s.hideIncludedSecrets(), s.report(ctx))
}

func (s *Workspace) enter(ctx context.Context) error {
	tree, err := s.Repo.Find(ctx, s.Task)
	if errors.Is(err, worktree.ErrNoWorktree) {
		if s.started() {
			return s.recreate(ctx)
		}
		tree, err = s.add(ctx)
	}
	if err != nil {
		return err
	}
	s.use(tree)
	if err := s.restoreBranch(ctx); err != nil {
		return err
	}
	if s.Upstream != "" { // worktrees of older versions lack it
		if err := s.Worktree.StartedAt(s.Base); err != nil {
			return err
		}
	}
	return errors.Join(s.collect(ctx), s.fork(ctx))
}

// add creates the worktree.
func (s *Workspace) add(ctx context.Context) (*worktree.Worktree, error) {
	on := s.Base // the commits of an upstream are not part of the change either
	if s.Upstream == "" {
		target, err := s.Repo.Target(ctx, s.Target.Ref)
		if err != nil {
			return nil, err
		}
		on = target.Tip
	}
	return worktree.Add(ctx, s.Repo, worktree.AddRequest{TaskID: s.Task, Slug: s.Slug, Base: s.Base, Target: on, SavedFirst: s.Forked == nil})
}

// restoreBranch creates the task's branch again if a person has renamed or deleted it.
func (s *Workspace) restoreBranch(ctx context.Context) error {
	lost, ok, err := worktree.RestoreBranch(ctx, s.Worktree)
	if ok {
		s.warn(lost.String())
	}
	return err
}

// use sets the worktree. Its merges run the merge drivers of the user's configuration in the sandbox, and git outside
// the sandbox refuses it while an agent works there.
func (s *Workspace) use(tree *worktree.Worktree) {
	tree.RunDriver = func(ctx context.Context, command, dir string) (bool, error) {
		spec := process.Spec{Argv: []string{"/bin/sh", "-c", command}, Dir: tree.Path, Timeout: hookTime}
		exit, _, err := s.RunWith(ctx, sandbox.Access{ReadOnly: true, Write: []string{dir}}, spec)
		return exit.OK(), err
	}
	tree.OwnGitFile = s.Sandbox.Replaces()
	s.Worktree = tree
}

// fork restores the files of another session in the worktree of a new one, and commits them as its first
// change. Before the first step starts, the worktree has no other changes.
func (s *Workspace) fork(ctx context.Context) error {
	if s.Forked == nil || s.Forked.Snapshot == "" || s.started() {
		return nil
	}
	if _, err := snapshot.StateAt(ctx, s.Repo, s.Forked.Snapshot); errors.Is(err, snapshot.ErrNone) { // coven was killed here long ago
		s.warn("the snapshot with the files of session " + s.Forked.Session + " is gone: the worktree has its last commit before")
		return nil
	}
	if err := s.Restore(ctx, s.Forked.Snapshot); err != nil {
		return fmt.Errorf("restore the files of session %s: %w", s.Forked.Session, err)
	}
	failpoint.Point("fork.restored")
	_, err := s.Commit(ctx, "Continue session "+s.Forked.Session, "")
	if refused := (*runner.RefusedError)(nil); errors.As(err, &refused) {
		s.warn("the files of session " + s.Forked.Session + " are not committed: " + refused.Reason)
		return nil
	}
	return err
}

// collect ends the isolation that a killed coven left behind. Commits that cannot be taken stay in the
// worktree's git directory.
func (s *Workspace) collect(ctx context.Context) error {
	err := isolation.TakeCommits(ctx, s.Worktree)
	if refused := (*isolation.CommitsError)(nil); errors.As(err, &refused) {
		s.warn(refused.Error())
		return nil
	}
	return err
}

// recreate creates the worktree again after it was deleted.
func (s *Workspace) recreate(ctx context.Context) error {
	tree, from, err := worktree.Recreate(ctx, s.Repo, s.Task, s.Session.ID)
	if errors.Is(err, worktree.ErrNoWorktree) {
		return fmt.Errorf("%w, branch or snapshot; run: coven reject %s --reason TEXT", err, shellword.Word(s.Task))
	}
	if err != nil {
		return err
	}
	s.use(tree)
	text := "the worktree was deleted; it was recreated from its branch (ignored files are gone)"
	if from.N > 0 {
		text = fmt.Sprintf("the worktree was deleted; it was recreated from snapshot %d (ignored files are gone)", from.N)
	}
	return s.Session.Append(event.Event{Type: event.Warning}, event.Text{Text: text})
}

// started reports whether a step of the session has started: its worktree exists then,
// unless it was deleted.
func (s *Workspace) started() bool {
	return s.Session.Journal.Has(event.StepStarted)
}

// Leave stores the unlanded contents of the worktree and removes it. A worktree with ignored files that are
// too large to store stays, unless it has landed and goes to the pool.
func (s *Workspace) Leave(ctx context.Context, landed string) (string, error) {
	kept, err := handover.WorkKept(ctx, s.Repo, s.Session.Dir, s.Base)
	if err != nil {
		return "", err
	}
	tree, err := worktree.Leftover(ctx, s.Repo, s.Task)
	if errors.Is(err, worktree.ErrNoWorktree) {
		s.forgetCaches(worktree.SafeName(s.Task), landed) // coven was killed before it removed them
		return "", kept.DropSnapshots(ctx, s.Repo, s.Session.ID)
	}
	if err != nil {
		return "", err
	}
	if err := s.TearDown(ctx, s.Teardown); err != nil {
		return "", err
	}
	req := worktree.RemoveRequest{Note: "session " + s.Session.ID, Landed: landed}
	if kept.Tip != "" {
		req.Landed, req.Tree = kept.Tip, kept.Tree
	}
	ref, err := worktree.Remove(ctx, tree, req)
	if err == nil {
		err = kept.DropSnapshots(ctx, s.Repo, s.Session.ID)
	}
	if err == nil {
		s.forgetCaches(tree.Name, landed)
		s.distrust(tree.Path)
		s.warnOfBranch(ctx, tree.Branch)
	}
	if large := (*worktree.LargeError)(nil); errors.As(err, &large) {
		return "", s.Session.Append(event.Event{Type: event.Warning}, event.Text{Text: fmt.Sprintf("the worktree stays: %v", large)})
	}
	if big := (*rescue.IgnoredError)(nil); errors.As(err, &big) {
		text := fmt.Sprintf("the worktree stays: %v; to delete them: coven worktree remove --drop-ignored %s", big, shellword.Word(s.Task))
		return "", s.Session.Append(event.Event{Type: event.Warning}, event.Text{Text: text})
	}
	if err == nil && ref != "" && landed != "" {
		text := "worktree files that did not land are stored: coven rescue show " + ref
		err = s.Session.Append(event.Event{Type: event.Warning}, event.Text{Text: text})
	}
	return ref, err
}

// warnOfBranch says that the branch of a task that is over stays because it is checked out.
func (s *Workspace) warnOfBranch(ctx context.Context, name string) {
	path, err := worktree.BranchInUse(ctx, s.Repo, name)
	if err != nil || path == "" {
		return
	}
	branch := shellword.Word(name)
	s.warn(fmt.Sprintf("branch %s stays, because it is checked out in %s; when you no longer need it: git switch %s && git branch -D %s",
		branch, path, shellword.Word(s.Target.Branch), branch))
}

// forgetCaches removes the caches of a task whose worktree is gone. Caches that cannot be removed now are
// removed before another worktree of the task is created.
func (s *Workspace) forgetCaches(name, landed string) {
	if landed != "" {
		_ = s.Sandbox.ForgetLanded(name)
		return
	}
	_ = s.Sandbox.Forget(name)
}

// Tree returns the tree that a commit of the worktree would have now.
func (s *Workspace) Tree(ctx context.Context) (string, error) {
	return worktree.CurrentTree(ctx, s.Worktree)
}

// Tip returns the commit of the task's branch.
func (s *Workspace) Tip(ctx context.Context) (string, error) { return s.Worktree.Tip(ctx) }

// PutTip resets the task's branch to a commit.
func (s *Workspace) PutTip(ctx context.Context, tip, note string) (string, error) {
	return worktree.PutTip(ctx, s.Worktree, tip, note)
}

// Snapshot takes a snapshot of the worktree.
func (s *Workspace) Snapshot(ctx context.Context, note string) (event.Snapshot, error) {
	taken, err := snapshot.Take(ctx, s.Worktree, s.Session.ID, note)
	return saved(taken, note), err
}

// SnapshotIfChanged is Snapshot. isNew reports whether the worktree has changed since the last one.
func (s *Workspace) SnapshotIfChanged(ctx context.Context, note string) (taken event.Snapshot, isNew bool, err error) {
	last, err := snapshot.Last(ctx, s.Repo, s.Session.ID)
	if err != nil {
		return taken, false, err
	}
	taken, err = s.Snapshot(ctx, note)
	return taken, taken.N > last.N, err
}

// Changed returns the files that differ between two snapshots.
func (s *Workspace) Changed(ctx context.Context, from, to string) ([]string, error) {
	return diff.Paths(ctx, s.Repo, from, to)
}

// Restore restores the worktree from a snapshot.
func (s *Workspace) Restore(ctx context.Context, commit string) error {
	_, err := snapshot.Restore(ctx, s.Worktree, s.Session.ID, commit)
	return err
}

// Commit commits all uncommitted changes on the task branch.
func (s *Workspace) Commit(ctx context.Context, message, merges string) (runner.Commit, error) {
	done, err := commit.Create(ctx, s.Worktree, commit.Request{
		Message: message, Merge: merges, Trailers: s.trailers(ctx), TargetTip: cmp.Or(merges, s.Base), Target: s.Target.Ref, Hooks: s.hook,
	})
	suspect, hook, unresolved, large := (*commit.SuspectError)(nil), (*commit.HookError)(nil), (*integrate.UnresolvedError)(nil), (*worktree.LargeError)(nil)
	marked := (*commit.MarkersError)(nil)
	switch {
	case errors.As(err, &marked):
		return runner.Commit{}, &runner.RefusedError{Reason: marked.Error()}
	case errors.As(err, &unresolved):
		return runner.Commit{}, &runner.RefusedError{Reason: unresolved.Error()}
	case errors.As(err, &large):
		return runner.Commit{}, &runner.RefusedError{Reason: large.Error()}
	case errors.As(err, &suspect):
		return runner.Commit{}, &runner.RefusedError{Reason: suspect.Error()}
	case errors.As(err, &hook):
		return runner.Commit{}, &runner.RefusedError{Reason: hook.Error(), Output: hook.Output}
	case err != nil:
		return runner.Commit{}, err
	}
	s.warnOfLeftOut(done.LeftOut)
	return runner.Commit{Oid: done.Oid, Tree: done.Tree, Files: done.Files}, nil
}

// warnOfLeftOut says which new paths are not part of the change, once for each of them.
func (s *Workspace) warnOfLeftOut(all []commit.LeftOut) {
	var named []string
	for _, out := range all {
		if out.Reason == "" || s.leftOut[out.Path] {
			continue
		}
		if s.leftOut == nil {
			s.leftOut = map[string]bool{}
		}
		s.leftOut[out.Path] = true
		named = append(named, out.String())
	}
	if len(named) > 0 {
		s.warn("left out of the change: " + strings.Join(named, ", ") + "; to land such a path: landing.allow (coven help worktrees)")
	}
}

// trailers returns the trailers of a commit. The person's own is the last one.
func (s *Workspace) trailers(ctx context.Context) []string {
	all := append([]string{"Coven-Task: " + strings.Join(strings.Fields(s.Task), " "), "Coven-Session: " + s.Session.ID}, s.Trailers...)
	if s.Signoff {
		if name, err := commit.Person(ctx, s.Repo); err == nil { // otherwise the commit fails for the same reason
			all = append(all, "Signed-off-by: "+name)
		}
	}
	return all
}

// hookTime bounds how long a commit hook may run.
const hookTime = 5 * time.Minute

// hook runs a commit hook of the repository, contained like an agent. As in git, sh runs a hook without #!.
func (s *Workspace) hook(ctx context.Context, h commit.Hook) ([]byte, error) {
	spec := process.Spec{
		Argv: append([]string{h.Path}, h.Args...), Dir: h.Dir, Timeout: hookTime, Env: h.Env, Input: h.Input, Pipe: true,
	}
	exit, output, err := s.Run(ctx, spec)
	if errors.Is(err, syscall.ENOEXEC) {
		spec.Argv = append([]string{"/bin/sh"}, spec.Argv...)
		exit, output, err = s.Run(ctx, spec)
	}
	output = []byte(ansi.Strip(string(output)))
	if err == nil && !exit.OK() {
		err = errors.New(exit.String())
	}
	return output, err
}
