package agents

import (
	"testing"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/permission"
)

// Agents with fewer permissions than the default, in any spelling, need a gate.
func TestConfined(t *testing.T) {
	t.Parallel()
	rules := func(action permission.Action, pattern string, names ...permission.Name) (all []permission.Rule) {
		for _, name := range names {
			all = append(all, permission.Rule{Permission: name, Pattern: pattern, Action: action})
		}
		return all
	}
	three := []permission.Name{permission.FileRead, permission.FileWrite, permission.BashExecute}
	everything := rules(permission.Allow, "/**", three...)
	for name, test := range map[string]struct {
		own, user []permission.Rule
		asks      []permission.Name
		want      bool
	}{
		"no rules":                {},
		"everything":              {own: everything},
		"everything as **":        {own: rules(permission.Allow, "**", three...)},
		"everything as *":         {own: rules(permission.Allow, "*", three...)},
		"everything as nothing":   {own: rules(permission.Allow, "", three...)},
		"all user rules allow":    {own: everything, user: rules(permission.Allow, "**", permission.NetFetch)},
		"two of three":            {own: rules(permission.Allow, "/**", three[:2]...), want: true},
		"some files":              {own: rules(permission.Allow, "/src/**", three...), want: true},
		"asks":                    {own: everything, asks: three[2:], want: true},
		"a rule of the user":      {user: rules(permission.Deny, "rm *", permission.BashExecute), want: true},
		"a rule that asks":        {own: append(everything, rules(permission.Ask, "**", permission.FileWrite)...), want: true},
		"another permission":      {own: append(everything, rules(permission.Deny, "/**", permission.NetFetch)...), want: true},
		"one that is taken again": {own: append(rules(permission.Deny, "**", permission.FileWrite), everything...), want: true}, // more refusals than necessary do no harm
	} {
		plan := &grimoires.Plan{Rules: test.user, Agents: map[string]grimoires.AgentDefinition{"a": {Permissions: test.own, Asks: test.asks}}}
		if got := Confined(plan, "a"); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Only the gate keeps the agents of a tree from the tools of others.
func TestConfinedByTree(t *testing.T) {
	t.Parallel()
	plan := &grimoires.Plan{Tree: &grimoires.Tree{Root: "root", Branches: []grimoires.Branch{{Agent: "branch"}}}}
	for name, want := range map[string]bool{"root": true, "branch": true, "other": false} {
		if got := Confined(plan, name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
