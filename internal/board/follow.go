package board

import (
	"slices"
	"time"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/session"
)

// followEvery is how often a face looks for changes of pull requests. All coven processes together ask the hosts at most as often.
const followEvery = 30 * time.Second

// FollowPulls continues the sessions whose pull request has changed, until the context of the face ends: it starts coven resume --changed from time to time
// while a session waits for the host of its pull request. At most as many of these commands run at once as tasks may, each with one task.
func (r *Repository) FollowPulls() {
	running := make(chan struct{}, max(r.Project.Config.Run.MaxTasks, 1))
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for r.Context.Err() == nil {
		if len(running) < cap(running) && r.waitsForHost() {
			r.resumeChanged(running)
		}
		select {
		case <-ticker.C:
		case <-r.Context.Done():
		}
	}
}

func (r *Repository) waitsForHost() bool {
	views, _ := control.Sessions(r.Project) // the face reports damaged ones
	return slices.ContainsFunc(views, session.View.WaitsForHost)
}

func (r *Repository) resumeChanged(running chan struct{}) {
	wait, err := r.Start([]string{"resume", "--changed", "--jobs", "1"})
	if err != nil {
		return // the next attempt may succeed
	}
	running <- struct{}{}
	go func() {
		_, _ = wait() // the sessions record how it ended
		<-running
	}()
}
