package board_test

import (
	"context"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/board"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
)

// A session that waits for a worker needs a person only if no machine can run it. The board says why.
func TestUnserved(t *testing.T) {
	dir := emptyRepository(t)
	for _, task := range []string{"a", "b"} {
		s, err := session.Create(dir, task, "task "+task, time.Now)
		must(t, err)
		must(t, s.Freeze([]byte("v: 1\ngrimoire: {name: x}\n")))
		must(t, s.Append(event.Event{Type: event.SessionStarted}, event.Session{Query: "task " + task}))
		must(t, s.Append(event.Event{Type: event.SessionWaiting}, event.Waiting{Reason: event.WaitWorker}))
		must(t, s.Close())
	}
	r := watch(t, func(_ context.Context, waiting []session.View) {
		for i, v := range waiting {
			if v.Task == "b" {
				waiting[i].Detail, waiting[i].Next = "no machine has the label gpu", "coven worker --label gpu"
			}
		}
	})
	find := func(task string) board.Card {
		t.Helper()
		c, err := r.Find(task)
		must(t, err)
		return c
	}
	for find("b").Section != board.NeedsYou {
		must(t, r.Changed())
	}
	if c := find("b"); c.Text != "no machine has the label gpu" || c.Next != "coven worker --label gpu" {
		t.Errorf("%q, %q", c.Text, c.Next)
	}
	if c := find("a"); c.Section != board.Waiting {
		t.Errorf("it is in %s", c.Section)
	}
}
