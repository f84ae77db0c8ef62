package handover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/coven-run/coven/internal/control/consent"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/session/away"
	"github.com/coven-run/coven/internal/task/holder"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/worktree/diff"
	"github.com/coven-run/coven/worktree/live"
	"github.com/coven-run/coven/worktree/remote"
)

// Mirror updates the records of those sessions here that another machine has continued or ended on their remotes, so that they can be shown. Only the records change: Take
// brings such a session here. Without sessions on remotes, Mirror does nothing.
func Mirror(ctx context.Context, p *project.Project) error {
	agreed, _, err := consent.Read(p.Repo.Root, consentFile)
	if err != nil || agreed == "" {
		return err
	}
	all, _ := p.Finder.Known() // damaged sessions are not mirrored
	on := map[string][]session.View{}
	for _, s := range project.Newest(all) {
		if !s.Live() && s.Status != session.Failed {
			continue
		}
		if v, err := s.View(); err == nil && v.Unfinished() && v.Info.Remote != "" && !session.Busy(v.Dir) {
			on[v.Info.Remote] = append(on[v.Info.Remote], v)
		}
	}
	var failed error
	for _, name := range slices.Sorted(maps.Keys(on)) {
		failed = errors.Join(failed, mirrorAll(ctx, p, name, on[name]))
	}
	return failed
}

// A mirror updates the record of a session.
type mirror struct {
	view       session.View
	known, tip string // the tips that this machine and the remote have
	state      *away.State
	events     []byte // of the other machine, or nil

	targets map[string]string // tips of those that were fetched
}

// mirrorAll mirrors the sessions that a remote keeps. One that cannot be mirrored does not affect the others.
func mirrorAll(ctx context.Context, p *project.Project, name string, views []session.View) error {
	if err := stillAgreed(ctx, p.Repo, name, views[0].Task); err != nil {
		return err
	}
	var all []*mirror
	targets := map[string]string{}
	for _, v := range views {
		known, err := live.Known(ctx, p.Repo, v.Task)
		if err != nil {
			return err
		}
		if known != "" { // otherwise it was never pushed, or is over there
			all = append(all, &mirror{view: v, known: known, targets: targets})
		}
	}
	if len(all) == 0 {
		return nil
	}
	tips, err := tipsOf(ctx, p, name)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(m *mirror) bool {
		m.tip = tips[live.Ref(m.view.Task)]
		return m.seen()
	})
	wanted := map[string]string{}
	for _, m := range all {
		if m.tip != "" && m.tip != m.known {
			wanted[live.Ref(m.view.Task)] = m.tip
		}
	}
	states, failed := map[string]live.State{}, error(nil)
	if len(wanted) > 0 {
		var damaged map[string]error
		states, damaged = live.FetchAll(ctx, p.Repo, name, wanted)
		failed = errors.Join(slices.Collect(maps.Values(damaged))...)
	}
	for _, m := range all {
		if errors.Is(failed, ErrAway) {
			break // all others would wait for it, too
		}
		if s, fetched := states[live.Ref(m.view.Task)]; m.tip == "" || m.tip == m.known || fetched {
			failed = errors.Join(failed, m.update(ctx, p, name, s))
		}
	}
	return failed
}

// seen reports whether this machine has the session, or has seen its state at the remote.
func (m *mirror) seen() bool {
	at := m.view.Away
	switch {
	case at == nil:
		return m.known == m.tip
	case m.known == m.tip:
		return at.Tip != "" // Take brings the older record
	}
	return !at.Partial && at.Tip == m.tip && at.Tip+at.Landed != "" // one that ended without landing may have landed on a branch that was late
}

// update updates a record. s is the session at the tip of the remote, if there is one.
func (m *mirror) update(ctx context.Context, p *project.Project, name string, s live.State) (err error) {
	switch m.tip {
	case m.known: // this machine has it after all
	case "":
		err = m.over(ctx, p, name)
	default:
		err = m.take(ctx, p, name, s)
	}
	if err != nil || m.state.Equal(m.view.Away) {
		return err
	}
	release, err := live.Lock(ctx, p.Repo, m.view.Task)
	if err != nil {
		return err
	}
	defer release()
	if err = m.write(ctx, p); errors.Is(err, session.ErrBusy) {
		return nil // this machine continues it
	}
	return err
}

// write writes the state and the events, unless another process was faster. The caller has locked the task. The error is session.ErrBusy if this machine continues the session.
func (m *mirror) write(ctx context.Context, p *project.Project) error {
	return session.Mirror(p.Repo.Root, m.view.ID, p.Env.Now, func() (*away.State, []byte, error) {
		known, err := live.Known(ctx, p.Repo, m.view.Task)
		if now := away.Read(m.view.Dir); err != nil || known != m.known || !now.Equal(m.view.Away) { // another process was faster
			return now, nil, err
		}
		return m.state, m.events, nil
	})
}

