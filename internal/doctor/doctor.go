// Package doctor checks everything that coven needs and the leftovers of crashes, and fixes problems that
// it can fix without losing anything.
package doctor

import (
	"context"
	"fmt"
	"slices"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/plugins/builtin"
	"github.com/coven-run/coven/plugins/builtin/acp"
)

// Checkup is one check of doctor.
type Checkup struct {
	Name, About string
	inside      bool // needs a repository
	look        func(*Examination, context.Context) []Finding
}

// Checkups returns all checkups in order. Worktrees come after claims: the claim on a worktree is released
// before the worktree is removed.
func Checkups() []Checkup {
	all := []Checkup{
		{"git", "git 2.38 or newer is installed", false, (*Examination).git},
		{acp.Name, "if used: the agent of the Agent Client Protocol is configured and installed", false, (*Examination).agent},
	}
	for _, c := range builtin.AgentCLIs() {
		all = append(all, Checkup{c.Program, "if used: the agent CLI is installed, and no older than the version coven is tested with", false, func(v *Examination, ctx context.Context) []Finding { return v.agentCLI(ctx, c) }})
	}
	return append(all, []Checkup{
		{"login", "the agent CLI has a credential (it is not tried)", false, (*Examination).login},
		{"processes", "how an agent's child processes are contained", false, (*Examination).processes},
		{"sandbox", "what programs of a task can change and read", false, (*Examination).sandbox},
		{"repository", "it exists, has a branch to land on, and has no stale git locks", false, (*Examination).repository},
		{"identity", "git knows your name, in which changes land", true, (*Examination).identity},
		{"config", "settings are valid, and which files they come from", true, (*Examination).config},
		{"workflows", "grimoires, prompts, agents, skills and MCP servers can be used", true, (*Examination).workflows},
		{"plugins", "each is built in, yours, or trusted", true, (*Examination).plugins},
		{"tracker", "tasks can be read, and from where", true, (*Examination).tracker},
		{"workers", "if used: the server answers, and machines serve the repository", true, (*Examination).workers},
		{"checks", "something is tested before a change lands", true, (*Examination).checks},
		{"disk", "there is room for worktrees and records", true, (*Examination).disk},
		{"sessions", "all can be read and none was interrupted", true, (*Examination).sessions},
		{"privacy", "only you can read records, and git ignores them", true, (*Examination).privacy},
		{"refs", "the objects that coven's refs name exist, and how large they are", true, (*Examination).refs},
		{"claims", "no task is claimed by a session that is over or gone", true, (*Examination).claims},
		{"worktrees", "no worktree, branch or record of a task that is over is left", true, (*Examination).worktrees},
		{"leftovers", "no files of a killed coven are left", true, (*Examination).leftovers},
	}...)
}

// The states of a finding.
const (
	StateOK   = "ok"
	StateWarn = "warn"
	StateFail = "fail"
)

// Finding is a result of a checkup.
type Finding struct {
	Name  string `json:"name"`  // of the checkup
	State string `json:"state"` // ok, warn or fail
	Text  string `json:"text"`
	Fixed string `json:"fixed,omitempty"` // result of --fix
	Next  string `json:"next,omitempty"`  // the one command that helps

	fix func(context.Context) (string, error) // nil if a person must fix it
}

func ok(format string, args ...any) []Finding {
	return []Finding{{State: StateOK, Text: fmt.Sprintf(format, args...)}}
}

func fail(next, format string, args ...any) []Finding {
	return []Finding{{State: StateFail, Text: fmt.Sprintf(format, args...), Next: next}}
}

func warn(next, format string, args ...any) []Finding {
	return []Finding{{State: StateWarn, Text: fmt.Sprintf(format, args...), Next: next}}
}

// Run runs all checkups. If fix is set, it fixes problems.
func (v *Examination) Run(ctx context.Context, fix bool) ([]Finding, error) {
	defer v.close()
	all := []Finding{}
	for _, c := range Checkups() {
		if c.inside && v.project == nil {
			continue
		}
		found := v.checked(ctx, c, fix)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		for i := range found {
			found[i].Name = c.Name
		}
		all = append(all, found...)
	}
	return all, nil
}

// checked runs one checkup. After a fix it runs the checkup again, because a fix may reveal
// more. A failed fix is not tried again.
func (v *Examination) checked(ctx context.Context, c Checkup, fix bool) []Finding {
	var fixed []Finding
	tried := map[string]Finding{} // results, by the text of the problem
	for {
		found, again := c.look(v, ctx), false
		for i, f := range found {
			result, known := tried[f.Text]
			if known && result.Fixed == "" {
				found[i] = result
			}
			if !fix || f.fix == nil || known {
				continue
			}
			done := v.parking()
			found[i] = f.fixNow(ctx)
			tried[f.Text] = found[i]
			if found[i].Fixed != "" {
				fixed, again = append(fixed, found[i]), true
			}
			done()
		}
		if again && ctx.Err() == nil {
			v.forget()
			continue
		}
		if len(fixed) > 0 { // do not report that the rest is fine
			found = slices.DeleteFunc(found, func(f Finding) bool { return f.State == StateOK })
		}
		return append(fixed, found...)
	}
}

// fixNow applies the fix, or adds the reason that it failed.
func (f Finding) fixNow(ctx context.Context) Finding {
	fixed, err := f.fix(ctx)
	if err != nil {
		f.State, f.Text, f.Next = StateFail, f.Text+": "+err.Error(), exit.Next(err)
		return f
	}
	f.State, f.Fixed, f.Next = StateOK, fixed, ""
	return f
}
