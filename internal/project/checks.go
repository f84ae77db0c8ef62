package project

import (
	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/config/check"
)

// Checks returns the configured checks, or those that coven detects. found names the files
// in which they were detected.
func (p *Project) Checks() (checks []check.Check, found []string) {
	if p.Config.Checks != nil {
		return p.Config.Checks, nil
	}
	commands, found := config.DetectChecks(p.Repo.Root)
	return check.Of(commands...), found
}
