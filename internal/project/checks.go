package project

import (
	"github.com/coven-run/coven/internal/config"
)

// Checks returns the configured checks, or those that coven detects. found names the files
// in which they were detected.
func (p *Project) Checks() (checks, found []string) {
	if p.Config.Checks != nil {
		return p.Config.Checks, nil
	}
	return config.DetectChecks(p.Repo.Root)
}
