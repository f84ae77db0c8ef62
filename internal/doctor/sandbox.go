package doctor

import (
	"context"
	"strings"

	"github.com/coven-run/coven/internal/sandbox"
)

// sandbox reports the level of the sandbox and its gaps.
func (v *Examination) sandbox(context.Context) []Finding {
	launcher, failed := v.launcher()
	if failed != nil {
		return failed
	}
	o := sandbox.Options{Getenv: v.env.Getenv, Enforcement: launcher.Enforcement, Private: launcher.PrivateNetwork}
	if v.project != nil {
		o.Settings = v.project.Config.Sandbox
	}
	s := sandbox.New(o)
	if err := s.CheckNetwork(); err != nil {
		return fail("coven help sandbox", "%v", err)
	}
	gaps := strings.Join(s.Gaps(), "; ")
	switch s.Level() {
	case sandbox.Full:
		return ok("full: tasks can change only their own worktrees; open: %s", gaps)
	case sandbox.Partial:
		return warn("coven help sandbox", "partial: %s", gaps)
	}
	return warn("coven help sandbox", "none: %s", gaps)
}
