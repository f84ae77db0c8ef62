package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestLandingCrash kills coven at every point between the agent's end and the
// closed task, and goes on.
func TestLandingCrash(t *testing.T) {
	for _, point := range []string{
		"event.after.step.completed",
		"commit.made",
		"commit.moved",
		"integrate.locked",
		"integrate.return",
		"land.locked",
		"land.merged",
		"land.commit",
		"event.before.land.intended",
		"event.after.land.intended",
		"land.intent",
		"land.checkout.before",
		"land.checkout.each",
		"land.checkout.after",
		"land.ref.before",
		"land.ref.after",
		"land.return",
		"event.before.land.done",
		"event.after.land.done",
		"task.before.rename:2",
		"task.after.rename:2",
		"complete.begin",
		"complete.closed",
		"remove.stored",
		"remove.unregistered",
		"remove.trashed",
		"remove.branch",
		"complete.left",
		"complete.released",
		"event.before.session.completed",
	} {
		dieAt(t, "crash", point)
	}
}

// TestResolveCrash kills coven at every point between a conflict and the landing
// of what an agent made of it.
func TestResolveCrash(t *testing.T) {
	for _, point := range []string{
		"event.after.step.completed:2", // the conflict
		"event.after.step.started:3",   // the resolver's
		"conflicted.recorded",
		"conflicted.worktree",
		"conflicted.return",
		"event.before.merge.begun",
		"event.after.merge.begun",
		"event.after.agent.started:2",
		"event.after.gate.decided:2",
		"commit.made:2",
		"commit.moved:2",
		"event.before.step.completed:3", // what it made
		"event.after.step.completed:3",
		"event.after.check.started",
		"event.after.check.ended",
		"land.intent",
		"land.ref.after",
	} {
		dieAt(t, "crashresolve", point)
	}
}

// dieAt plays the stories of a directory with a coven that is killed at a point.
func dieAt(t *testing.T, dir, point string) {
	t.Helper()
	if raced {
		t.Skip("the crash matrix is many processes, not many goroutines: make crash plays it without -race")
	}
	t.Run(point, func(t *testing.T) {
		testscript.Run(t, testscript.Params{
			Files: stories(t, dir), Cmds: scriptCommands(), RequireExplicitExec: true,
			Setup: func(env *testscript.Env) error {
				env.Setenv("POINT", point)
				return seal(env)
			},
		})
	})
}
