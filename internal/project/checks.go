package project

import (
	"github.com/coven-run/coven/internal/config"
)

// Checks are the configured checks, or those that coven finds; found says
// where it found them.
func (h *Project) Checks() (checks, found []string) {
	if h.Config.Checks != nil {
		return h.Config.Checks, nil
	}
	return config.DetectChecks(h.Repo.Root)
}
