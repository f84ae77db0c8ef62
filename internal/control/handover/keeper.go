// Package handover keeps the record of a session on a remote, and takes over the sessions of other machines from there.
//
// See package live for the ref and the fence. A Keeper pushes the record of a running session whenever the session cannot lose
// it: when it starts, at the end of each step, when an agent asks a person, and when it stops. If a machine is lost in the
// middle of a step, that step runs again on the next one.
package handover

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/process/clock"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task/holder"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/runner"
	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/live"
	"github.com/coven-run/coven/worktree/remote"
	"github.com/coven-run/coven/worktree/snapshot"
)

// retryPause is the time before a session that waits for its remote tries again.
const retryPause = 15 * time.Second

// A Keeper keeps one session on a remote while this process runs it.
type Keeper struct {
	Repo    *worktree.Repo
	Remote  string // name: origin
	Task    string
	Base    string   // commit from which the task starts, which the remote has
	Target  string   // remote-tracking ref of the target
	Allow   []string // globs of paths that are no secrets
	Hide    func(string) string
	Session *session.Session
	Notify  func(text string)
	// Landings has the commits with which sessions have landed, by their IDs, so that the remote is asked once, and "" for each tip that this process has pushed.
	Landings *sync.Map
	// Sends means that workers get a new session. It is first pushed when it waits for them.
	Sends bool

	due  *time.Timer // of the next call of Answers
	asks atomic.Bool // whether an agent has asked, or got an answer, since the last push

	delivering sync.Mutex
	tries      map[string]int // to fetch a mail, by its ID

	mu     sync.Mutex
	pushed live.State // the last pushed session, without its files
	bare   bool       // snapshots stay on this machine
	asked  bool       // whether the filters are known
	lost   error      // a *TakenError; nothing is pushed any more
	over   bool       // the session is over on the remote; nothing is pushed any more
}

// answerPause is the time between two looks for an answer to a question that an agent has asked.
const answerPause = 3 * time.Second

// Start makes the Keeper push the record from now on.
func (k *Keeper) Start() {
	k.tries, k.due = map[string]int{}, time.NewTimer(time.Hour)
	k.due.Stop()
	k.Session.Publish(k.recorded)
}

// Asked returns the channel that is ready when Answers must be called. A nil Keeper never is.
func (k *Keeper) Asked() <-chan time.Time {
	if k == nil {
		return nil
	}
	return k.due.C
}

// Answers pushes the questions of agents and their answers, and looks for answers that other machines have sent, as long as a question is open. The error is
// as in Check.
func (k *Keeper) Answers(ctx context.Context) error {
	if k.asks.Swap(false) {
		if err := k.push(ctx); errors.As(err, new(*TakenError)) {
			return err
		} else if err != nil {
			k.asks.Store(true)
		}
	}
	v, err := k.Session.View()
	if err != nil || len(v.OpenApprovals()) == 0 {
		return nil
	}
	defer k.due.Reset(clock.ToReal(answerPause))
	return k.Check(ctx)
}

// recorded pushes the record after an event of a type that others rely on. An interrupt does not stop a push, which is limited by live.Timeout.
func (k *Keeper) recorded(t event.Type) error {
	ctx := context.Background()
	switch {
	case t == event.SessionCompleted, t == event.SessionCancelled:
		return k.End(ctx)
	case t.Stops():
		_ = k.push(ctx) // the record is here; the next resume pushes it
		return nil
	case t == event.SessionResumed && k.isOver(ctx): // another machine has landed it, and its ref must not come back
		return nil
	case t == event.SessionStarted && k.Sends:
		return nil
	case t == event.SessionStarted, t == event.SessionResumed: // nothing runs yet
		if err := k.push(ctx); err != nil {
			return exit.Personf("coven resume "+shellword.Word(k.Task), "%w", err)
		}
		if t == event.SessionStarted {
			return nil // no machine can know it yet
		}
	case t == event.StepCompleted:
		if err := k.push(ctx); err != nil {
			return err
		}
	case t == event.PermissionRequested, t == event.PermissionAnswered: // the agent does not wait for the push
		k.asks.Store(true)
		k.due.Reset(0)
		return nil
	default:
		return nil
	}
	_ = k.Check(ctx)
	return nil
}