// over sets the state of a session that is over on its remote. It fetches the target, and the archives only if the session has not landed.
func (m *mirror) over(ctx context.Context, p *project.Project, name string) error {
	target := m.view.Info.Target
	if m.targets[target] == "" {
		up, err := fetchTarget(ctx, p, name, m.view)
		if err != nil {
			return err
		}
		m.targets[target] = up.Tip
	}
	if err := m.end(ctx, p, m.targets[target], live.Archives{}); err != nil || m.state.Landed != "" || m.state.Status != "" {
		return err
	}
	_, archives, _, err := fetchEnds(ctx, p, name, m.view) // without them, the end has no reason
	if err == nil {
		err = m.end(ctx, p, m.targets[target], archives)
	}
	return err
}

// end sets the state of a session that is over on its remote. tip is the one of its target.
func (m *mirror) end(ctx context.Context, p *project.Project, tip string, archives live.Archives) error {
	commit, err := live.LandedAs(ctx, p.Repo, m.view.Task, m.view.Info.Base, tip)
	m.state = &away.State{Landed: commit}
	if at := m.view.Away; err != nil || commit != "" {
		return err
	} else if at != nil && at.Tip == "" {
		m.state.Status, m.state.Why = at.Status, at.Why
	} else if v, ok := endOf(ctx, p, archives, m.view); ok {
		m.state.Status, m.state.Why = string(v.Status), v.Detail
	}
	return nil
}

// endOf returns the view of a session that ended without landing, from the archives of its remote. ok is false if they have none. The first end counts: other machines
// end their copies later.
func endOf(ctx context.Context, p *project.Project, archives live.Archives, here session.View) (end session.View, ok bool) {
	for s, err := range archives.States(ctx, p.Repo, here.ID) {
		v := session.View{}
		if err == nil {
			v, err = viewOf(s, live.Ref(here.Task))
		}
		if err == nil && !v.Unfinished() && (!ok || v.Updated.Before(end.Updated)) {
			end, ok = v, true
		}
	}
	return end, ok
}

// reasons are the reasons of sessions that ended on another machine, by their status.
var reasons = map[event.Status]string{session.Completed: "nothing changed", session.Failed: "rejected on another machine", session.Cancelled: "cancelled on another machine"}

// EndOf returns the event and the reason with which a session ends here that is over on its remote: those of its end there or, if these are not known, the given ones. A
// status without a reason gets one. With neither, the reason is empty.
func EndOf(v session.View, status event.Status, why string) (end event.Type, reason string) {
	if v.Away != nil && reasons[event.Status(v.Away.Status)] != "" {
		status, why = event.Status(v.Away.Status), v.Away.Why
	}
	return event.Type("session." + status), cmp.Or(why, reasons[status])
}

// take sets the state and the events of a session that another machine has, unless these are an earlier record of this machine.
func (m *mirror) take(ctx context.Context, p *project.Project, name string, s live.State) error {
	here, err := session.Record(m.view.Dir)
	if err != nil || m.view.Away == nil && session.Continues(here, s.Files) {
		return err
	}
	v, err := viewOf(s, live.Ref(m.view.Task))
	if err == nil && s.Session != m.view.ID { // another one has begun since
		return m.over(ctx, p, name)
	}
	if err == nil {
		err = checkCopy(p, name, v, here, s)
	}
	m.state, m.events = &away.State{Tip: s.Tip, Machine: holder.HostOf(v.Holder), Remote: name}, session.EventsOf(s.Files)
	return damaged(p, name, m.view.Task, err)
}

// checkCopy returns an error unless the record of a session at a remote, whose view is given, can replace the one here.
func checkCopy(p *project.Project, name string, v session.View, here map[string][]byte, s live.State) error {
	if v.Info.Remote != name {
		return fmt.Errorf("it was begun with a remote called %q", v.Info.Remote)
	}
	if !away.SameStart(session.EventsOf(here), session.EventsOf(s.Files)) {
		return errors.New("its events begin with others than here")
	}
	return checkRecord(p, v.Task, s)
}

// Change returns the change of a session that another machine has, as of its last step.
func Change(ctx context.Context, p *project.Project, v session.View) (diff.Diff, error) {
	next := "coven resume " + shellword.Word(v.Task) + " --remote " + shellword.Word(v.Info.Remote)
	s, err := live.Read(ctx, p.Repo, v.Away.Tip)
	if err != nil {
		return diff.Diff{}, exit.Failedf(next, "%s has the change of task %s: %w", v.Away.Machine, v.Task, err)
	}
	content := s.Snapshot
	if content == "" {
		content = s.Branch.Tip
	}
	if content == "" {
		return diff.Diff{From: v.Info.Base, To: v.Info.Base}, nil
	}
	start := v.Info.Base
	for _, merged := range slices.Backward(s.Branch.Merged) {
		if in, err := remote.Contains(ctx, p.Repo, s.Branch.Tip, merged); err == nil && in {
			start = merged
			break
		}
	}
	tree, err := remote.Tree(ctx, p.Repo, content)
	if err != nil {
		return diff.Diff{}, exit.Failedf(next, "%s has the change of task %s: %w", v.Away.Machine, v.Task, err)
	}
	return diff.Between(ctx, p.Repo, start, tree)
}
