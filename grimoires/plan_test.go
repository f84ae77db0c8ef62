package grimoires

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/coven-run/coven/internal/config/check"
	"github.com/coven-run/coven/internal/mcp/servers"
	"github.com/coven-run/coven/internal/permission"
)

// again encodes and decodes a plan and checks that nothing changes.
func again(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, p *Plan,
) {
	t.Helper()
	data, err := p.Marshal()
	if err != nil {
		t.Fatalf("%v", err)
	}
	got, err := ReadPlan(data)
	if err != nil {
		t.Fatalf("%v\nin\n%s", err, data)
	}
	if !reflect.DeepEqual(got, p) {
		t.Fatalf("got\n%#v %q %v\nwant\n%#v %q %v\nfrom\n%s", got.Task, got.Attempt, got.Checks, p.Task, p.Attempt, p.Checks, data)
	}
}

// samplePlan returns the plan of the built-in grimoire for a task.
func samplePlan(t *testing.T) *Plan {
	t.Helper()
	l := NewLibrary(t.TempDir(), "")
	g, err := l.Load("implement")
	if err != nil {
		t.Fatal(err)
	}
	p, err := l.Freeze(g, check.Of("go vet ./...", "go test ./..."))
	if err != nil {
		t.Fatal(err)
	}
	p.Model, p.Provider, p.Target = "sonnet", "claude", "refs/heads/main"
	p.Task = Task{ID: "c-1", Title: "Add: a flag", Description: "Two\nlines", Priority: 2, Labels: []string{"x"}}
	p.Attempt = "Status: blocked\n"
	rule := permission.Rule{Permission: permission.FileWrite, Pattern: "/src/**", Action: permission.Allow}
	p.Agents = map[string]AgentDefinition{
		DefaultAgent: {Source: "coven:build.md", Prompt: "You implement.\n", Permissions: []permission.Rule{rule}, Asks: []permission.Name{permission.NetFetch}},
		"helper":     {Source: "helper.md", Description: "Helps", Mode: "subagent", Model: "haiku", Provider: "claude", Timeout: time.Minute, Prompt: "You help.\n"},
	}
	if err := p.Grimoire.Strategies("squash", false); err != nil { // as package planning does
		t.Fatal(err)
	}
	p.Spawn = &SpawnRequest{Agent: "helper", Task: "Look", Permissions: &[]string{}, Model: "opus", TaskID: "look"}
	p.MCP = []servers.Server{{Name: "files", Line: "serve", Argv: []string{"--here"}, Env: map[string]string{"KEY": "${KEY}"}}, {Name: "web", URL: "https://mcp.example", Events: true, Headers: map[string]string{"A": "b"}}}
	p.Rules = []permission.Rule{{Permission: permission.BashExecute, Pattern: "git push *", Action: permission.Deny}}
	return p
}

func TestPlanGolden(t *testing.T) {
	p := samplePlan(t)
	again(t, p)
	for name := range p.Prompts {
		p.Prompts[name] = Prompt{Name: name, Source: BuiltIn, Text: "the text of " + name + "\n"}
	}
	got, err := p.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/plan.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("testdata/plan.yaml differs:\n%s", got)
	}
}

// A field without a key would not be in plan.yaml, and would be missing when the session continues.
func TestPlanHasAKeyForEverything(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var look func(reflect.Type)
	look = func(of reflect.Type) {
		switch of.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			look(of.Elem())
		case reflect.Struct:
			if seen[of] {
				return
			}
			seen[of] = true
			for i := range of.NumField() {
				field := of.Field(i)
				if key, _, _ := strings.Cut(field.Tag.Get("yaml"), ","); key == "" && field.Tag.Get("json") != "" {
					t.Errorf("%s.%s has no key", of, field.Name)
				}
				look(field.Type)
			}
		}
	}
	look(reflect.TypeFor[planFile]())
	if !seen[reflect.TypeFor[servers.Server]()] {
		t.Error("the servers are not looked at")
	}
}

func TestPlanSurvivesAnyText(t *testing.T) {
	base := samplePlan(t)
	text := rapid.OneOf(
		rapid.String(),
		rapid.StringOfN(rapid.SampledFrom([]rune(" \n\t\r#:-|>'\"\\{}[]&*!%@`~?,ab0é\u0085\u2028\ufeff\u200b\x00\x1b\x7f")), 0, 20, -1),
		rapid.SampledFrom([]string{"true", "null", "~", "1e3", "0x1", "2001-01-01", "<<", "=", "---", "...", "- a", "yes", ".5", "\n\n a\n"}),
	)
	rapid.Check(t, func(rt *rapid.T) {
		p := *base
		p.Task = Task{
			ID: text.Draw(rt, "id"), Title: text.Draw(rt, "title"), Description: text.Draw(rt, "description"),
			Acceptance: text.Draw(rt, "acceptance"), Priority: rapid.Int().Draw(rt, "priority"),
		}
		p.Attempt = text.Draw(rt, "attempt")
		p.Checks = check.Of(text.Draw(rt, "check"))
		p.Prompts = map[string]Prompt{}
		for name, prompt := range base.Prompts {
			prompt.Text = text.Draw(rt, "prompt")
			p.Prompts[name] = prompt
		}
		again(rt, &p)
	})
}

func TestPlanReplacesWhatIsNoText(t *testing.T) {
	p := samplePlan(t)
	p.Attempt = "a\xffb"
	data, err := p.Marshal()
	if err != nil || !utf8.Valid(data) {
		t.Fatal(err)
	}
	got, err := ReadPlan(data)
	if err != nil || got.Attempt != "a\ufffdb" {
		t.Errorf("got %q, %v", got.Attempt, err)
	}
}

