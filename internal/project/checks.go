package project

import (
	"fmt"

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

// ChecksWarning returns a warning about a check whose program is not installed, or "".
func (p *Project) ChecksWarning() string {
	program, command := p.MissingProgram()
	if program == "" {
		return ""
	}
	return fmt.Sprintf("warning: %s is not installed: %s cannot run (coven doctor)", program, command)
}
