package handover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/process/clock"
	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/session/away"
	"github.com/coven-run/coven/internal/task/holder"
	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/checkout"
	"github.com/coven-run/coven/worktree/claim"
	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/land"
	"github.com/coven-run/coven/worktree/live"
	"github.com/coven-run/coven/worktree/remote"
)

// A HeldError means that a session of a remote is running on another machine, as far as its record tells.
type HeldError struct {
	Task, Remote string
	Machine      string
	Updated      time.Time // of the last event that the machine has pushed
	Now          time.Time
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("%s is working on task %s: its last step ended %s ago; if that machine is gone, take the task over", e.Machine, e.Task, max(0, e.Now.Sub(e.Updated)).Round(time.Second)) // the clock there may be fast
}

// CommandExit returns exit.Person.
func (e *HeldError) CommandExit() int { return exit.Person }

// NextCommand returns the command that takes the task over.
func (e *HeldError) NextCommand() string {
	return "coven resume " + shellword.Word(e.Task) + " --take-over --remote " + shellword.Word(e.Remote)
}

// fetch fetches the session of a task from a remote, and returns it and its view.
func fetch(ctx context.Context, p *project.Project, name, task, tip string) (live.State, session.View, error) {
	s, err := live.Fetch(ctx, p.Repo, name, task, tip)
	if err != nil && !errors.Is(err, live.ErrDamaged) {
		return s, session.View{}, Unreachable(p, name, err)
	}
	v := session.View{}
	if err == nil {
		v, err = viewOf(s, live.Ref(task))
	}
	return s, v, damaged(p, name, task, err)
}

// viewOf returns the view of a session at a ref of a remote.
func viewOf(s live.State, ref string) (session.View, error) {
	v, err := session.ViewRecord(s.Files)
	if err == nil && (v.ID != s.Session || live.Ref(v.Task) != ref) {
		err = fmt.Errorf("it is that of task %q", v.Task)
	}
	return v, err
}

// damaged returns the error for a session of a remote that cannot continue here, or nil.
func damaged(p *project.Project, name, task string, err error) error {
	if err == nil {
		return nil
	}
	if version := (*grimoires.VersionError)(nil); errors.As(err, &version) && version.Newer() {
		return exit.Personf("coven version", "the session of %s on %s: %w", task, name, version)
	}
	return exit.Personf("git push "+shellword.Word(name)+" --delete "+live.Ref(task), "the session of %s on %s is damaged: %s", task, name, oneline.Of(p.Hidden(err.Error())))
}

// ErrAway means that a remote does not answer.
var ErrAway = errors.New("does not answer")

// Unreachable returns ErrAway with the reason why a remote did not answer, or nil without an error. A disk that is full here is an error of its own.
func Unreachable(p *project.Project, name string, err error) error {
	if err == nil {
		return nil
	}
	if full := fullDisk(p.Repo, err); full != nil {
		return full
	}
	return exit.Personf("git ls-remote "+shellword.Word(name), "%s %w: %s", name, ErrAway, oneline.Of(p.Hidden(err.Error())))
}

// fullDisk returns an error for people if the disk of a repository is full, because git's error is only text. Otherwise it returns nil.
func fullDisk(r *worktree.Repo, err error) error {
	if errors.Is(checkout.Explain(err, r.Root, r.Root, r.GitDir), checkout.ErrFull) {
		return exit.Personf("df "+shellword.Word(r.Root), "%s: %w", r.Root, checkout.ErrFull)
	}
	return nil
}

// List returns the sessions that a remote keeps, the last changed first. The next command of those that this machine does not have brings them here.
// Damaged ones are in the error, and do not hide the others.
func List(ctx context.Context, p *project.Project, name string) ([]session.View, error) {
	tips, err := live.Tips(ctx, p.Repo, name)
	if err != nil || len(tips) == 0 {
		return nil, Unreachable(p, name, err)
	}
	states, damaged := live.FetchAll(ctx, p.Repo, name, tips)
	var all []session.View
	for ref, s := range states {
		v, err := viewOf(s, ref)
		if err != nil {
			damaged[ref] = err
			continue
		}
		known, err := live.Known(ctx, p.Repo, v.Task)
		if err != nil {
			return nil, err
		}
		if known != s.Tip {
			v.Next = "coven resume " + shellword.Word(v.Task) + " --remote " + shellword.Word(name)
			v.Detail = strings.TrimSuffix("last on "+holder.HostOf(v.Holder)+": "+v.Detail, ": ")
		}
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b session.View) int {
		return cmp.Or(b.Updated.Compare(a.Updated), strings.Compare(a.Task, b.Task))
	})
	var failed error
	for _, ref := range slices.Sorted(maps.Keys(damaged)) {
		failed = errors.Join(failed, fmt.Errorf("%s on %s is damaged: %w", ref, name, damaged[ref]))
	}
	return all, failed
}

