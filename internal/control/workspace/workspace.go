// Package workspace adapts a task's worktree, its claim and its landing to the runner's
// interfaces.
package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/coven-run/coven/internal/agent"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/holder"
	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/internal/secret"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/shellword"
	"github.com/coven-run/coven/runner"
	"github.com/coven-run/coven/worktree"
)

// Workspace is the worktree of one session's task, as the runner sees it: it puts
// package worktree behind the runner's interfaces.
type Workspace struct {
	Repo     *worktree.Repo
	Session  *session.Session
	Launcher *process.Launcher
	Environ  func() []string
	Secrets  *secret.Store
	Pass     []string
	Task     string
	Base     string // commit that the worktree starts from
	Target   worktree.Target
	Holder   string
	Attempt  int

	Worktree *worktree.Worktree

	mu   sync.Mutex // landing and renewing the claim exclude each other
	held worktree.Held
}

// Claim takes the task for this session, also when the session has it. A claim of
// a session that never began, or that is over, belongs to nobody.
func (s *Workspace) Claim(ctx context.Context) (event.Claim, error) {
	held, err := s.claim(ctx)
	for tries := 1; errors.Is(err, worktree.ErrNoClaim) && tries < claimTries; tries++ {
		held, err = s.claim(ctx) // the one to replace was given back meanwhile
	}
	if err != nil {
		return event.Claim{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = held
	return event.Claim{Oid: held.Oid, Holder: held.Holder}, nil
}

// claimTries is how often a claim is replaced that others are replacing, too.
const claimTries = 10

func (s *Workspace) claim(ctx context.Context) (worktree.Held, error) {
	held, err := s.Repo.ClaimOf(ctx, s.Task)
	switch {
	case errors.Is(err, worktree.ErrNoClaim):
		return s.take(ctx, "")
	case err != nil:
		return held, err
	case !s.leased(held) && (held.Session == s.Session.ID || s.free(held.Session)):
		return s.take(ctx, held.Oid)
	default:
		return held, &worktree.ClaimedError{Present: held}
	}
}

// leased reports whether a coven on another machine may be at work under a claim: its
// session says that it runs, or is about to, and the session's lock may not be
// seen from here. Then the claim holds until it has run out.
func (s *Workspace) leased(held worktree.Held) bool {
	if holder.HostOf(held.Holder) == holder.Machine() || !s.Session.Now().Before(held.Expires) {
		return false
	}
	if held.Session != s.Session.ID {
		return session.NeverBegan(s.Repo.Root, held.Session)
	}
	v, err := s.Session.View()
	return err != nil || v.Status == session.Running
}

// free reports whether a session that has a claim will not use it.
func (s *Workspace) free(id string) bool {
	return session.NeverBegan(s.Repo.Root, id) || session.IsOver(s.Repo.Root, id)
}

func (s *Workspace) take(ctx context.Context, replaces string) (worktree.Held, error) {
	return s.Repo.Claim(ctx, worktree.Claim{
		Task: s.Task, Holder: s.Holder, Session: s.Session.ID, Attempt: s.Attempt, Expires: s.Session.Now().Add(leaseTime),
	}, replaces)
}

// Release gives the claim up.
func (s *Workspace) Release(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.Repo.Unclaim(ctx, s.Task, s.held.Oid); err != nil && !errors.Is(err, worktree.ErrNoClaim) {
		return err
	}
	return nil
}

// Enter makes the worktree, or finds it.
func (s *Workspace) Enter(ctx context.Context) error {
	tree, err := s.Repo.Find(ctx, s.Task)
	if errors.Is(err, worktree.ErrNoWorktree) {
		if s.started() {
			return s.recreate(ctx)
		}
		tree, err = s.Repo.Add(ctx, worktree.AddRequest{TaskID: s.Task, Base: s.Base})
	}
	s.Worktree = tree
	return err
}

// recreate creates the worktree again after someone deleted it.
func (s *Workspace) recreate(ctx context.Context) error {
	tree, from, err := s.Repo.Recreate(ctx, s.Task, s.Session.ID)
	if errors.Is(err, worktree.ErrNoWorktree) {
		return fmt.Errorf("%w any more, nor a branch or a snapshot: reject it: coven reject %s --reason TEXT", err, shellword.Word(s.Task))
	}
	if err != nil {
		return err
	}
	s.Worktree = tree
	text := "the worktree was deleted; it was made again from its branch (ignored files are gone)"
	if from.N > 0 {
		text = fmt.Sprintf("the worktree was deleted; it was made again from snapshot %d (ignored files are gone)", from.N)
	}
	return s.Session.Append(event.Event{Type: event.Warning}, event.Text{Text: text})
}

// started reports whether a step of the session has started: then its worktree exists or
// was deleted.
func (s *Workspace) started() bool {
	return s.Session.Journal.Has(event.StepStarted)
}

// Leave removes the worktree; what is in it and nowhere else is stored first.
// Ignored files that are too large to store keep the worktree where it is.
func (s *Workspace) Leave(ctx context.Context, landed string) (string, error) {
	tree, err := s.Repo.Leftover(ctx, s.Task)
	if errors.Is(err, worktree.ErrNoWorktree) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	ref, err := tree.Remove(ctx, worktree.RemoveRequest{Note: "session " + s.Session.ID, Landed: landed})
	if big := (*worktree.IgnoredError)(nil); errors.As(err, &big) {
		text := fmt.Sprintf("the worktree stays: %v; when nobody needs them: coven worktree remove --drop-ignored %s", big, shellword.Word(s.Task))
		return "", s.Session.Append(event.Event{Type: event.Warning}, event.Text{Text: text})
	}
	if err == nil && ref != "" && landed != "" {
		text := "files in the worktree that did not land are stored: git show " + ref
		err = s.Session.Append(event.Event{Type: event.Warning}, event.Text{Text: text})
	}
	return ref, err
}

// Tree is the tree that a commit of the worktree would have now.
func (s *Workspace) Tree(ctx context.Context) (string, error) { return s.Worktree.Tree(ctx) }

// Tip is the commit of the task's branch.
func (s *Workspace) Tip(ctx context.Context) (string, error) { return s.Worktree.Tip(ctx) }

// PutTip makes the branch what it was.
func (s *Workspace) PutTip(ctx context.Context, tip, note string) (string, error) {
	return s.Worktree.PutTip(ctx, tip, note)
}

// Snapshot stores the worktree as it is.
func (s *Workspace) Snapshot(ctx context.Context, note string) (event.Snapshot, error) {
	snapshot, err := s.Worktree.Snapshot(ctx, s.Session.ID, note)
	if err != nil {
		return event.Snapshot{}, err
	}
	return event.Snapshot{N: snapshot.N, Commit: snapshot.Commit, Tree: snapshot.Tree, Note: note}, nil
}

// Changed names what differs between two snapshots.
func (s *Workspace) Changed(ctx context.Context, from, to string) ([]string, error) {
	return s.Repo.Changed(ctx, from, to)
}

// Restore puts the worktree back to a snapshot.
func (s *Workspace) Restore(ctx context.Context, commit string) error {
	_, err := s.Worktree.Restore(ctx, s.Session.ID, commit)
	return err
}

// Commit commits what is uncommitted on the task branch.
func (s *Workspace) Commit(ctx context.Context, message, merges string) (runner.Commit, error) {
	done, err := s.Worktree.Commit(ctx, worktree.CommitRequest{
		Message: message, Merge: merges, Trailers: s.trailers(), TargetTip: cmp.Or(merges, s.Base), Hooks: s.hook,
	})
	suspect, hook, unresolved := (*worktree.SuspectError)(nil), (*worktree.HookError)(nil), (*worktree.UnresolvedError)(nil)
	switch {
	case errors.As(err, &unresolved):
		return runner.Commit{}, &runner.RefusedError{Reason: unresolved.Error()}
	case errors.As(err, &suspect):
		return runner.Commit{}, &runner.RefusedError{Reason: suspect.Error()}
	case errors.As(err, &hook):
		return runner.Commit{}, &runner.RefusedError{Reason: hook.Error(), Output: hook.Output}
	case err != nil:
		return runner.Commit{}, err
	}
	return runner.Commit{Oid: done.Oid, Tree: done.Tree, Files: done.Files}, nil
}

func (s *Workspace) trailers() []string {
	return []string{"Coven-Task: " + strings.Join(strings.Fields(s.Task), " "), "Coven-Session: " + s.Session.ID}
}

// hookTime bounds how long a commit hook may run.
const hookTime = 5 * time.Minute

// hook runs one of the repository's commit hooks, contained like an agent.
func (s *Workspace) hook(ctx context.Context, h worktree.Hook) ([]byte, error) {
	exit, output, err := s.Launcher.Run(ctx, process.Spec{
		Argv: append([]string{h.Path}, h.Args...), Dir: h.Dir, Timeout: hookTime,
		Env: append(agent.Environment(s.Environ(), s.Pass), h.Env...), Input: h.Input,
	})
	if err != nil {
		return output, err
	}
	if !exit.OK() {
		return output, errors.New(exit.String())
	}
	return output, nil
}

// Turn waits for the exclusive right to land on the target.
func (s *Workspace) Turn(ctx context.Context) (func(), error) {
	return s.Repo.LandingTurn(ctx, s.Target.Ref, "land "+s.Task)
}

// Conflict puts a conflict with the target into the worktree.
func (s *Workspace) Conflict(ctx context.Context) (string, []string, error) {
	target, err := s.Repo.Target(ctx, s.Target.Branch)
	if err != nil {
		return "", nil, err
	}
	c, err := s.Worktree.IntegrateConflicted(ctx, target, s.Session.ID)
	if dirty := (*worktree.DirtyError)(nil); errors.As(err, &dirty) {
		if _, err = s.Commit(ctx, manualChanges, ""); err == nil {
			c, err = s.Worktree.IntegrateConflicted(ctx, target, s.Session.ID)
		}
	}
	if conflict := (*worktree.ConflictError)(nil); errors.As(err, &conflict) {
		return "", nil, &runner.RefusedError{Reason: err.Error()}
	}
	if err != nil || len(c.Files) == 0 {
		return "", nil, err
	}
	return c.TargetTip, c.Files, nil
}

// manualChanges is what a commit of a person's changes in a worktree is called.
const manualChanges = "Changes by hand"

// shortPath is the worktree as a person in the main checkout names it.
func (s *Workspace) shortPath() string {
	if rel, err := filepath.Rel(s.Repo.Root, s.Worktree.Path); err == nil {
		return rel
	}
	return s.Worktree.Path
}

// Integrate brings the target's tip into the task branch and its worktree.
func (s *Workspace) Integrate(ctx context.Context) (event.Landing, error) {
	target, err := s.Repo.Target(ctx, s.Target.Branch)
	if errors.Is(err, worktree.ErrUnknownBranch) {
		return event.Landing{}, &runner.RefusedError{Reason: "the branch to land on does not exist any more: " + s.Target.Branch}
	}
	if err != nil {
		return event.Landing{}, err
	}
	c, err := s.Worktree.Integrate(ctx, target)
	if dirty := (*worktree.DirtyError)(nil); errors.As(err, &dirty) {
		// A person has changed the worktree: that is part of what lands, and is
		// checked and reviewed like the rest.
		if _, err = s.Commit(ctx, manualChanges, ""); err == nil {
			c, err = s.Worktree.Integrate(ctx, target)
		}
	}
	if refused := refusal(err); refused != nil {
		return event.Landing{}, refused
	}
	if conflict := (*worktree.ConflictError)(nil); errors.As(err, &conflict) {
		return event.Landing{}, &runner.ConflictError{Target: target.Branch, Files: conflict.Files, Dir: s.shortPath()}
	}
	if err != nil {
		return event.Landing{}, err
	}
	diff, err := s.Worktree.Diff(ctx, c.Old)
	if err != nil {
		return event.Landing{}, err
	}
	return event.Landing{Target: target.Ref, Old: c.Old, Tip: c.Tip, Tree: c.Tree, Patch: diff.PatchID}, nil
}

// Land moves the target to the candidate.
func (s *Workspace) Land(ctx context.Context, c event.Landing, message string, intent func(event.Landing) error) (event.Landing, error) {
	if err := s.presentable(ctx, c); err != nil {
		return event.Landing{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	landed, err := s.Worktree.Land(ctx, worktree.LandRequest{
		Landing:  worktree.Landing{Target: s.Target, Old: c.Old, Tip: c.Tip, Tree: c.Tree},
		Strategy: worktree.Strategy(c.Strategy), ClaimOid: s.held.Oid,
		Hooks:   s.hook,
		Message: strings.TrimSpace(message) + "\n\n" + strings.Join(s.trailers(), "\n") + "\n",
		Journal: intentFunc(func(i worktree.Landing) error {
			c.New = i.New
			return intent(c)
		}),
	})
	switch wait := waitFor(err); {
	case errors.Is(err, worktree.ErrTargetMoved):
		return event.Landing{}, runner.ErrMoved
	case wait != nil:
		return event.Landing{}, wait
	case refusal(err) != nil:
		return event.Landing{}, refusal(err)
	case err != nil:
		return event.Landing{}, err
	}
	c.New, c.Tree = landed.New, landed.Tree
	return c, nil
}

// refusal is why a change cannot land as it is; nil for other errors.
func refusal(err error) error {
	hook, unsigned := (*worktree.HookError)(nil), (*worktree.SignError)(nil)
	dangling, unrelated := (*worktree.GitlinkError)(nil), (*worktree.UnrelatedError)(nil)
	switch {
	case errors.As(err, &hook):
		return &runner.RefusedError{Reason: hook.Error(), Output: hook.Output}
	case errors.As(err, &unsigned):
		return &runner.RefusedError{Reason: unsigned.Error(), Output: unsigned.Output}
	case errors.As(err, &dangling):
		return &runner.RefusedError{Reason: dangling.Error()}
	case errors.As(err, &unrelated):
		return &runner.RefusedError{Reason: unrelated.Error(), Next: "reject --reason 'the target was replaced'"}
	case errors.Is(err, worktree.ErrCannotRebase):
		return &runner.RefusedError{Reason: err.Error()}
	}
	return nil
}

// presentable refuses to land commits as they are that tell a secret in their messages.
func (s *Workspace) presentable(ctx context.Context, c event.Landing) error {
	if worktree.Strategy(c.Strategy) != worktree.Merge {
		return nil // coven writes the messages
	}
	telling, err := s.Worktree.Unredacted(ctx, c.Old)
	if err != nil || len(telling) == 0 {
		return err
	}
	return &runner.RefusedError{Reason: fmt.Sprintf("the message of commit %.10s tells a secret; change it, or land with strategy squash", telling[0])}
}

// Recover finishes or undoes a landing that was cut off.
func (s *Workspace) Recover(ctx context.Context, l event.Landing) (bool, error) {
	landed, err := s.Repo.RecoverLanding(ctx, worktree.Landing{Task: s.Task, Target: worktree.Target{Ref: l.Target}, Old: l.Old, New: l.New, Tree: l.Tree})
	if wait := waitFor(err); wait != nil {
		return false, wait
	}
	return landed, err
}

// waitFor is what a landing waits for that met a person's checkout in another
// state than it needs, or another git at work; nil for other errors.
func waitFor(err error) *runner.Wait {
	checkout, busy := (*worktree.CheckoutError)(nil), (*worktree.BusyError)(nil)
	switch {
	case errors.As(err, &checkout):
		return &runner.Wait{Reason: event.WaitCheckout, Detail: checkout.Error(), Next: "resume"}
	case errors.As(err, &busy):
		return &runner.Wait{Reason: event.WaitCheckout, Detail: busy.Error(), Next: "resume"}
	}
	return nil
}

type intentFunc func(worktree.Landing) error

// Intent implements the journal that a landing writes to.
func (f intentFunc) Intent(i worktree.Landing) error { return f(i) }
