package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/control/handover"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/oneline"
)

// mirrorTime limits how long a command that shows sessions waits for their remotes.
const mirrorTime = 5 * time.Second

// Mirror updates the records of the sessions that other machines have continued. If a remote does not answer, it says so, and the command shows
// the last known state.
func (a *App) Mirror(ctx context.Context, p *project.Project) {
	limited, cancel := context.WithTimeout(ctx, mirrorTime)
	defer cancel()
	if err := handover.Mirror(limited, p); err != nil && ctx.Err() == nil {
		fmt.Fprintln(a.Err, "note: sessions that other machines have may be out of date:", terminal.Printable(oneline.Of(a.hidden(err.Error())))) //nolint:errcheck // nothing else can report it
	}
}

// KeepOn returns an error unless the user agrees to keep sessions on a remote, which others can read. With accepted, the user agrees; otherwise KeepOn asks on a
// terminal. next is the command that agrees.
func (a *App) KeepOn(ctx context.Context, p *project.Project, remote string, accepted bool, next string) error {
	ask := func(ctx context.Context, gap string) (bool, error) {
		answer, err := a.Ask(ctx, strings.ToUpper(gap[:1])+terminal.Printable(gap[1:])+".\nKeep sessions there? [y]es [n]o ")
		return strings.HasPrefix(answer, "y"), err
	}
	if !a.Interactive {
		ask = nil
	}
	return handover.CheckConsent(ctx, p, remote, accepted, ask, next)
}
