package control

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/worktree/files"
)

// TargetBranch returns the branch that tasks land on: onto, or the current branch if onto is empty.
func TargetBranch(ctx context.Context, p *project.Project, onto string) (string, error) {
	target, err := p.Repo.Target(ctx, onto)
	return target.Branch, unknownBranch(ctx, p, onto, err)
}

// Brief starts to scan the checkout for uncommitted files, which takes a while in a large one. briefing
// waits for the scan, and returns the lines to show before agents start. onto says where changes land.
func (c *Controller) Brief(ctx context.Context, onto string) (briefing func() ([]string, error)) {
	type look struct {
		uncommitted []string
		err         error
	}
	looked := make(chan look, 1)
	go func() {
		uncommitted, err := files.Uncommitted(ctx, c.Project.Repo)
		looked <- look{uncommitted, err}
	}()
	return func() ([]string, error) {
		seen := <-looked
		if seen.err != nil {
			return nil, seen.err
		}
		return c.briefing(seen.uncommitted, onto), nil
	}
}

func (c *Controller) briefing(uncommitted []string, onto string) []string {
	lines := []string{c.Runtime.consent.Line(), c.Runtime.Warning}
	uncommitted = slices.DeleteFunc(uncommitted, func(name string) bool {
		return slices.Contains(c.Project.Config.Worktree.Link, strings.TrimSuffix(name, "/")) // agents see it
	})
	if len(uncommitted) > 0 {
		lines = append(lines, "agents do not see your uncommitted files: "+firstNames(uncommitted))
	}
	checks, found := c.Project.Checks()
	switch {
	case len(checks) == 0:
		lines = append(lines, "warning: no checks found: changes land untested (set checks in .coven/config.yaml)")
	case len(found) > 0:
		lines = append(lines, "checks found: "+strings.Join(found, ", "))
	}
	lines = append(lines, c.Project.ChecksWarning(), "landing on "+onto)
	return slices.DeleteFunc(lines, func(line string) bool { return line == "" })
}

// firstNames lists the first few names and counts the others.
func firstNames(names []string) string {
	const few = 5
	if len(names) <= few {
		return strings.Join(names, " ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], " "), len(names)-few)
}
