package project

import (
	"github.com/coven-run/coven/internal/config/check"
	"github.com/coven-run/coven/internal/config/detect"
)

// Checks returns the configured checks, or those that coven detects. found names the files
// in which they were detected.
func (p *Project) Checks() (checks []check.Check, found []string) {
	if p.Config.Checks != nil {
		return p.Config.Checks, nil
	}
	commands, found := detect.Checks(p.Repo.Root)
	return check.Of(commands...), found
}

// MissingProgram returns the first check whose program is not installed, and this program, or "" if there is none.
func (p *Project) MissingProgram() (program, command string) {
	checks, _ := p.Checks()
	return detect.Missing(check.Commands(checks))
}
