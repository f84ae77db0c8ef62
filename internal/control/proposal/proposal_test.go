package proposal

import (
	"maps"
	"strings"
	"testing"
)

// Invalid proposed tasks are refused with a reason.
func TestReadProposals(t *testing.T) {
	for name, test := range map[string]struct {
		second map[string]any // in addition to its title, Two
		want   string
	}{
		"all that a task may have":       {map[string]any{"priority": 0, "type": "bug", "labels": []string{"io", "gri:moire", "Über"}, "after": []int{1}}, ""},
		"a label of coven":               {map[string]any{"labels": []string{"io", "grimoire:none"}}, `task 2 of outputs.tasks, "Two": label "grimoire:none": only people may set labels that begin with grimoire: or from:`},
		"a label of another import":      {map[string]any{"labels": []string{"from:other"}}, `"Two": label "from:other": only people may set labels that begin`},
		"a label of coven, in capitals":  {map[string]any{"labels": []string{"Grimoire:none"}}, `label "Grimoire:none": only people may set labels that begin`},
		"a label of coven after a space": {map[string]any{"labels": []string{" grimoire:none"}}, `label " grimoire:none" is empty, or has`},
		"a label of coven in a list":     {map[string]any{"labels": []string{"a,grimoire:none"}}, `label "a,grimoire:none" is empty, or has control characters, a comma`},
		"a label with an escape":         {map[string]any{"labels": []string{"a\x1b[31m"}}, `label "a\x1b[31m" is empty, or has control characters`},
		"an empty label":                 {map[string]any{"labels": []string{""}}, `label "" is empty`},
		"a title with an escape":         {map[string]any{"title": "Two\x1b[31m"}, `task 2 of outputs.tasks, "Two\x1b[31m": the title has control characters`},
		"a title of two lines":           {map[string]any{"title": "Two\nlabel: x"}, `task 2 of outputs.tasks, "Two\nlabel: x": the title has control characters`},
		"a title that turns round":       {map[string]any{"title": "Two \u202e"}, `"Two \u202e": the title has control characters`},
		"a title with spaces around":     {map[string]any{"title": " Two\n"}, ""},
		"the same title":                 {map[string]any{"title": "One", "after": []int{1}}, `task 2 of outputs.tasks, "One": task 1 has the same title`},
		"the same title but for space":   {map[string]any{"title": "One "}, `task 2 of outputs.tasks, "One": task 1 has the same title`},
		"an unknown type":                {map[string]any{"type": "gate"}, `"Two": type "gate" is not one of task, bug, feature, chore, epic`},
		"a type with a bell":             {map[string]any{"type": "task\x07"}, `type "task\a" is not one of task`},
	} {
		second := map[string]any{"title": "Two"}
		maps.Copy(second, test.second)
		all, err := readProposals([]any{map[string]any{"title": "One"}, second})
		if test.want == "" {
			if err != nil || len(all) != 2 || all[1].Title != "Two" {
				t.Errorf("%s: %+v, %v", name, all, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReadProposalsMany(t *testing.T) {
	var list []any
	for i := range maxProposed + 1 {
		if _, err := readProposals(append(list, map[string]any{"title": strings.Repeat("x", i+1)})); (err != nil) != (i == maxProposed) {
			t.Fatalf("%d tasks: %v", i+1, err)
		}
		list = append(list, map[string]any{"title": strings.Repeat("x", i+1)})
	}
	if _, err := readProposals(list); err == nil || err.Error() != "the agent's outputs.tasks has 101 tasks, at most 100 are allowed: tell the agent to propose fewer" {
		t.Error(err)
	}
}
