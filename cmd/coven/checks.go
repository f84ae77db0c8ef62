package main

import (
	"github.com/coven-run/coven/internal/config"
)

// checks are the configured checks, or those that coven finds; found says
// where it found them.
func (h *house) checks() (checks, found []string) {
	if h.config.Checks != nil {
		return h.config.Checks, nil
	}
	return config.DetectChecks(h.repo.Root)
}
