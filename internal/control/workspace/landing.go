package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/runner"
	"github.com/coven-run/coven/runner/elsewhere"
	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/commit"
	"github.com/coven-run/coven/worktree/diff"
	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/land"
	"github.com/coven-run/coven/worktree/remote"
)

// Turn waits for the exclusive right to land on the target, first on this machine, then among those that share their turns.
func (s *Workspace) Turn(ctx context.Context) (runner.Turn, error) {
	turn, err := land.TakeTurn(ctx, s.Repo, s.Target.Ref, landing+s.Task)
	if err != nil {
		return runner.Turn{}, err
	}
	if s.Turns == nil {
		return runner.Turn{Doing: turn.Doing, Release: turn.Release}, nil
	}
	release, err := s.Turns.Turn(ctx, s.Target.Branch)
	if err != nil {
		turn.Release()
		return runner.Turn{}, err
	}
	return runner.Turn{Doing: turn.Doing, Release: func() {
		release()
		turn.Release()
	}}, nil
}

// PushCommand returns the command that pushes the task branch to the remote of its target.
func (s *Workspace) PushCommand(ctx context.Context) (string, error) {
	name, err := remote.Of(ctx, s.Repo, s.Target.Branch)
	if name == "" || err != nil {
		return "", err
	}
	return "git push " + shellword.Word(name) + " " + shellword.Word(s.Repo.BranchOf(s.Task)), nil
}

// Conflict merges the target into the worktree with conflict markers.
func (s *Workspace) Conflict(ctx context.Context) (event.Merging, error) {
	target, err := s.Repo.Target(ctx, s.Target.Ref)
	if err != nil {
		return event.Merging{}, err
	}
	c, err := integrate.MergeConflicted(ctx, s.Worktree, target, s.Session.ID)
	if dirty := (*integrate.DirtyError)(nil); errors.As(err, &dirty) {
		if _, err = s.Commit(ctx, manualChanges, ""); err == nil {
			c, err = integrate.MergeConflicted(ctx, s.Worktree, target, s.Session.ID)
		}
	}
	if conflict := (*integrate.ConflictError)(nil); errors.As(err, &conflict) {
		return event.Merging{}, &runner.RefusedError{Reason: err.Error()}
	}
	if err != nil || len(c.Files) == 0 {
		return event.Merging{}, err
	}
	return event.Merging{Target: c.TargetTip, Files: c.Files, Dropped: c.Dropped}, nil
}

// manualChanges is the message of a commit of a person's changes in a worktree.
const manualChanges = "Changes by hand"

// shortPath returns the path of the worktree relative to the main checkout.
func (s *Workspace) shortPath() string {
	if rel, err := filepath.Rel(s.Repo.Root, s.Worktree.Path); err == nil {
		return rel
	}
	return s.Worktree.Path
}

// upstreamTime limits how long a landing waits for the remote of its target.
const upstreamTime = time.Minute

// Integrate merges the target's tip into the task branch and its worktree. A target of a remote is fetched first.
func (s *Workspace) Integrate(ctx context.Context) (event.Landing, error) {
	if s.Target.IsRemote() {
		if _, err := remote.FetchUpstream(ctx, s.Repo, s.Target.Ref, upstreamTime); err != nil {
			return event.Landing{}, s.noAnswer(err)
		}
	}
	target, err := s.Repo.Target(ctx, s.Target.Ref)
	if errors.Is(err, worktree.ErrUnknownBranch) {
		return event.Landing{}, &runner.RefusedError{Reason: "the branch to land on no longer exists: " + s.Target.Branch}
	}
	if err != nil {
		return event.Landing{}, err
	}
	if err := s.awaitUpstream(ctx, target); err != nil {
		return event.Landing{}, err
	}
	c, err := integrate.Merge(ctx, s.Worktree, target)
	if dirty := (*integrate.DirtyError)(nil); errors.As(err, &dirty) {
		// A person has changed the worktree. The change lands too, so it is checked and
		// reviewed like the rest.
		if _, err = s.Commit(ctx, manualChanges, ""); err == nil {
			c, err = integrate.Merge(ctx, s.Worktree, target)
		}
	}
	if refused := refusal(err); refused != nil {
		return event.Landing{}, refused
	}
	if conflict := (*integrate.ConflictError)(nil); errors.As(err, &conflict) {
		return event.Landing{}, &runner.ConflictError{Target: target.Branch, Files: conflict.Files, Dir: s.shortPath()}
	}
	if err != nil {
		return event.Landing{}, err
	}
	patch, err := land.PatchID(ctx, s.Worktree, c)
	if err != nil {
		return event.Landing{}, err
	}
	many, err := s.manyFiles(ctx, c.Old, c.Tree)
	return event.Landing{Target: target.Ref, Old: c.Old, Tip: c.Tip, Tree: c.Tree, From: c.From, Patch: patch, Many: many, Dropped: c.Dropped}, err
}

