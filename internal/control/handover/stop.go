package handover

import (
	"context"
	"errors"
	"time"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task/holder"
	"github.com/coven-run/coven/runner"
)

// stopTime limits how long coven waits for another coven to stop a session.
const stopTime = time.Minute

// stopPoll is the pause between two looks at the session.
const stopPoll = 100 * time.Millisecond

// Stop asks the coven on this machine that runs a session of a repository to stop it, and waits until it has stopped.
func Stop(ctx context.Context, root string, v session.View, r session.Request) (session.View, error) {
	name, err := session.Ask(root, v.ID, r)
	if err != nil {
		return v, err
	}
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	ticker := time.NewTicker(stopPoll)
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
			if err := context.Cause(ctx); errors.Is(err, runner.ErrInterrupted) {
				return v, err
			}
			return v, exit.Personf("kill "+holder.PidOf(v.Holder), "task %s: the coven that is running it (%s) does not stop", v.Task, v.Holder)
		}
	}
}

// Idle waits until no coven on this machine writes the session in a directory, and returns the session.
func Idle(ctx context.Context, dir string) (session.View, error) {
	ticker := time.NewTicker(stopPoll)
	defer ticker.Stop()
	for session.Busy(dir) {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return session.View{}, context.Cause(ctx)
		}
	}
	return session.Load(dir)
}
