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
		t.Run(point, func(t *testing.T) {
			testscript.Run(t, testscript.Params{
				Files: stories(t, "crash"), Cmds: scriptCommands(), RequireExplicitExec: true,
				Setup: func(env *testscript.Env) error {
					env.Setenv("POINT", point)
					return seal(env)
				},
			})
		})
	}
}