func TestReadPlanErrors(t *testing.T) {
	good, err := samplePlan(t).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ old, new, want string }{
		"unknown key":       {"model: sonnet", "modle: sonnet", `unknown key "modle" (did you mean "model"?)`},
		"in a step":         {"expect: changes", "expect: miracles", `"miracles" is not one of changes`},
		"no prompt":         {"      prompt: fix-tests", "      prompt: fix", `the plan has no prompt "fix"`},
		"priority":          {"priority: 2", "priority: P2", `this must be a whole number, not "P2"`},
		"a torn file":       {"prompts:", "prompts: '", "this is not YAML"},
		"a nameless server": {"prompts:", "mcp: [{name: '', argv: [x]}]\nprompts:", "an MCP server has no name"},
		"a strange version": {"v: 3", "v: three", `this must be a whole number, not "three"`},
	} {
		bad := strings.Replace(string(good), c.old, c.new, 1)
		if bad == string(good) {
			t.Fatalf("%s: nothing to replace", name)
		}
		if _, err := ReadPlan([]byte(bad)); err == nil || !strings.Contains(err.Error(), c.want) || !IsInvalid(err) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := ReadPlan(nil); err == nil {
		t.Error("an empty plan was read")
	}
}

func TestPlanVersions(t *testing.T) {
	data, err := samplePlan(t).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	current := fmt.Sprintf("\nv: %d\n", PlanVersion)
	if !strings.Contains(string(data), current) {
		t.Fatalf("the plan has no version:\n%s", data)
	}
	for line, want := range map[string]string{
		"":                        "the plan has no version; the oldest that this coven supports is 3",
		"v: 2\ninvented: earlier": "plan version 2 is older than 3, the oldest that this coven supports",
		"v: 4\ninvented: later":   "plan version 4 is newer than 3, the newest that this coven supports; resume the session with a newer coven",
	} {
		other := []byte(strings.Replace(string(data), current, "\n"+line+"\n", 1))
		_, err := ReadPlan(other)
		if refused := (*VersionError)(nil); !errors.As(err, &refused) || err.Error() != want || refused.Newer() != strings.Contains(want, "newer") {
			t.Errorf("%q: %v", line, err)
		}
		if task, err := ReadTask(other); err != nil || task.Title != samplePlan(t).Task.Title {
			t.Errorf("%q: the task is %+v, %v", line, task, err)
		}
	}
	for _, bad := range []string{"", "task: [", "task: 1"} {
		if task, err := ReadTask([]byte(bad)); err == nil {
			t.Errorf("%q: the task is %+v", bad, task)
		}
	}
}

// stepData returns the data that the runner passes to the prompt of a step.
func stepData(p *Plan, input map[string]any) map[string]any {
	task := TaskData(p.Task)
	return map[string]any{"task": task, "bead": task, "attempt": p.Attempt, "input": input}
}

func TestBuiltInPrompts(t *testing.T) {
	p := samplePlan(t)
	none, err := NewLibrary("", "").Load("none")
	if err != nil {
		t.Fatal(err)
	}
	plain, err := NewLibrary("", "").Freeze(none, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.Task.Description = "It says {{.hello}} and `@file`.\n\n## Acceptance Criteria\n\n- [ ] First\n  goes on\n- Second\n"
	for name, plan := range map[string]*Plan{"implement": p, "fix-tests": p, "default": plain} {
		plan.Task, plan.Attempt = p.Task, "Status: blocked\nReason: it rained\n"
		got, err := plan.RenderPrompt(name, stepData(plan, map[string]any{"output": "FAIL\nexit 1"}))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(got, "Please ") && !strings.HasPrefix(got, "The checks ") {
			t.Errorf("%s begins %.40q", name, got)
		}
		for _, want := range []string{
			"# Task: Add: a flag", "c-1", "It says {{.hello}} and `@file`.", "\n- First\n  goes on\n- Second\n",
			"\n## Prior attempt\n", "Reason: it rained", "coven commits",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("%s lacks %q:\n%s", name, want, got)
			}
		}
		if strings.Contains(got, "    FAIL\n    exit 1\n") != (name == "fix-tests") {
			t.Errorf("%s:\n%s", name, got)
		}
		plan.Attempt = ""
		fresh, err := plan.RenderPrompt(name, stepData(plan, map[string]any{"output": ""}))
		if err != nil || strings.Contains(fresh, "Prior attempt") || strings.Contains(fresh, "\n\n\n\n") {
			t.Errorf("%s: %v\n%s", name, err, fresh)
		}
	}
}

func TestRenderPrompt(t *testing.T) {
	p := &Plan{Prompts: map[string]Prompt{
		"a": {Name: "a", Text: "A {{include \"b.md\"}}", Source: ".coven/prompts/a.md"},
		"b": {Name: "b", Text: "B {{.task.titel}}", Source: BuiltIn},
	}}
	data := stepData(&Plan{Task: Task{Title: "T"}}, nil)
	for prompt, want := range map[string]string{
		"x {{.task.title}}\n{{.bead.title}}": "x T\nT",
		"\n{{.task.nope}}":                   `prompt:2:8: .task has no "nope" (known: acceptance, acceptance_criteria, body, description, design, external_ref, id, labels, notes, parent, priority, title, type)`,
		"a":                                  `prompts/b.md (built in):1:10: .task has no "titel" (did you mean "title"?)`,
		"a.md":                               `prompts/b.md (built in):1:10: .task has no "titel" (did you mean "title"?)`,
		"c":                                  `unknown prompt "c" (it is not part of the session's plan)`,
	} {
		got, err := p.RenderPrompt(prompt, data)
		if err != nil {
			got = err.Error()
			if !IsInvalid(err) {
				t.Errorf("%q: %T", prompt, err)
			}
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", prompt, got, want)
		}
	}
}
