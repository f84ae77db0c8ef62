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
