package control

import (
	"context"
	"slices"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/control/pulls"
	"github.com/coven-run/coven/internal/control/workspace"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/worktree"
)

// forge returns the host of the repository.
func (c *Controller) forge() *pulls.Forge {
	return &pulls.Forge{Repo: c.Project.Repo, Config: c.Project.Config.Forge, Host: c.Runtime.host, Hide: c.Project.Hidden, Now: c.Project.Env.Now}
}

// ChangedPulls returns those of the sessions whose pull request has changed since they stopped. It asks the host about all of them, if
// it is time; with now, it is time. The error is about the host; then the sessions may be incomplete.
func (c *Controller) ChangedPulls(ctx context.Context, all []session.View, now bool) ([]session.View, error) {
	all = slices.DeleteFunc(slices.Clone(all), func(v session.View) bool { return !v.WaitsForHost() })
	if len(all) == 0 {
		return nil, nil
	}
	var of []event.PullRequest
	for _, v := range all {
		of = append(of, *v.Pull)
	}
	changed, err := c.forge().Changed(ctx, of, now)
	return slices.DeleteFunc(all, func(v session.View) bool {
		due := !v.Until.IsZero() && (now || !c.Project.Env.Now().Before(v.Until))
		landed, orphaned := pulls.Below(c.Project.Finder, v.Info.StackedOn)
		return !due && !slices.Contains(changed, *v.Pull) && landed == "" && orphaned == ""
	}), err
}

// pullTarget returns the target of a change that lands with a pull request. It is the upstream of a local branch, or the branch of the
// task that blocks the item, if that waits for its pull request to be merged. stackedOn is that task.
func (c *Controller) pullTarget(ctx context.Context, item project.Item, local worktree.Target) (target worktree.Target, stackedOn string, err error) {
	target, err = workspace.PullTarget(ctx, c.Project.Repo, local.Branch)
	if err != nil || item.Tracker == nil {
		return target, "", err
	}
	ids, err := item.Tracker.Blockers(ctx, item.Task.ID)
	if err != nil || len(ids) != 1 {
		return target, "", err
	}
	below, err := c.Project.Finder.OfTask(ids[0])
	if err != nil || !below.WaitsForHost() || !below.Pull.InBaseRepository() {
		return target, "", nil //nolint:nilerr // then the task is blocked
	}
	target, err = workspace.PullTarget(ctx, c.Project.Repo, below.Pull.TrackingRef())
	return target, ids[0], err
}

// unstack gives a session whose change was stacked on another the target of that one, once it has landed. The landing rebases the
// change.
func (c *Controller) unstack(s *session.Session, v *session.View, plan *grimoires.Plan) error {
	target, _ := pulls.Below(c.Project.Finder, v.Info.StackedOn)
	if target == "" {
		return nil
	}
	v.Info.Target, v.Info.StackedOn, plan.Target = target, "", target
	return s.Append(event.Event{Type: event.PullMoved}, event.PullTarget{Target: target})
}
