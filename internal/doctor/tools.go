package doctor

import (
	"context"
	"strings"

	"github.com/coven-run/coven/internal/doctor/programversion"
	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/worktree"
)

// oldestGit is the oldest git that coven works with.
const oldestGit = "2.38.0" // git merge-tree --write-tree

func (v *Examination) git(ctx context.Context) []Finding {
	const next = "apt-get install git"
	said, err := programversion.Of(ctx, "git")
	if err != nil {
		return fail(next, "%v", err)
	}
	switch older, known := programversion.OlderThan(said, oldestGit); {
	case !known:
		return warn("git --version", "it does not print its version: %s", said)
	case older:
		return fail(next, "%s is too old: coven needs 2.38 or newer", said)
	}
	if dropped := worktree.DroppedVariables(v.env.Environ()); len(dropped) > 0 {
		return warn("env -u "+strings.Join(dropped, " -u ")+" coven doctor", "%s; coven ignores %s: it uses the repository of the current directory", said, strings.Join(dropped, ", "))
	}
	return ok("%s", said)
}

// launcher returns a launcher of children, or the finding that there is none.
func (v *Examination) launcher() (*process.Launcher, []Finding) {
	self, err := v.env.Self()
	if err != nil {
		return nil, fail("coven version", "find coven's own executable: %v", err)
	}
	launcher, err := process.NewLauncher(self, "exec")
	if err != nil {
		return nil, fail("env -u "+process.ContainmentEnv+" coven doctor", "%v", err)
	}
	return launcher, nil
}

func (v *Examination) processes(context.Context) []Finding {
	launcher, failed := v.launcher()
	if failed != nil {
		return failed
	}
	held := launcher.Containment()
	name := containmentName(held)
	if why := launcher.Refused(); why != nil {
		return warn("", "children are contained by a %s, from which a program can escape: PID namespaces are not available (%v)", name, why)
	}
	if held == process.ProcessGroup {
		return warn("", "children are contained by a %s, from which a program can escape", name)
	}
	return ok("children are contained by a %s", name)
}

// containmentName returns the name of a containment as used in the guides.
func containmentName(c process.Containment) string {
	if c == process.PIDNamespace {
		return "PID namespace"
	}
	return c.String()
}
