package main

import (
	"context"
	"fmt"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/worktree"
)

const question = "[a]pprove [d]iff [r]eject [l]ater "

// review asks a person about a change that is ready, and does as told.
func (d *desk) review(ctx context.Context, dir string, j job) error {
	v, err := session.Load(dir)
	if err != nil {
		return err
	}
	for {
		answer, err := d.app().ask(ctx, question)
		if err != nil {
			return err
		}
		switch answer {
		case "a", "approve":
			return d.approveNow(ctx, v)
		case "d", "diff":
			if err := d.printDiff(ctx, j.task.ID, false); err != nil {
				return err
			}
		case "r", "reject":
			reason, err := d.app().ask(ctx, "reason: ")
			if err != nil {
				return err
			}
			if reason == "" {
				if err := d.app().say("a rejection needs a reason\n"); err != nil {
					return err
				}
				continue
			}
			if err := d.reject(ctx, v, reason, worktree.RemoveRequest{}); err != nil {
				return err
			}
			return status(exitFailed)
		case "", "l", "later":
			if err := d.app().say("it waits\n  next: coven approve %s\n", shellWord(v.Task)); err != nil {
				return err
			}
			return status(exitPerson)
		default:
			if err := d.app().say("%q is no answer here\n", answer); err != nil {
				return err
			}
		}
	}
}

// approveNow records a person's approval of the change that v waits with, and
// goes on with the session.
func (d *desk) approveNow(ctx context.Context, v session.View) error {
	if err := d.answer(v, event.Review{Patch: v.Review.Patch, Approved: true, By: d.user()}); err != nil {
		return err
	}
	return d.resume(ctx, v)
}

// answer records a person's answer to the question that v waits with.
func (d *desk) answer(v session.View, r event.Review) error {
	if v.Review == nil {
		return fmt.Errorf("session %s asked no question", v.ID)
	}
	s, err := d.take(v)
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // every event is on disk
	return s.Append(event.Event{Type: event.ReviewAnswered, Path: v.Review.Path}, r)
}

// user is the name under which a person's decisions are on record.
func (d *desk) user() string {
	if name := d.app().getenv("USER"); name != "" {
		return name
	}
	return "a person"
}
