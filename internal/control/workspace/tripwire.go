package workspace

import (
	"context"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/worktree/tripwire"
)

// Watch starts to watch the state that no program of the task may change.
func (s *Workspace) Watch(ctx context.Context) (err error) {
	s.mark, err = tripwire.Watch(ctx, s.Worktree, tripwire.WatchOptions{Fenced: s.Sandbox.Fences(), Running: s.othersRunning})
	return err
}

// Compare returns the changes since Watch, or nil. No program of the task may be running. Call EndWatch when
// the changes are recorded.
func (s *Workspace) Compare(ctx context.Context) (*event.RepositoryChange, error) {
	found, err := s.mark.Compare(ctx)
	if err != nil {
		return nil, err
	}
	return RepositoryChange(found), nil
}

// EndWatch ends Watch. Before that, Compare returns the same changes again.
func (s *Workspace) EndWatch() error { return s.mark.Done() }

// report records the changes since a coven was killed while it watched.
func (s *Workspace) report(ctx context.Context) error {
	if !tripwire.Watched(s.Worktree) {
		return nil
	}
	if err := s.Watch(ctx); err != nil {
		return err
	}
	if found, ok := s.mark.Unreported(); ok {
		if err := s.Session.Append(event.Event{Type: event.RepositoryChanged}, RepositoryChange(found)); err != nil {
			return err
		}
	}
	return s.EndWatch()
}

// othersRunning returns the other running tasks.
func (s *Workspace) othersRunning() []string {
	sessions, _ := session.NewFinder(s.Repo.Root).Known() // a session that cannot be read does not run
	var tasks []string
	for _, v := range sessions {
		if v.Status == session.Running && v.Task != s.Task && session.Busy(v.Dir()) {
			tasks = append(tasks, v.Task)
		}
	}
	return tasks
}

// RepositoryChange returns the event data for the changes that a Mark found, or nil if there are none.
func RepositoryChange(found tripwire.Found) *event.RepositoryChange {
	if len(found.Changes) == 0 {
		return nil
	}
	data := &event.RepositoryChange{
		Severity: string(found.Severity()), Fenced: found.Fenced, Since: found.Since, Rescue: found.Rescue, NotFiles: found.NotFiles,
	}
	for _, severity := range []tripwire.Severity{tripwire.Stops, tripwire.Holds, tripwire.Noted} {
		for _, c := range found.Of(severity) {
			data.Changes = append(data.Changes, event.Changed{
				Kind: string(c.Kind), Name: c.Name, Task: c.Task, Severity: string(severity), Text: c.String(),
			})
		}
	}
	if more := len(data.Changes) - event.MaxChanged; more > 0 {
		data.Changes, data.More = data.Changes[:event.MaxChanged], more
	}
	return data
}
