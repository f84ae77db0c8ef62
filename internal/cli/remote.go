package cli

import (
	"context"
	"strings"

	"github.com/coven-run/coven/internal/control/handover"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/terminal"
)

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
