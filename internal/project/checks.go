package project

import (
	"github.com/coven-run/coven/internal/config"
)

// Checks are the configured checks, or those that coven finds; found says
// where it found them.
func (p *Project) Checks() (checks, found []string) {
	if p.Config.Checks != nil {
		return p.Config.Checks, nil
	}
	return config.DetectChecks(p.Repo.Root)
}
