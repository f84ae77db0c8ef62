package control

import (
	"context"
	"errors"
	"time"

	"github.com/coven-run/coven/internal/control/launch"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task/holder"
)

// stopTime limits how long coven waits for another coven to stop a session.
const stopTime = time.Minute

// stop asks the coven that runs a session to stop it and waits until it has stopped.
func (c *Controller) stop(ctx context.Context, v session.View) (session.View, error) {
	name, err := session.Ask(c.Project.Repo.Root, v.ID, session.Request{Kind: session.KindCancel, By: c.Project.Env.User(), Time: c.Project.Env.Now()})
	if err != nil {
		return v, err
	}
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	ticker := time.NewTicker(launch.PollInterval)
	defer ticker.Stop()
	for {
		now, err := session.Load(v.Dir)
		if err != nil || now.Status != session.Running && !session.Busy(v.Dir) {
			session.Withdraw(name)
			return now, err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			session.Withdraw(name)
			if err := context.Cause(ctx); errors.Is(err, ErrInterrupted) {
				return v, err
			}
			return v, exit.Personf("kill "+holder.PidOf(v.Holder), "task %s: the coven that is running it (%s) does not stop", v.Task, v.Holder)
		}
	}
}
