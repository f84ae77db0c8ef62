package control

import (
	"errors"

	"github.com/coven-run/coven/internal/control/workspace"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
)

// Sessions lists the sessions of a repository, the newest first. Sessions whose record
// cannot be read come last, with what is wrong and the command that helps.
func Sessions(p *project.Project) ([]session.View, error) {
	all, err := p.Finder.Summaries()
	return views(p, all, err)
}

// CurrentSessions lists, like Sessions, the open sessions and the newest of those that are
// over. The others cost nothing.
func CurrentSessions(p *project.Project) ([]session.View, error) {
	all, err := p.Finder.Summaries()
	return views(p, current(all), err)
}

// views returns the views of sessions, and those of the damaged sessions that err names.
func views(p *project.Project, all []session.Summary, err error) ([]session.View, error) {
	views, unread := session.Views(all)
	damaged, err := session.DamagedIn(errors.Join(err, unread))
	if err != nil {
		return nil, err
	}
	for i, v := range views {
		views[i].Turn = workspace.TurnOf(p.Repo, v)
	}
	for _, d := range damaged {
		views = append(views, DamagedView(d))
	}
	return views, nil
}

// maxEnded is how many of the sessions that are over are current.
const maxEnded = 10

// current returns the open sessions and the newest of those that are over. The newest of all
// come first.
func current(all []session.Summary) []session.Summary {
	var kept []session.Summary
	ended := 0
	for _, s := range all {
		if s.IsOver() {
			if ended++; ended > maxEnded {
				continue
			}
		}
		kept = append(kept, s)
	}
	return kept
}

// Shown returns a session as programs are shown it: a damaged session has the next command.
func Shown(v session.View) session.View {
	next := NextOf(v)
	if v = v.Shown(); v.Status == session.Damaged {
		v.Next = next
	}
	return v
}
