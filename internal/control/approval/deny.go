package approval

import (
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
)

// Deny returns an observer that denies each question of the project's agents, for sessions without a person. by is recorded as
// the author of the answers.
func Deny(p *project.Project, by string) func(event.Event) {
	return func(e event.Event) {
		if e.Type != event.PermissionRequested {
			return
		}
		answer := event.ApprovalAnswer{N: event.As[event.Approval](e).N, Answer: event.Denied}
		_, _ = session.Ask(p.Repo.Root, e.Session, session.Request{ // without an answer, the session ends at its time limit
			Kind: session.KindAnswer, By: by, Time: p.Env.Now(), Answer: &answer,
		})
	}
}
