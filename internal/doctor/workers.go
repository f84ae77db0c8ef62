package doctor

import (
	"context"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/control/fleet"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/internal/text/shellword"
)

// serverTime limits how long the server of the workers may take to answer.
const serverTime = 15 * time.Second

// workers asks the server of the workers, if there is one, which machines serve the repository.
func (v *Examination) workers(ctx context.Context) []Finding {
	on := v.project.Config.Run.On
	if on == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, serverTime)
	defer cancel()
	next := "coven worker list --on " + shellword.Word(on)
	program, err := fleet.Command(ctx, v.env.Self, "list", "--on", on)
	if err != nil {
		return fail(exit.Next(err), "%v", err)
	}
	program.Dir, program.WaitDelay = v.project.Repo.Checkout, time.Second
	out, err := program.CombinedOutput()
	if err != nil {
		return fail(next, "%s does not answer: %s", on, oneline.Of(strings.TrimPrefix(string(out), fleet.Program+": ")))
	}
	machines := strings.Count("\n"+string(out), "\nmachine ")
	if machines == 0 {
		return warn("coven worker --on "+shellword.Word(on), "no machine serves this repository on %s", on)
	}
	return ok("%d machines serve this repository on %s", machines, on)
}
