package grimoires

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

const someRules = `
default: fallback
rules:
  - {name: urgent, grimoire: hotfix, priority: [P0, 1]}
  - {name: frontend, grimoire: ui, any_tags: ["area/ui/**", web], not_tags: ["wip*"]}
  - {name: both, grimoire: careful, all_tags: [db, "risk-*"]}
  - {name: bugs, grimoire: fix, type: [Bug, regression], priority_range: {max: 3}}
  - {name: late, grimoire: slow, priority_range: {min: P4}}
  - {name: words, grimoire: docs, body_contains: ["README", "spell ing"], type: [task]}
`

// known creates a library with grimoires of these names.
func known(t *testing.T, all map[string]string, names ...string) (*Library, string) {
	t.Helper()
	if all == nil {
		all = map[string]string{}
	}
	for _, name := range names {
		all["repo/.coven/grimoires/"+name+".yaml"] = named(name)
	}
	return files(t, all)
}

var ruled = []string{"fallback", "hotfix", "ui", "careful", "fix", "slow", "docs"}

func TestMatchers(t *testing.T) {
	l, _ := known(t, map[string]string{"repo/.coven/grimoire-matchers.yaml": someRules}, ruled...)
	m, err := l.Matchers()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		task Task
		want string
	}{
		{Task{Priority: 0}, "hotfix"},
		{Task{Priority: 1, Labels: []string{"web"}}, "hotfix"},
		{Task{Priority: 2, Labels: []string{"x", "web"}}, "ui"},
		{Task{Priority: 2, Labels: []string{"area/ui/a/b"}}, "ui"},
		{Task{Priority: 2, Labels: []string{"area/ui"}}, "ui"},
		{Task{Priority: 2, Labels: []string{"area/ux"}}, "fallback"},
		{Task{Priority: 2, Labels: []string{"web", "wip-1"}}, "fallback"},
		{Task{Priority: 2, Labels: []string{"web", "wip/1"}}, "ui"},
		{Task{Priority: 2, Labels: []string{"db"}}, "fallback"},
		{Task{Priority: 2, Labels: []string{"risk-low", "db"}}, "careful"},
		{Task{Priority: 3, Type: "bug"}, "fix"},
		{Task{Priority: 2, Type: "BUG"}, "fix"},
		{Task{Priority: 4, Type: "bug"}, "slow"},
		{Task{Priority: 9}, "slow"},
		{Task{Priority: 2, Type: "task", Title: "Correct the readme"}, "docs"},
		{Task{Priority: 2, Type: "task", Description: "a SPELL ING error"}, "docs"},
		{Task{Priority: 2, Type: "feature", Title: "README"}, "fallback"},
		{Task{Priority: 2, Type: "task", Title: "spell", Description: "ing"}, "fallback"},
	} {
		got, ok := m.Choose(c.task)
		if !ok || got.Grimoire != c.want {
			t.Errorf("%+v: got %+v, want %s", c.task, got, c.want)
		}
	}
	for name, task := range map[string]Task{
		`the rule "urgent" of .coven/grimoire-matchers.yaml`: {}, "the default of .coven/grimoire-matchers.yaml": {Priority: 2},
	} {
		if got, _ := m.Choose(task); got.Why != name {
			t.Errorf("got %q, want %q", got.Why, name)
		}
	}
}

// The rules of the project take precedence over those of the user, and defaults come last.
func TestMatchersOfUser(t *testing.T) {
	l, dir := known(t, map[string]string{
		"repo/.coven/grimoire-matchers.yaml": "default: ui\nrules: [{name: a, grimoire: fix, type: [bug]}]\n",
		"user/grimoire-matchers.yaml":        "default: docs\nrules: [{name: a, grimoire: slow, type: [bug]}, {name: b, grimoire: careful, type: [chore]}]\n",
	}, ruled...)
	m, err := l.Matchers()
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]string{"bug": "fix", "chore": "careful", "task": "ui"} {
		if got, ok := m.Choose(Task{Type: kind}); !ok || got.Grimoire != want {
			t.Errorf("%s: %+v", kind, got)
		}
	}
	if got, _ := m.Choose(Task{Type: "chore"}); got.Why != fmt.Sprintf("the rule %q of %s", "b", filepath.Join(dir, "user/grimoire-matchers.yaml")) {
		t.Errorf("why: %s", got.Why)
	}
	none, _ := known(t, nil)
	m, err = none.Matchers()
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := m.Choose(Task{}); ok {
		t.Errorf("nothing chose %+v", got)
	}
}

