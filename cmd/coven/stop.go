package main

import (
	"context"
	"errors"
	"time"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/session"
)

// stopTime bounds how long coven waits for another coven to stop a session.
const stopTime = time.Minute

// stop asks the coven that runs a session to stop it, and waits until it has.
func (d *desk) stop(ctx context.Context, v session.View) (session.View, error) {
	name, err := session.Ask(d.house.repo.Root, v.ID, session.Request{Kind: session.KindCancel, By: d.house.env.user(), Time: d.house.env.now()})
	if err != nil {
		return v, err
	}
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	ticker := time.NewTicker(lookEvery)
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
			if err := context.Cause(ctx); errors.Is(err, errInterrupted) {
				return v, err
			}
			return v, exit.Personf("kill "+pidOf(v.Holder), "task %s: the coven that runs it (%s) does not stop", v.Task, v.Holder)
		}
	}
}
