package control

import (
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
)

// Sessions lists the sessions of a repository, the newest first. Sessions whose record
// cannot be read come last, with what is wrong and the command that helps.
func Sessions(p *project.Project) ([]session.View, error) {
	views, err := session.List(p.Repo.Root)
	damaged, err := session.DamagedIn(err)
	if err != nil {
		return nil, err
	}
	for _, d := range damaged {
		views = append(views, DamagedView(d))
	}
	return views, nil
}

// maxEnded is how many of the sessions that are over Current returns.
const maxEnded = 10

// Current returns the open sessions and the newest of those that are over. The newest of
// views come first.
func Current(views []session.View) []session.View {
	kept, ended := []session.View{}, 0
	for _, v := range views {
		if !v.Ended.IsZero() && v.Status != session.Blocked {
			if ended++; ended > maxEnded {
				continue
			}
		}
		kept = append(kept, v)
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