// Tip returns the tip of a task's session at a remote, or "".
func Tip(ctx context.Context, p *project.Project, name, task string) (string, error) {
	tip, err := live.Tip(ctx, p.Repo, name, task)
	return tip, Unreachable(p, name, err)
}

// Take brings the session of a task that a remote keeps to this machine, if the remote has a later record than this machine. Then the record here, and the
// work in the worktree, are set aside. The error is a *HeldError if another machine seems to run the session, unless force is set.
//
// Nothing moves on the remote: the next push of the session excludes the other machine.
func Take(ctx context.Context, p *project.Project, name, task string, force bool) error {
	release, err := live.Lock(ctx, p.Repo, task)
	if err != nil {
		return err
	}
	defer release()
	if err := stillAgreed(ctx, p.Repo, name, task); err != nil {
		return err
	}
	tip, err := Tip(ctx, p, name, task)
	if err != nil {
		return err
	}
	known, err := live.Known(ctx, p.Repo, task)
	if err != nil {
		return err
	}
	here, err := p.Finder.OfTask(task)
	if errors.Is(err, session.ErrNone) { // or its record was deleted
		here, err = session.View{}, nil
	}
	if err == nil && tip == "" && known == "" && here.Away != nil && here.Away.Landed != "" {
		return &LandedError{Task: task, Commit: here.Away.Landed}
	}
	if err != nil || tip == known && (tip == "" || here.ID != "" && !here.Elsewhere()) {
		return err
	}
	return take(ctx, p, name, task, tip, here, force)
}

// awayPause is the time before a remote that does not answer is asked again.
const awayPause = 5 * time.Second

// TakeBack brings a session here that no machine runs any more, as Take does, as soon as its remote answers and no other process here writes it. If no machine has
// changed it, that is an error.
func TakeBack(ctx context.Context, p *project.Project, name, task string) error {
	for {
		err := Take(ctx, p, name, task, true)
		if err == nil {
			return changed(p, name, task)
		}
		if !errors.Is(err, ErrAway) && !errors.Is(err, session.ErrBusy) {
			return err
		}
		if err := clock.SleepUntil(ctx, clock.Now().Add(awayPause)); err != nil {
			return err
		}
	}
}

// changed returns an error if a session still waits for a machine.
func changed(p *project.Project, name, task string) error {
	v, err := p.Finder.OfTask(task)
	if err == nil && v.WaitsForWorker() {
		err = exit.Personf("coven resume "+shellword.Word(task), "no machine has run task %s: it was recalled, or %s is another repository there", task, name)
	}
	return err
}

// Copy makes the record here of a session that another machine runs the one of its remote, and brings the session here, as Take does, if that is necessary. The other
// machine goes on, because nothing moves on the remote, and has the session also as far as this machine knows.
func Copy(ctx context.Context, p *project.Project, name, task string) (v session.View, plan *grimoires.Plan, err error) {
	if v, err = p.Finder.OfTask(task); err == nil {
		v, err = Idle(ctx, v.Dir)
	}
	switch {
	case err == nil && v.Elsewhere():
		if err = Take(ctx, p, name, task, false); errors.As(err, new(*HeldError)) { // as its record here tells, too
			err = nil
		}
	case err == nil, errors.Is(err, session.ErrNone):
		err = copyHeld(ctx, p, name, task)
	}
	if err != nil {
		return v, nil, err
	}
	if v, err = p.Finder.OfTask(task); err == nil {
		plan, err = project.PlanOf(v.Dir)
	}
	return v, plan, err
}

// copyHeld brings a session here, and records that the other machine has it if that still runs it.
func copyHeld(ctx context.Context, p *project.Project, name, task string) error {
	if err := Take(ctx, p, name, task, true); err != nil {
		return err
	}
	release, err := live.Lock(ctx, p.Repo, task)
	if err != nil {
		return err
	}
	defer release()
	known, err := live.Known(ctx, p.Repo, task)
	if err != nil || known == "" { // it is over
		return err
	}
	s, err := live.Read(ctx, p.Repo, known)
	if err != nil {
		return err
	}
	v, err := viewOf(s, live.Ref(task))
	if err != nil || held(p, name, v) == nil {
		return err
	}
	here, err := p.Finder.OfTask(task)
	if err != nil {
		return err
	}
	m := &mirror{view: here, known: known, state: &away.State{Tip: known, Machine: holder.HostOf(v.Holder), Remote: name}}
	return m.write(ctx, p)
}

