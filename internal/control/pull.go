package control

import (
	"context"
	"slices"

	"github.com/coven-run/coven/internal/control/pulls"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
)

// forge returns the host of the repository.
func (c *Controller) forge() *pulls.Forge {
	return &pulls.Forge{Repo: c.Project.Repo, Config: c.Project.Config.Forge, Host: c.Runtime.host, Hide: c.Project.Hidden, Now: c.Project.Env.Now}
}

// WaitsForHost reports whether a session waits for the host of its pull request.
func WaitsForHost(v session.View) bool {
	return v.Status == session.Waiting && (v.Reason == event.WaitCI || v.Reason == event.WaitMerge) && v.Pull != nil
}

// ChangedPulls returns those of the sessions whose pull request has changed since they stopped. It asks the host about all of them, if
// it is time; with now, it is time. The error is about the host; then the sessions may be incomplete.
func (c *Controller) ChangedPulls(ctx context.Context, all []session.View, now bool) ([]session.View, error) {
	all = slices.DeleteFunc(slices.Clone(all), func(v session.View) bool { return !WaitsForHost(v) })
	if len(all) == 0 {
		return nil, nil
	}
	var of []event.PullRequest
	for _, v := range all {
		of = append(of, *v.Pull)
	}
	changed, err := c.forge().Changed(ctx, of, now)
	return slices.DeleteFunc(all, func(v session.View) bool { return !slices.Contains(changed, v.Pull.Number) }), err
}