// isOver reports whether the task of a session whose ref this machine does not know has landed. If so, nothing is pushed any more.
func (k *Keeper) isOver(ctx context.Context) bool {
	known, err := live.Known(ctx, k.Repo, k.Task)
	if err != nil || known != "" {
		return false
	}
	commit, err := k.Landed(ctx, k.Target)
	if err != nil || commit == "" {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.over = true
	return true
}

// Claim excludes other machines from a session that is to end here. The error is a *TakenError if another machine has the session. If the remote does not answer, the
// session can end here all the same. If the session is over on the remote, nothing is pushed any more. Claim does nothing without a Keeper.
func (k *Keeper) Claim(ctx context.Context, v session.View) error {
	if k == nil {
		return nil
	}
	if v.Away != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.over = !v.Elsewhere()
		return nil
	}
	known, err := live.Known(ctx, k.Repo, k.Task)
	if err != nil || known == "" || stillAgreed(ctx, k.Repo, k.Remote, k.Task) != nil {
		return err
	}
	if err := k.push(ctx); errors.As(err, new(*TakenError)) {
		return err
	}
	return nil
}

// Push pushes the record, even if no step has ended, unless the remote has it.
func (k *Keeper) Push(ctx context.Context) error {
	known, err := live.Known(ctx, k.Repo, k.Task)
	if err != nil {
		return err
	}
	if last, err := live.Read(ctx, k.Repo, known); known != "" && err == nil {
		if now, err := session.Record(k.Session.Dir); err == nil && maps.EqualFunc(now, last.Files, bytes.Equal) {
			return nil
		}
	}
	return k.push(ctx)
}

// push pushes the record. The error is a *TakenError if another machine has the session, and otherwise a *runner.Wait or a *runner.RefusedError.
func (k *Keeper) push(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lost != nil || k.over {
		return k.lost
	}
	s, err := k.state(ctx)
	if err == nil && s.Tip == "" { // otherwise, only the remote that has the tip accepts the next one
		err = stillAgreed(ctx, k.Repo, k.Remote, k.Task)
	}
	if err != nil {
		return err
	}
	tip, err := live.Push(ctx, k.Repo, k.Remote, k.Task, s)
	moved := (*remote.MovedError)(nil)
	if errors.As(err, &moved) && k.made(ctx, moved.Tip, s.Files) {
		s.Tip = moved.Tip // an earlier push, whose answer was lost
		tip, err = live.Push(ctx, k.Repo, k.Remote, k.Task, s)
	}
	if errors.As(err, &moved) {
		return k.taken(ctx, moved.Tip, s)
	}
	if err != nil {
		return k.failure(err)
	}
	s.Tip, s.Files = tip, nil
	k.pushed = s
	k.Landings.Store(tip, "")
	return nil
}

// state returns the session as it is now, after the tip that this machine knows.
func (k *Keeper) state(ctx context.Context) (live.State, error) {
	tip, err := live.Known(ctx, k.Repo, k.Task)
	if err != nil {
		return live.State{}, err
	}
	s := live.State{Tip: tip, Session: k.Session.ID, Base: k.Base}
	if s.Files, err = session.Record(k.Session.Dir); err != nil {
		return s, err
	}
	if s.Tip != "" && k.pushed.Tip != s.Tip {
		if k.pushed, err = live.Read(ctx, k.Repo, s.Tip); err != nil {
			return s, err
		}
		k.pushed.Files = nil
	}
	last, err := snapshot.Last(ctx, k.Repo, k.Session.ID)
	if err != nil || last.N == 0 {
		return s, err
	}
	branch, err := live.BranchOf(ctx, k.Repo, k.Task)
	if err != nil || branch.Tip == "" { // the worktree was removed
		return s, err
	}
	found, err := live.Secrets(ctx, k.Repo, k.Base, k.pushed.Branch.Tip, branch.Tip, k.Allow)
	if err != nil {
		return s, err
	}
	if len(found) > 0 {
		return s, &runner.RefusedError{Reason: "the task's branch is not pushed to " + k.Remote + ": it contains what looks like secrets: " + oneline.List(found), Next: "retry --fresh"}
	}
	s.Branch = branch
	return s, k.addSnapshot(ctx, &s, last)
}

