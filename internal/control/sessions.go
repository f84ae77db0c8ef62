package control

import (
	"errors"

	"github.com/coven-run/coven/internal/control/workspace"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/session/collision"
	"github.com/coven-run/coven/worktree"
)

// Sessions lists the sessions of a repository, newest first. Unreadable sessions come last, with their
// damage and the command that helps.
func Sessions(p *project.Project) ([]session.View, error) {
	all, err := p.Finder.Summaries()
	return views(p, all, err)
}

// CurrentSessions is like Sessions, but omits all except the newest of the sessions that are over. It does
// not read the omitted ones.
func CurrentSessions(p *project.Project) ([]session.View, error) {
	all, err := p.Finder.Known()
	return views(p, current(all), err)
}

// views loads the views of sessions, and appends the damaged sessions that err names.
func views(p *project.Project, all []session.Summary, err error) ([]session.View, error) {
	views, unread := session.Views(all)
	damaged, err := session.DamagedIn(errors.Join(err, unread))
	if err != nil {
		return nil, err
	}
	seen, collisions := map[string]bool{}, collision.Of(p.Repo.Root, session.LiveStatuses(all))
	for i, v := range views {
		views[i].Collisions = collisions[v.ID]
		views[i].Turn = workspace.TurnOf(p.Repo, v)
		if path := p.Repo.WorktreePath(worktree.SafeName(v.Task)); !seen[v.Task] && exists(path) { // it is that of the newest
			views[i].Worktree = path
		}
		seen[v.Task] = true
	}
	for _, d := range damaged {
		views = append(views, d.View())
	}
	return views, nil
}

// maxEnded is the number of sessions that are over and still count as current.
const maxEnded = 10

// current returns the open sessions, and the newest of those that are over and the last of their tasks. all must be
// sorted newest first.
func current(all []session.Summary) (kept []session.Summary) {
	ended, seen := 0, map[string]bool{}
	for _, s := range all {
		again := seen[s.Task]
		seen[s.Task] = true
		if s.IsOver() {
			if again || ended == maxEnded {
				continue
			}
			ended++
		}
		kept = append(kept, s)
	}
	return kept
}

// Shown returns a view for programs, in which a damaged session has the next command.
func Shown(v session.View) session.View {
	next := NextOf(v)
	if v = v.Shown(); v.Status == session.Damaged {
		v.Next = next
	}
	return v
}