// take is Take for a tip that this machine does not know, or whose record it does not have, or for none. here is the session of the task here, if any.
func take(ctx context.Context, p *project.Project, name, task, tip string, here session.View, force bool) error {
	if tip == "" {
		return over(ctx, p, name, task, here)
	}
	there, v, err := fetch(ctx, p, name, task, tip)
	if err != nil {
		return err
	}
	if here.ID == there.Session && !here.Elsewhere() {
		if record, err := session.Record(here.Dir); err != nil || session.Continues(record, there.Files) {
			return errors.Join(err, live.Know(ctx, p.Repo, task, tip)) // the answer to the last push was lost
		}
	}
	if err := held(p, name, v); err != nil && !force {
		return err
	}
	if here.Live() && here.ID != there.Session {
		if known, err := live.Known(ctx, p.Repo, task); err != nil || known != "" && here.Info.Remote == name {
			return cmp.Or(err, over(ctx, p, name, task, here)) // another one has begun since
		}
		return exit.Personf("coven cancel "+shellword.Word(task), "task %s has another session here, %s, than on %s", task, here.ID, name)
	}
	if err := check(ctx, p, name, v, there); err != nil {
		return err
	}
	return bring(ctx, p, v, there)
}

// check returns an error if the session of a remote cannot continue here. Nothing has changed yet.
func check(ctx context.Context, p *project.Project, name string, v session.View, s live.State) error {
	if v.Info.Remote != name {
		return exit.Personf("git remote rename "+shellword.Word(name)+" "+shellword.Word(v.Info.Remote), "the session of %s was begun with a remote called %q: its remote must have that name here, too", v.Task, v.Info.Remote)
	}
	err := checkRecord(p, v.Task, s)
	if err == nil && !strings.HasPrefix(v.Info.Target, "refs/remotes/") {
		err = fmt.Errorf("it does not land on a branch of a remote, but on %q", v.Info.Target)
	}
	if err == nil {
		err = live.CheckBase(ctx, p.Repo, v.Info.Target, v.Info.Base)
	}
	if errors.As(err, new(*remote.FetchError)) {
		return Unreachable(p, name, err)
	}
	return damaged(p, name, v.Task, err)
}

// idPattern matches the ID of a session, which is the name of its directory.
var idPattern = lazyregexp.New(`^[0-9A-Za-z][0-9A-Za-z_-]{0,199}$`)

