package handover

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/worktree/live"
	"github.com/coven-run/coven/worktree/remote"
)

// archiveSkew is how much the clocks of machines may differ for the archives of their sessions to be found.
const archiveSkew = 24 * time.Hour

// fetchEnds fetches the target of a session, and the archives of its remote. If only these cannot be fetched, problem says why.
func fetchEnds(ctx context.Context, p *project.Project, name string, here session.View) (up remote.Upstream, a live.Archives, problem, err error) {
	up, a, problem = live.FetchEnds(ctx, p.Repo, name, here.Info.Target, here.Updated.Add(-archiveSkew), p.Env.Now().Add(archiveSkew))
	if problem != nil {
		up, err = fetchTarget(ctx, p, name, here)
		return up, a, problem, err
	}
	_ = live.Join(ctx, p.Repo, name, a) // the next fetch tries again
	return up, a, nil, nil
}

// fetchTarget fetches the target of a session.
func fetchTarget(ctx context.Context, p *project.Project, name string, here session.View) (remote.Upstream, error) {
	up, err := remote.FetchUpstream(ctx, p.Repo, here.Info.Target, live.Timeout)
	return up, Unreachable(p, name, err)
}

// archived sets the events of a session that is over on its remote, from the archives there, without its end, so that it can end here, too. Without a record that says
// more than the one here, the events are nil. The error says why the archives have none.
func (m *mirror) archived(ctx context.Context, p *project.Project, name string, archives live.Archives) error {
	here, landed := m.view, m.state.Landed
	own, err := session.Record(here.Dir)
	if err != nil {
		return err
	}
	var failed error
	var events []byte
	for s, err := range archives.States(ctx, p.Repo, here.ID) {
		v := session.View{}
		if err == nil {
			v, err = viewOf(s, live.Ref(here.Task))
		}
		if err == nil {
			err = checkCopy(p, name, v, own, s)
		}
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		work, lands := withoutEnd(session.EventsOf(s.Files)), landed != "" && (v.Landing.New == landed || v.Landed.New == landed)
		if lands || len(work) > len(events) {
			events = work
		}
		if lands { // other machines may have tried it
			if had, err := live.Read(ctx, p.Repo, m.known); err == nil && live.Keeps(ctx, p.Repo, s.Tip, had) {
				m.state.Had = m.known
			}
			break
		}
	}
	switch {
	case events == nil:
		return failed
	case !bytes.HasPrefix(session.EventsOf(own), events):
		m.events = events
	}
	return nil
}

// ends are the types of events with which a session lands or ends.
var ends = []event.Type{event.LandIntended, event.TaskClosed, event.TaskReleased, event.SessionCompleted, event.SessionFailed, event.SessionCancelled}

// withoutEnd returns the events of a session without its end: those after the last step with which the session lands or ends.
func withoutEnd(content []byte) []byte {
	events, _ := event.Parse("events", content) // they have been checked
	n := len(events)
	for i, e := range slices.Backward(events) {
		if e.Type == event.StepStarted || e.Type == event.StepCompleted {
			break
		}
		if slices.Contains(ends, e.Type) {
			n = i
		}
	}
	return bytes.Join(bytes.SplitAfter(content, []byte("\n"))[:n], nil)
}

// warn adds a warning to the record of a session here, once.
func warn(p *project.Project, v session.View, text string) {
	if slices.Contains(v.Warnings, text) {
		return
	}
	s, err := session.Open(p.Repo.Root, v.ID, p.Env.Now)
	if err != nil {
		return // the session goes on without it
	}
	defer s.Close() //nolint:errcheck // every event is on disk
	_ = s.Append(event.Event{Type: event.Warning}, event.Text{Text: text})
}
