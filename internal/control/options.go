package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/coven-run/coven/internal/control/agents"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/text/didyoumean"
	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/diff"
	"github.com/coven-run/coven/worktree/remote"
)

// CheckOptions returns an error if no session could begin with these options, regardless of its task.
// Callers use it once before they start tasks.
func CheckOptions(ctx context.Context, p *project.Project, o Options) error {
	if err := p.CheckChoice(o.Grimoire); err != nil {
		return err
	}
	if o.Remote != "" {
		if _, err := remote.Address(ctx, p.Repo, o.Remote); err != nil {
			return err
		}
	}
	if o.Provider != "" {
		err := p.CheckPlugins([]plugins.Need{plugins.NeedOf(o.Provider)})
		if errors.Is(err, plugins.ErrUnknown) {
			return err // consent to run a known plugin is asked for later
		}
	}
	if err := agents.CheckModelName(cmp.Or(o.Provider, p.Config.Provider), o.Model); err != nil {
		return err
	}
	_, err := baseOf(ctx, p, worktree.Target{}, o.Base)
	return err
}

// baseOf returns the commit that a session starts from: base, or the tip of the target.
func baseOf(ctx context.Context, p *project.Project, target worktree.Target, base string) (string, error) {
	if base == "" {
		return target.Tip, nil
	}
	info, err := diff.ShowCommit(ctx, p.Repo, base)
	if err != nil {
		return "", exit.Usagef("git log --oneline", "--base %s: no such commit", base)
	}
	return info.Oid, nil
}

// unknownBranch adds the most similar branch to the error about a branch that does not
// exist.
func unknownBranch(ctx context.Context, p *project.Project, onto string, err error) error {
	if !errors.Is(err, worktree.ErrUnknownBranch) {
		return err
	}
	branches, _ := p.Repo.Branches(ctx) // the error is about onto
	return fmt.Errorf("%w%s", err, didyoumean.Aside(onto, branches))
}
