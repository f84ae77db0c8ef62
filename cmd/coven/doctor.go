package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/coven-run/coven/internal/exit"
)

// checkup is one thing that doctor examines.
type checkup struct {
	name, about string
	inside      bool // needs a repository
	look        func(*visit, context.Context) []finding
}

// checkups are what doctor examines, in order. What clears worktrees comes after
// what gives back the claims on them.
func checkups() []checkup {
	all := []checkup{{"git", "git is there, 2.38 or newer", false, (*visit).git}}
	for _, c := range agentCLIs() {
		all = append(all, checkup{c.program, "the agent CLI is there, and not older than the one coven is tested with", false, func(v *visit, ctx context.Context) []finding { return v.agentCLI(ctx, c) }})
	}
	return append(all, []checkup{
		{"login", "the agent CLI has a credential; it is not tried out", false, (*visit).login},
		{"processes", "how the children of an agent are held together", false, (*visit).processes},
		{"sandbox", "what fences an agent's shell commands", false, (*visit).sandbox},
		{"repository", "there is one, with a branch to land on and no lock of a git that died", false, (*visit).repository},
		{"config", "the settings can be read, and from which files", true, (*visit).config},
		{"plugins", "each may run: it is built in, yours, or trusted", true, (*visit).plugins},
		{"tracker", "the tasks can be read, and from where", true, (*visit).tracker},
		{"checks", "something is tested before a change lands", true, (*visit).checks},
		{"disk", "there is room for worktrees and journals", true, (*visit).disk},
		{"sessions", "all can be read, and none was cut off", true, (*visit).sessions},
		{"privacy", "records are for your eyes only, and git leaves them out", true, (*visit).privacy},
		{"claims", "no task is claimed by a session that is over or gone", true, (*visit).claims},
		{"worktrees", "no worktree, branch or record is left of a task that is over", true, (*visit).worktrees},
		{"leftovers", "no files of a coven that was killed", true, (*visit).leftovers},
		{"refs", "how many refs coven keeps, and what they cost", true, (*visit).refs},
	}...)
}

// The states of a finding.
const (
	stateOK   = "ok"
	stateWarn = "warn"
	stateFail = "fail"
)

// finding is what one look found.
type finding struct {
	Name  string `json:"name"`  // of the checkup
	State string `json:"state"` // ok, warn or fail
	Text  string `json:"text"`
	Fixed string `json:"fixed,omitempty"` // what --fix did about it
	Next  string `json:"next,omitempty"`  // the one command that helps

	mend func(context.Context) (string, error) // nil: not for a program to do
}

func good(format string, args ...any) []finding {
	return []finding{{State: stateOK, Text: fmt.Sprintf(format, args...)}}
}

func bad(next, format string, args ...any) []finding {
	return []finding{{State: stateFail, Text: fmt.Sprintf(format, args...), Next: next}}
}

func odd(next, format string, args ...any) []finding {
	return []finding{{State: stateWarn, Text: fmt.Sprintf(format, args...), Next: next}}
}

// examine goes through all checkups, and mends what it may.
func (v *visit) examine(ctx context.Context, fix bool) ([]finding, error) {
	defer v.leave()
	all := []finding{}
	for _, c := range checkups() {
		if c.inside && v.house == nil {
			continue
		}
		found := v.checked(ctx, c, fix)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		for i := range found {
			found[i].Name = c.name
		}
		all = append(all, found...)
	}
	return all, nil
}

// checked makes one checkup. When something was mended it looks again: what was
// cleared away may have hidden more.
func (v *visit) checked(ctx context.Context, c checkup, fix bool) []finding {
	var mended []finding
	tried := map[string]bool{}
	for {
		found, again := c.look(v, ctx), false
		for i, f := range found {
			if !fix || f.mend == nil || tried[f.Text] {
				continue
			}
			tried[f.Text] = true
			done := v.parking()
			if found[i] = f.mendNow(ctx); found[i].Fixed != "" {
				mended, again = append(mended, found[i]), true
			}
			done()
		}
		if again && ctx.Err() == nil {
			v.forget()
			continue
		}
		if len(mended) > 0 { // then nobody needs to hear that the rest is fine
			found = slices.DeleteFunc(found, func(f finding) bool { return f.State == stateOK })
		}
		return append(mended, found...)
	}
}

// mendNow mends what was found, or says why it cannot.
func (f finding) mendNow(ctx context.Context) finding {
	fixed, err := f.mend(ctx)
	if err != nil {
		f.State, f.Text, f.Next = stateFail, f.Text+": "+err.Error(), exit.Next(err)
		return f
	}
	f.State, f.Fixed, f.Next = stateOK, fixed, ""
	return f
}