// addSnapshot adds the last snapshot to a state, unless its content must stay on this machine.
func (k *Keeper) addSnapshot(ctx context.Context, s *live.State, last snapshot.Snapshot) (err error) {
	if !k.asked {
		if k.bare, err = live.HasFilters(ctx, k.Repo, s.Branch.Tip); err != nil {
			return err
		}
		k.asked = true
	}
	if k.bare {
		return nil
	}
	found, err := live.Secrets(ctx, k.Repo, last.Tip, k.pushed.Snapshot, last.Commit, k.Allow)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		k.bare = true
		text := fmt.Sprintf("the snapshots are not pushed to %s, only the commits: %s", k.Remote, oneline.List(found))
		return k.Session.Append(event.Event{Type: event.Warning}, event.Text{Text: text})
	}
	s.Snapshot = last.Commit
	return nil
}

// made reports whether a tip is an earlier push of this process or its predecessors here.
func (k *Keeper) made(ctx context.Context, tip string, files map[string][]byte) bool {
	if tip == "" {
		return false
	}
	earlier, err := live.Fetch(ctx, k.Repo, k.Remote, k.Task, tip)
	return err == nil && session.Continues(files, earlier.Files)
}

// taken records that another machine has the session, whose tip is given, and stores the work of this machine on the remote.
func (k *Keeper) taken(ctx context.Context, tip string, s live.State) error {
	t := &TakenError{Task: k.Task, Remote: k.Remote}
	if now, err := live.Fetch(ctx, k.Repo, k.Remote, k.Task, tip); tip != "" && err == nil {
		if v, err := session.ViewRecord(now.Files); err == nil {
			t.Machine = holder.HostOf(v.Holder)
		}
	}
	if stillAgreed(ctx, k.Repo, k.Remote, k.Task) == nil {
		t.Rescue, _ = live.Rescue(ctx, k.Repo, k.Remote, k.Task, s) // without it, the work is only here
	}
	k.lost = t
	return t
}

// failure returns the error of a session that could not be pushed.
func (k *Keeper) failure(err error) error {
	if full := fullDisk(k.Repo, err); full != nil {
		return &runner.Wait{Reason: event.WaitCheckout, Detail: full.Error(), Next: "resume"}
	}
	text := k.Hide(err.Error())
	if failed := (*remote.PushError)(nil); errors.As(err, &failed) && failed.Denied {
		return &runner.RefusedError{Reason: "the session cannot be kept on " + k.Remote + ": " + oneline.Of(text)}
	}
	return k.Wait(text)
}

// Wait returns the wait of a session whose remote does not answer.
func (k *Keeper) Wait(text string) *runner.Wait {
	return &runner.Wait{
		Reason: event.WaitRemote, Detail: k.Remote + " does not answer: " + oneline.Of(text), Next: "resume", Until: k.Session.Now().Add(retryPause),
	}
}

// Check returns a *TakenError if another machine has the session. Other problems are no reason to stop.
func (k *Keeper) Check(ctx context.Context) error {
	known, err := live.Known(ctx, k.Repo, k.Task)
	if err != nil || known == "" {
		return nil //nolint:nilerr // the next push finds out
	}
	tip, mails, err := live.Look(ctx, k.Repo, k.Remote, k.Task)
	if err != nil {
		return nil //nolint:nilerr // as above
	}
	if now, err := live.Known(ctx, k.Repo, k.Task); tip != known && err == nil && now == known { // otherwise a step has ended since
		return k.push(ctx)
	}
	if len(mails) > 0 {
		k.deliver(ctx, mails)
	}
	return nil
}

// Landed returns the commit with which the task has landed on the target since it started, or "". ref is the remote-tracking ref of the target.
func (k *Keeper) Landed(ctx context.Context, ref string) (string, error) {
	if known, ok := k.Landings.Load(k.Session.ID); ok {
		return known.(string), nil //nolint:forcetypeassert // see below
	}
	up, err := remote.FetchUpstream(ctx, k.Repo, ref, live.Timeout)
	if err != nil {
		return "", k.Wait(k.Hide(err.Error()))
	}
	commit, err := live.LandedAs(ctx, k.Repo, k.Task, k.Base, up.Tip)
	if err == nil && commit != "" {
		k.Landings.Store(k.Session.ID, commit)
	}
	return commit, err
}

// Elsewhere returns the commit with which another machine has landed the task, or "", as Landed does. A landing deletes the session's ref, so there was none when
// this process pushed it.
func (k *Keeper) Elsewhere(ctx context.Context, ref string) (string, error) {
	known, err := live.Known(ctx, k.Repo, k.Task)
	if _, pushed := k.Landings.Load(known); pushed || err != nil {
		return "", err
	}
	return k.Landed(ctx, ref)
}

