package launch

import (
	"slices"
	"strings"
	"testing"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/control/agents"
	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/tool"
)

var lint = map[string]grimoires.CommandTool{"lint": {Source: ".coven/tools/lint.yaml", Description: "Lints.", Category: "code", Parameters: `{"type":"object"}`, Argv: []string{"lint"}}}

// The gate knows each tool of coven, and asks for the permission that its description names. Lists of
// definitions can name it.
func TestDescribed(t *testing.T) {
	all, err := Described(nil, lint)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 18 {
		t.Errorf("there are %d tools", len(all))
	}
	for _, one := range all {
		kind, known := tool.KindOf(one.Name)
		if one.Source != tool.Builtin {
			if known || one.Permission != permission.BashExecute {
				t.Errorf("%s needs %s", one.Name, one.Permission)
			}
			continue
		}
		if !known || one.Permission != kind.Permission {
			t.Errorf("%s needs %q, and the gate asks for %q", one.Name, one.Permission, kind.Permission)
		}
		for _, name := range []string{one.Name, one.ID} {
			if ids, unknown := tool.IDs([]string{name}); len(unknown) > 0 || len(ids) > 0 && ids[0] != one.ID {
				t.Errorf("the name %s means %v", name, ids)
			}
		}
	}
}

// T-09: which tools an agent has.
func TestHas(t *testing.T) {
	all, err := Described(nil, lint)
	if err != nil {
		t.Fatal(err)
	}
	const everybodys = " spawn_agent request_approval read_note list_notes semantic_search"
	allow := func(names ...permission.Name) (rules []permission.Rule) {
		for _, name := range names {
			rules = append(rules, permission.Rule{Permission: name, Pattern: permission.Everything, Action: permission.Allow})
		}
		return rules
	}
	for _, c := range []struct {
		tools string
		rules []permission.Rule
		user  []permission.Rule
		want  string
	}{
		{"", nil, nil, "read write edit ls glob grep bash todo subtask" + everybodys},
		{"read grep", nil, nil, "read grep" + everybodys},
		{"fs_* search_*", allow(permission.FileRead), nil, "read ls glob grep" + everybodys},
		{"*", nil, nil, "read write edit ls glob grep bash todo subtask" + everybodys},
		{"", allow(permission.NetFetch), nil, "read ls glob grep fetch todo subtask" + everybodys},
		{"fetch bash", allow(permission.FileRead), nil, "read" + everybodys},
		{"LINT", allow(permission.BashExecute), nil, "read" + everybodys + " lint"},
		{"lint", allow(permission.FileRead), nil, "read" + everybodys},
		{"l*", allow(permission.BashExecute), nil, "read ls" + everybodys},
		{"lint bash", allow(permission.BashExecute), []permission.Rule{{Permission: permission.BashExecute, Pattern: "*", Action: permission.Deny}}, "read" + everybodys},
	} {
		own := grimoires.AgentDefinition{Tools: strings.Fields(c.tools), Permissions: c.rules}
		policy := permission.OfPrimary("/w", "a", c.rules, nil, c.user)
		var names []string
		for _, one := range slices.DeleteFunc(slices.Clone(all), func(one tool.Tool) bool { return !agents.Has(own, policy, one) }) {
			names = append(names, one.Name)
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%q with %v: %s, want %s", c.tools, c.rules, got, c.want)
		}
	}
}
