package grimoires

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// original 3a: grimoires and spells as in the original's documentation are read without changes, and their
// spells render.
func TestOriginalStyle(t *testing.T) {
	root := filepath.Join("testdata", "original")
	l := NewLibrary(root, "")
	found, err := os.ReadDir(filepath.Join(root, ".coven", "grimoires"))
	if err != nil || len(found) < 6 {
		t.Fatalf("%d grimoires, %v", len(found), err)
	}
	for _, e := range found {
		name := strings.TrimSuffix(e.Name(), filepath.Ext(e.Name()))
		g, err := l.Load(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if _, err := l.Freeze(g, nil); err != nil || !strings.HasPrefix(g.Source, ".coven/grimoires/") {
			t.Errorf("%s of %s: %v", name, g.Source, err)
		}
	}
	all, err := l.Validate()
	if err != nil {
		t.Fatal(err)
	}
	spells := 0
	for _, c := range all {
		if len(c.Problems) > 0 {
			t.Errorf("%s: %v", c.File, c.Problems)
		}
		if strings.HasPrefix(c.File, ".coven/spells/") && c.Kind == "prompt" {
			spells++
		}
	}
	if spells != 9 {
		t.Errorf("%d spells were looked at", spells)
	}
}

func TestOriginalSpellsRender(t *testing.T) {
	l := NewLibrary(filepath.Join("testdata", "original"), "")
	g, err := l.Load("fix-and-check")
	if err != nil {
		t.Fatal(err)
	}
	p, err := l.Freeze(g, nil)
	if err != nil {
		t.Fatal(err)
	}
	task := TaskData(Task{ID: "b-1", Title: "A {{.title}}", Description: "Do it", Type: "bug", Priority: 1, Labels: []string{"ui"}})
	got, err := p.RenderPrompt("change-code", map[string]any{"task": task, "bead": task})
	want := `# A {{.title}}

Task b-1, priority P1, bug.

## WHAT IS WANTED

Do it


## Rules of this house

- Keep to the task "b-1".
- Change no tests.
- Labels: [ui]

`
	if err != nil || got != want {
		t.Errorf("got %s, %v", got, err)
	}
}

// Errors explain features of the original that coven does not support, and their replacements.
func TestOriginalExplained(t *testing.T) {
	for text, want := range map[string]string{
		"- {name: m, type: merge, commit_message: x}":                                                           `3:26: unknown key "commit_message" (write message: TEXT)`,
		"- {name: m, type: merge, auto_rebase: true}":                                                           `3:26: unknown key "auto_rebase" (write strategy: rebase; `,
		"- {name: m, type: merge, pre_merge: [make]}":                                                           `3:26: unknown key "pre_merge" (write checks: [COMMAND, ...]; `,
		"- {name: m, type: merge, require_reviews: true}":                                                       `3:26: unknown key "require_reviews" (did you mean "require_review"?)`,
		"- {name: l, type: loop, steps: [{name: m, type: merge}]}":                                              `3:49: a merge step cannot be inside a loop (put it after the loop)`,
		"- {name: s, type: script, command: \"git commit -m '{{.bead.title}}'\"}":                               `a value inside quotes could break out of them (remove the quotes: coven quotes values itself)`,
		"- {name: s, type: script, command: ls, when: 'yes'}":                                                   `3:46: when must evaluate to true or false, not "yes" (write "{{...}}")`,
		"- {name: s, type: script, command: ls, output: n}\n- {name: t, type: merge, when: '{{.s.exit_code}}'}": `4:35: when must evaluate to true or false, and .s.exit_code is a number`,
		"- {name: s, type: script, command: 'docker ps --format {{.Names}}'}":                                   `3:58: there is no "Names" (for {{.Names}} itself write {{"{{.Names}}"}})`,
		"- {name: l, type: loop, max_iterations: 0, steps: [{name: s, type: script, command: ls}]}":             `3:41: max_iterations must be 1 to 100`,
	} {
		_, err := Parse("f.yaml", []byte("name: g\nsteps:\n"+text+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n got %v\nwant %s", text, err, want)
		}
	}
	l := NewLibrary("", "")
	for name, want := range map[string]string{
		"implement-bead": `coven calls it "implement"`, "spec-to-beads": `coven calls it "spec-to-tasks"`,
	} {
		if _, err := l.Load(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