// checkRecord returns an error unless the record of a session can be imported, to a directory that does not belong to another task.
func checkRecord(p *project.Project, task string, s live.State) error {
	if !idPattern.MatchString(s.Session) {
		return fmt.Errorf("%q is not the ID of a session", s.Session)
	}
	here, err := session.Load(filepath.Join(p.Repo.Root, session.Dir, s.Session))
	if err == nil && here.Task != task {
		err = fmt.Errorf("session %s here is that of task %q", s.Session, here.Task)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	root, err := os.MkdirTemp("", "coven-record-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root) //nolint:errcheck // a temporary directory
	if err := session.Import(root, s.Session, task, s.Files, p.Env.Now); err != nil {
		return err
	}
	_, err = project.PlanOf(filepath.Join(root, session.Dir, s.Session))
	return err
}

// held returns a *HeldError if a machine seems to run a session, whose view is given.
func held(p *project.Project, name string, v session.View) error {
	if v.Status != session.Running {
		return nil
	}
	return &HeldError{Task: v.Task, Remote: name, Machine: holder.HostOf(v.Holder), Updated: v.Updated, Now: p.Env.Now()}
}

// Kept reports whether a remote keeps the session of a task, as far as this machine knows.
func Kept(ctx context.Context, p *project.Project, task string) (bool, error) {
	known, err := live.Known(ctx, p.Repo, task)
	return known != "", err
}

// Moved returns those of the sessions that another machine has continued or ended on their remotes. A remote that does not answer says nothing.
func Moved(ctx context.Context, p *project.Project, all []session.View) (moved []session.View) {
	tips := map[string]map[string]string{} // by remote
	for _, v := range all {
		name := v.Info.Remote
		if name == "" || !v.Live() {
			continue
		}
		if _, asked := tips[name]; !asked {
			tips[name], _ = live.Tips(ctx, p.Repo, name) // nil if it does not answer
		}
		known, err := live.Known(ctx, p.Repo, v.Task)
		if err == nil && tips[name] != nil && tips[name][live.Ref(v.Task)] != known {
			moved = append(moved, v)
		}
	}
	return moved
}

// bring replaces the session of a task here by the one of a remote.
func bring(ctx context.Context, p *project.Project, v session.View, s live.State) error {
	task := v.Task
	if err := recoverLanding(ctx, p, v); err != nil {
		return err
	}
	e, err := setAside(p.Repo.Root, s)
	if err != nil {
		return err
	}
	failpoint.Point("handover.aside")
	tree, err := worktree.Leftover(ctx, p.Repo, task)
	switch {
	case errors.Is(err, worktree.ErrNoWorktree):
	case err != nil:
		return err
	default:
		note := "another machine has continued session " + s.Session
		if e.at != "" && !e.continued {
			note += "; its record is in " + e.at
		}
		kept, err := keptBy(ctx, p.Repo, task, v.Info.Base, s.Tip)
		if err != nil {
			return err
		}
		if _, err := worktree.Remove(ctx, tree, worktree.RemoveRequest{Note: note, Landed: kept.Tip, Tree: kept.Tree}); err != nil {
			return err
		}
	}
	failpoint.Point("handover.removed")
	made := made(v)
	if err := live.Put(ctx, p.Repo, task, s, live.Worktree{Slug: session.Slug(v.Info.Query), Base: v.Info.Base, Made: made}); err != nil {
		return err
	}
	failpoint.Point("handover.refs")
	if err := session.Import(p.Repo.Root, s.Session, task, s.Files, p.Env.Now); err != nil {
		return err
	}
	failpoint.Point("handover.imported")
	e.join(filepath.Join(p.Repo.Root, session.Dir, s.Session))
	if made > 0 {
		if _, _, err := worktree.Recreate(ctx, p.Repo, task, s.Session); err != nil {
			return err
		}
	}
	if err := claimFor(ctx, p, v); err != nil {
		return err
	}
	failpoint.Point("handover.made")
	return live.Know(ctx, p.Repo, task, s.Tip)
}

// earlier is the record of a session here before that of another machine replaces it.
type earlier struct {
	root, at  string // at is relative to root; empty if there was none
	continued bool   // the record of the other machine begins with this one
}

// setAside sets aside the record of a session here.
func setAside(root string, s live.State) (e earlier, err error) {
	e.root = root
	dir := filepath.Join(root, session.Dir, s.Session)
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return e, nil
	}
	if err == nil && info.IsDir() { // not a link
		record, err := session.Record(dir)
		e.continued = err == nil && session.Continues(s.Files, record)
	}
	e.at, err = session.SetAside(root, &session.DamagedError{Session: s.Session})
	return e, err
}

// join moves the logs of a record that was continued to the session in dir, and deletes the rest.
func (e earlier) join(dir string) {
	if !e.continued {
		return
	}
	from := filepath.Join(e.root, e.at)
	if err := os.Rename(filepath.Join(from, session.LogsDir), filepath.Join(dir, session.LogsDir)); err == nil || errors.Is(err, fs.ErrNotExist) {
		_ = os.RemoveAll(from) // a rest is like any other record that was set aside
	}
}

// claimFor claims the task of a session that was brought here, unless the task has a claim. Its end releases the worktree and the claim.
func claimFor(ctx context.Context, p *project.Project, v session.View) error {
	_, err := claim.Acquire(ctx, p.Repo, claim.Claim{Task: v.Task, Holder: holder.Name(), Session: v.ID, Attempt: v.Info.Attempt, Expires: p.Env.Now()}, "")
	if errors.Is(err, claim.ErrClaimed) {
		return nil
	}
	return err
}

// recoverLanding finishes or undoes a landing that was interrupted here, of a session whose record another one is to replace.
func recoverLanding(ctx context.Context, p *project.Project, v session.View) error {
	l := integrate.Landing{Task: v.Task, Target: worktree.Target{Ref: v.Info.Target}, New: v.Info.Base} // the checkouts know which commit was to land
	_, err := land.RecoverLanding(ctx, p.Repo, l)
	return err
}

// made returns how often the worktree of a session has been made, or 0 if no step has started there.
func made(v session.View) int {
	n := 0
	for _, s := range v.Steps {
		n = max(n, 1, event.SetupNumber(s.Path))
	}
	return n
}