func TestMatchersErrors(t *testing.T) {
	for text, want := range map[string]string{
		"default: xyzzy": `1:10: unknown grimoire "xyzzy" (known: careful, docs, fallback, fix, hotfix, implement, none, prepare-pr, review-only, slow, spec-to-tasks, ui)`,
		"rules: [{name: a, grimoire: fxi, type: [bug]}]": `1:29: unknown grimoire "fxi" (did you mean "fix"?)`,
		"rule: []": `1:1: unknown key "rule" (did you mean "rules"?)`,
		"rules: [{name: a, grimoire: fix, type: [x], any_tag: [x]}]":                                            `1:45: unknown key "any_tag" (did you mean "any_tags"?)`,
		"rules: [{grimoire: fix, type: [bug]}]":                                                                 `1:9: a rule has no name (coven names the rule when it explains the choice of a grimoire)`,
		"rules: [{name: a, type: [bug]}]":                                                                       `1:9: a rule has no grimoire`,
		"rules: [{name: a, grimoire: fix}]":                                                                     `1:9: a rule has no condition (write default: NAME for all other tasks)`,
		"rules: [{name: a, grimoire: fix, type: bug}]":                                                          `1:40: this must be a list, not "bug"`,
		"rules: [{name: a, grimoire: fix, type: []}]":                                                           `1:40: the list is empty (remove it: no task can match)`,
		"rules: [{name: a, grimoire: fix, any_tags: ['[a']}]":                                                   `1:45: "[a" is not a pattern`,
		"rules: [{name: a, grimoire: fix, body_contains: ['']}]":                                                `1:50: the text is empty`,
		"rules: [{name: a, grimoire: fix, priority: [P5]}]":                                                     `1:45: "P5" is not a priority (0 to 4, 0 is the most urgent; or P0 to P4)`,
		"rules: [{name: a, grimoire: fix, priority: [high]}]":                                                   `1:45: "high" is not a priority`,
		"rules: [{name: a, grimoire: fix, priority: 1}]":                                                        `1:44: this must be a list, not "1"`,
		"rules: [{name: a, grimoire: fix, priority_range: {min: 3, max: P1}}]":                                  `1:50: min is greater than max`,
		"rules: [{name: a, grimoire: fix, priority_range: {mn: 3}}]":                                            `1:51: unknown key "mn" (did you mean "min"?)`,
		"rules: [{name: a, grimoire: fix, type: [bug]}, {name: a, grimoire: ui, type: [x]}]":                    `1:55: duplicate rule name "a"`,
		"rules:\n  - {name: a, grimoire: fix, type: [bug]}\n  - {name: b, grimoire: xyzzy, type: [x], nope: y}": "3:25: unknown grimoire \"xyzzy\" (known: careful, docs, fallback, fix, hotfix, implement, none, prepare-pr, review-only, slow, spec-to-tasks, ui)\n.coven/grimoire-matchers.yaml:3:43: unknown key \"nope\"",
		"\t": `1:1: this is not YAML`,
	} {
		l, _ := known(t, map[string]string{"repo/.coven/grimoire-matchers.yaml": text}, ruled...)
		_, err := l.Matchers()
		if err == nil || !strings.HasPrefix(err.Error(), ".coven/grimoire-matchers.yaml:"+want) || !IsInvalid(err) {
			t.Errorf("%s\n got %v\nwant %s", text, err, want)
		}
	}
	l, _ := known(t, map[string]string{"repo/.coven/grimoire-matchers.yml": "default: fix"}, "fix")
	if _, err := l.Matchers(); err == nil || !strings.Contains(err.Error(), "rename it to grimoire-matchers.yaml") {
		t.Errorf("yml: %v", err)
	}
}
