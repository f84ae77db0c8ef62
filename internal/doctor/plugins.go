package doctor

import (
	"context"
	"strings"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/pluginregistry"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/text/oneline"
)

// plugins checks whether each plugin may run.
func (v *Examination) plugins(context.Context) []Finding {
	r, err := v.project.Registry()
	if err != nil {
		return fail(exit.Next(err), "%v", err)
	}
	all, err := r.List()
	if err != nil {
		return fail(exit.Next(err), "%v", err)
	}
	var asked, wrong []string
	count := 0
	for _, p := range all {
		switch {
		case p.State == pluginregistry.Untrusted, p.State == pluginregistry.Changed:
			asked = append(asked, p.ID()+" ("+string(p.State)+")")
		case project.CannotRun(p):
			wrong = append(wrong, p.ID()+" ("+string(p.State)+")")
		case p.Runs():
			count++
		}
	}
	switch {
	case len(wrong) > 0:
		return fail("coven plugins verify", "may not run: %s", strings.Join(append(wrong, asked...), ", "))
	case len(asked) > 0:
		return warn("coven trust", "do not run until you trust them: %s", strings.Join(asked, ", "))
	}
	return ok("%s, all can run", oneline.Count(count, "plugin"))
}