// Land moves a branch of the remote, and ends the session there, if this machine still has it. moved reports that the branch has other commits.
func (k *Keeper) Land(ctx context.Context, target, old, commit string) (moved bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lost != nil {
		return false, k.lost
	}
	s, err := k.state(ctx)
	if err != nil {
		return false, err
	}
	up, err := remote.Followed(ctx, k.Repo, target)
	if err != nil {
		return false, err
	}
	end, err := live.LookAtEnd(ctx, k.Repo, k.Remote, k.Task, k.archiveRef(), up.Branch)
	if err != nil {
		return false, k.failure(err)
	}
	if err = end.CheckBranch(old); err == nil {
		if err := k.prepareEnd(ctx, end); err != nil {
			return false, k.failure(err)
		}
		if err := remote.PushLFS(ctx, k.Repo, k.Remote, up.Branch, commit, old); err != nil {
			return false, k.failure(err)
		}
		err = end.Land(ctx, k.Repo, k.Task, old, commit, s)
	}
	if err == nil {
		k.over = true
		return false, live.Know(ctx, k.Repo, k.Task, "")
	}
	lost := (*remote.MovedError)(nil)
	if !errors.As(err, &lost) {
		return false, k.failure(err)
	}
	if now, fetchErr := remote.FetchUpstream(ctx, k.Repo, target, live.Timeout); fetchErr != nil {
		return false, k.Wait(k.Hide(fetchErr.Error()))
	} else if in, err := remote.Contains(ctx, k.Repo, now.Tip, commit); err != nil || in {
		k.over = in // the answer was lost
		return false, err
	}
	if lost.Ref == live.Ref(k.Task) {
		return false, k.taken(ctx, lost.Tip, s)
	}
	return true, nil
}

// prepareEnd returns an error if the record may not be archived on the remote, and deletes the messages that no agent will read.
func (k *Keeper) prepareEnd(ctx context.Context, end live.End) error {
	if err := stillAgreed(ctx, k.Repo, k.Remote, k.Task); err != nil {
		return err
	}
	_ = live.DropMails(ctx, k.Repo, k.Remote, end.Mails) // nobody misses them
	return nil
}

// archiveRef returns the ref of the archive of this machine.
func (k *Keeper) archiveRef() string { return live.ArchiveRef(holder.Machine(), k.Session.Now()) }

// End ends a session that is over on the remote, unless its landing has done so. Without a Keeper, nothing keeps it.
func (k *Keeper) End(ctx context.Context) error {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	known, err := live.Known(ctx, k.Repo, k.Task)
	if err == nil && k.over {
		return live.Know(ctx, k.Repo, k.Task, "")
	}
	if err != nil || known == "" || k.lost != nil {
		return err
	}
	s, err := live.Read(ctx, k.Repo, known) // the branch is gone
	if err == nil {
		s.Files, err = session.Record(k.Session.Dir)
	}
	var end live.End
	if err == nil {
		end, err = live.LookAtEnd(ctx, k.Repo, k.Remote, k.Task, k.archiveRef(), "")
	}
	if err == nil {
		err = k.prepareEnd(ctx, end)
	}
	if err == nil {
		err = end.Close(ctx, k.Repo, k.Task, s)
	}
	if err == nil || errors.As(err, new(*remote.MovedError)) {
		return live.Know(ctx, k.Repo, k.Task, "")
	}
	// The session is over here: say it, but do not fail.
	k.Notify(fmt.Sprintf("the session is not over on %s: %s; to end it there: git push %s :%s", k.Remote, oneline.Of(k.Hide(err.Error())), shellword.Word(k.Remote), live.Ref(k.Task)))
	return nil
}

// A TakenError means that another machine has continued the session.
type TakenError struct {
	Task, Remote string
	Machine      string // empty if the session is over there
	Rescue       string // ref of the remote with the work of this machine; empty if it is only here
}

func (e *TakenError) Error() string {
	text := "another machine has continued task " + e.Task
	if e.Machine != "" {
		text = e.Machine + " has continued task " + e.Task
	}
	if e.Rescue != "" {
		text += fmt.Sprintf("; the work of this machine is stored on %s: %s", e.Remote, strings.TrimPrefix(e.Rescue, "refs/"))
	}
	return text
}

// CommandExit returns exit.Person.
func (e *TakenError) CommandExit() int { return exit.Person }

// NextCommand returns the command that continues the session here.
func (e *TakenError) NextCommand() string { return "coven resume " + shellword.Word(e.Task) }