// noAnswer returns the wait of a session for the remote of its target.
func (s *Workspace) noAnswer(err error) error {
	if s.Keeper != nil {
		return s.Keeper.Wait(err.Error())
	}
	return &runner.Wait{Reason: event.WaitMerge, Detail: err.Error(), Next: "resume"}
}

// maxNewFiles is the number of new files that a change may add without a person's approval.
const maxNewFiles = 200

// manyFiles describes the files that a change adds, by their directory at the top, if they are too many to land without a
// person. It does not count those that the configuration allows.
func (s *Workspace) manyFiles(ctx context.Context, from, to string) (string, error) {
	added, err := diff.Added(ctx, s.Repo, from, to)
	if err != nil {
		return "", err
	}
	added = slices.DeleteFunc(added, func(p string) bool { return commit.IsAllowed(s.Allow, p) })
	if len(added) <= maxNewFiles {
		return "", nil
	}
	counts := map[string]int{}
	for _, p := range added {
		dir, _, below := strings.Cut(p, "/")
		if dir += "/"; !below {
			dir = "the top"
		}
		counts[dir]++
	}
	dirs := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(counts[b]-counts[a], strings.Compare(a, b)) })
	const most = 5
	var parts []string
	for _, dir := range dirs[:min(most, len(dirs))] {
		parts = append(parts, fmt.Sprintf("%d in %s", counts[dir], dir))
	}
	if more := len(dirs) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("and in %d more", more))
	}
	return fmt.Sprintf("it adds %d files (%s)", len(added), strings.Join(parts, ", ")), nil
}

// awaitUpstream returns a *runner.Wait if the target lacks the commit that the task started from: a landing
// would present the commits of others as the task's change. coven moves a branch of the user only to land a
// change.
func (s *Workspace) awaitUpstream(ctx context.Context, target worktree.Target) error {
	if s.Upstream == "" {
		return nil
	}
	in, err := remote.Contains(ctx, s.Repo, target.Tip, s.Base)
	if err != nil || in {
		return err
	}
	return &runner.Wait{
		Reason: event.WaitCheckout, Detail: fmt.Sprintf("%s lacks commits of %s, from which the task started", target.Branch, s.Upstream),
		Command: fmt.Sprintf("git switch %s && git merge %s, then coven resume %s", shellword.Word(target.Branch), shellword.Word(s.Upstream), shellword.Word(s.Task)),
	}
}

// Stack merges the task branch onto a candidate of another task.
func (s *Workspace) Stack(ctx context.Context, below event.Landing) (event.Landing, error) {
	target := s.Target
	target.Tip = below.Old
	if err := s.awaitUpstream(ctx, target); err != nil {
		return event.Landing{}, err
	}
	c, err := land.Stack(ctx, s.Worktree, integrate.Landing{Target: target, Old: below.Old, New: below.New, Tree: below.Tree})
	if err != nil {
		return event.Landing{}, err
	}
	patch, err := land.StackPatchID(ctx, s.Worktree, c)
	if err != nil {
		return event.Landing{}, err
	}
	many, err := s.manyFiles(ctx, below.Tree, c.Tree)
	return event.Landing{Target: target.Ref, Old: c.Old, New: c.New, Tip: c.Tip, Tree: c.Tree, From: c.From, Patch: patch, Many: many}, err
}

// Land lands changes together: it moves the target to the last of them.
func (s *Workspace) Land(ctx context.Context, changes []runner.Change) ([]event.Landing, error) {
	var parts []land.Part
	for _, c := range changes {
		of, ok := c.Of.(*Workspace)
		if !ok {
			return nil, fmt.Errorf("land with %T", c.Of)
		}
		if err := of.checkMessages(ctx, c.Candidate); err != nil {
			return nil, err
		}
		of.mu.Lock()
		defer of.mu.Unlock()
		parts = append(parts, of.part(ctx, c))
	}
	landed, err := land.LandStack(ctx, parts...)
	switch wait := waitFor(err); {
	case errors.Is(err, land.ErrTargetMoved):
		return nil, runner.ErrMoved
	case wait != nil:
		return nil, wait
	case refusal(err) != nil:
		return nil, refusal(err)
	case err != nil:
		return nil, err
	}
	var all []event.Landing
	for i, l := range landed {
		c := changes[i].Candidate
		c.New, c.Tree, c.Head = l.New, l.Tree, l.Head
		all = append(all, c)
	}
	return all, nil
}

