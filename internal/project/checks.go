package project

import (
	"github.com/coven-run/coven/internal/config"
)

// Checks returns the configured checks, or else those that coven detects, with the files
// in which it found them.
func (p *Project) Checks() (checks, found []string) {
	if p.Config.Checks != nil {
		return p.Config.Checks, nil
	}
	return config.DetectChecks(p.Repo.Root)
}