// part returns the task's part of a landing.
func (s *Workspace) part(ctx context.Context, c runner.Change) land.Part {
	l := c.Candidate
	return land.Part{Worktree: s.Worktree, Request: land.Request{
		Landing:  integrate.Landing{Target: s.Target, Old: l.Old, Tip: l.Tip, Tree: l.Tree},
		Strategy: land.Strategy(l.Strategy), ClaimOid: s.held.Oid,
		Hooks: s.hook, NoSync: s.NoSync,
		Message: strings.TrimSpace(c.Message) + "\n\n" + strings.Join(s.trailers(ctx), "\n") + "\n",
		Journal: intentFunc(func(i integrate.Landing) error {
			l.New, l.Head = i.New, i.Head
			return c.Intent(l)
		}),
		Push: s.push(),
	}}
}

// refusal returns the reason that a change cannot land, or nil for other errors.
func refusal(err error) error {
	hook, unsigned := (*commit.HookError)(nil), (*land.SignError)(nil)
	dangling, unrelated := (*integrate.GitlinkError)(nil), (*integrate.UnrelatedError)(nil)
	switch {
	case errors.As(err, &hook) && hook.Name == commit.CommitMsg:
		return &runner.RefusedError{Reason: hook.Error(), Output: hook.Output, Next: "approve --message 'TYPE: SUBJECT'"}
	case errors.As(err, &hook):
		return &runner.RefusedError{Reason: hook.Error(), Output: hook.Output}
	case errors.As(err, &unsigned):
		return &runner.RefusedError{Reason: unsigned.Error(), Output: unsigned.Output}
	case errors.As(err, &dangling):
		return &runner.RefusedError{Reason: dangling.Error()}
	case errors.As(err, &unrelated):
		return &runner.RefusedError{Reason: unrelated.Error(), Next: "reject --reason 'the target was replaced'"}
	case errors.Is(err, land.ErrCannotRebase):
		return &runner.RefusedError{Reason: err.Error()}
	}
	return nil
}

// checkMessages refuses to land commits whose messages contain a secret.
func (s *Workspace) checkMessages(ctx context.Context, c event.Landing) error {
	if land.Strategy(c.Strategy) != land.Merge {
		return nil // coven writes the messages
	}
	telling, err := commit.Unredacted(ctx, s.Worktree, c.Old)
	if err != nil || len(telling) == 0 {
		return err
	}
	return &runner.RefusedError{Reason: fmt.Sprintf("the message of commit %.10s contains a secret; change it, or land with strategy squash", telling[0])}
}

// push returns the function that lands a change on the remote that keeps the session, or nil if none does.
func (s *Workspace) push() func(ctx context.Context, l integrate.Landing) error {
	if s.Keeper == nil {
		return nil
	}
	return func(ctx context.Context, l integrate.Landing) error {
		moved, err := s.Keeper.Land(ctx, l.Target.Ref, l.Old, l.New)
		if moved {
			return land.ErrTargetMoved
		}
		return err
	}
}

// Remote returns the workspace if a remote keeps the session, so that another machine can land the task, or nil.
func (s *Workspace) Remote() elsewhere.Landing {
	if s.Keeper == nil {
		return nil
	}
	return s
}

// Elsewhere returns the commit with which another machine has landed the task, or "".
func (s *Workspace) Elsewhere(ctx context.Context) (string, error) {
	return s.Keeper.Elsewhere(ctx, s.Target.Ref)
}

// Recover finishes or undoes an interrupted landing.
func (s *Workspace) Recover(ctx context.Context, l event.Landing) (bool, error) {
	if s.Keeper != nil {
		if _, err := s.Keeper.Landed(ctx, l.Target); err != nil { // fetches the target
			return false, err
		}
	}
	landed, err := land.RecoverLanding(ctx, s.Repo, integrate.Landing{Task: s.Task, Target: worktree.Target{Ref: l.Target}, Old: l.Old, New: l.New, Tree: l.Tree, Head: l.Head})
	if wait := waitFor(err); wait != nil {
		return false, wait
	}
	return landed, err
}

// waitFor returns the wait of a landing that a person's checkout or another git process prevents, or nil
// for other errors.
func waitFor(err error) *runner.Wait {
	checkout, busy := (*land.CheckoutError)(nil), (*worktree.BusyError)(nil)
	switch {
	case errors.As(err, &checkout):
		return &runner.Wait{Reason: event.WaitCheckout, Detail: checkout.Error(), Next: "resume"}
	case errors.As(err, &busy):
		return &runner.Wait{Reason: event.WaitCheckout, Detail: busy.Error(), Next: "resume"}
	}
	return nil
}

type intentFunc func(integrate.Landing) error

// Intent implements the journal that a landing writes to.
func (f intentFunc) Intent(i integrate.Landing) error { return f(i) }
