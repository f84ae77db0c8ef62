package schema_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"gopkg.in/yaml.v3"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/cli/setup"
	"github.com/coven-run/coven/internal/config/schema"
)

// compiled returns the resolved schema of a kind, as a validator reads it.
func compiled(t *testing.T, kind string) *jsonschema.Resolved {
	t.Helper()
	for _, k := range setup.SchemaKinds() {
		if k.Name != kind {
			continue
		}
		text, err := schema.Write(k.Schema(), kind)
		if err != nil {
			t.Fatal(err)
		}
		var s jsonschema.Schema
		if err := json.Unmarshal(text, &s); err != nil {
			t.Fatal(err)
		}
		resolved, err := s.Resolve(nil)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		return resolved
	}
	t.Fatalf("no schema %s", kind)
	return nil
}

func checkYAML(t *testing.T, s *jsonschema.Resolved, text string) error {
	t.Helper()
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%v\nin\n%s", err, text)
	}
	if value == nil {
		value = map[string]any{}
	}
	return s.Validate(unwrapped(value))
}

// unwrapped converts a YAML value to JSON: dates become text.
func unwrapped(value any) any {
	switch value := value.(type) {
	case time.Time:
		return value.Format(time.DateOnly)
	case []any:
		for i := range value {
			value[i] = unwrapped(value[i])
		}
	case map[string]any:
		for key := range value {
			value[key] = unwrapped(value[key])
		}
	}
	return value
}

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// kindOf returns the file kind of a code block in the documentation.
func kindOf(page, block string) string {
	switch {
	case strings.HasPrefix(block, "#"):
		_, rest, _ := strings.Cut(block, "\n")
		return kindOf(page, rest)
	case strings.Contains(block, "steps:") && strings.HasPrefix(block, "name:"):
		return "grimoire"
	case strings.HasPrefix(block, "tests:"):
		return "grimoire-test"
	case strings.Contains(block, "rules:"):
		return "grimoire-matchers"
	case strings.HasPrefix(block, "plugins:"):
		return "plugins-lock"
	case strings.Contains(block, "\nargv:"):
		return "tool"
	case strings.HasSuffix(page, "secrets.md"):
		return "secrets"
	}
	return "config"
}

// Every example in the documentation and every file that coven ships is valid by
// its schema.
func TestSchemasTakeExamples(t *testing.T) {
	found := map[string]int{}
	for _, dir := range []string{"../../../docs", "../../../grimoires"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			blocks := map[string]string{}
			switch {
			case filepath.Ext(path) == ".md" && strings.HasPrefix(path, "../../../docs"):
				for _, b := range yamlBlock.FindAllStringSubmatch(string(text), -1) {
					blocks[b[1]] = kindOf(path, b[1])
				}
			case strings.HasSuffix(path, ".test.yaml"):
				blocks[string(text)] = "grimoire-test"
			case filepath.Ext(path) == ".yaml" && filepath.Base(path) != "plan.yaml" && !strings.Contains(path, "refused"):
				blocks[string(text)] = "grimoire"
			}
			for block, kind := range blocks {
				found[kind]++
				if err := checkYAML(t, compiled(t, kind), block); err != nil {
					t.Errorf("%s: %v\nin\n%s", path, err, block)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, k := range setup.SchemaKinds() {
		if found[k.Name] == 0 {
			t.Errorf("no example of %s", k.Name)
		}
	}
}

// The schemas refuse invalid files and accept valid ones.
func TestSchemas(t *testing.T) {
	for _, tt := range []struct {
		kind, text string
		ok         bool
	}{
		{"config", "checks: [a]\nrun: {max_tasks: 3}\ntimeouts: {idle: 1h30m}", true},
		{"config", "checks: [a, {run: b, lock: db}, {run: c, serial: true}]", true},
		{"config", "checks: [{lock: db}]", false},
		{"config", "sandbox: {network: private}", true},
		{"config", "sandbox: {network: [private, a.example]}", true},
		{"config", "sandbox: {network: {a: b}}", false},
		{"config", "chekcs: [a]", false},
		{"config", "tracker: linear", false},
		{"config", "timeouts: {idle: 10}", false},
		{"config", "notify: [{command: x, on: [sleeping]}]", false},
		{"grimoire", "name: g\nsteps: [{name: a, type: script, command: x, env: {PORT: 80}, when: true}]", true},
		{"grimoire", "name: g\nsteps: [{name: l, type: loop, steps: [{name: a, type: agent, spell: x}]}]", true},
		{"grimoire", "name: g\nsteps: []", false},
		{"grimoire", "name: g\nsteps: [{name: a, type: script}]", false},
		{"grimoire", "name: g\nsteps: [{name: a, type: scrpt, command: x}]", false},
		{"grimoire", "name: g\nsteps: [{name: a, type: agent, prompt: x, command: y}]", false},
		{"grimoire", "name: g\nsteps: [{name: l, type: loop, steps: [{name: a, type: agent, promt: x}]}]", false},
		{"grimoire", "name: g\nsteps: [{name: a, type: merge, strategy: squish}]", false},
		{"grimoire-matchers", "rules: [{grimoire: x, any_tags: [a]}]", true},
		{"grimoire-matchers", "rules: [{any_tags: [a]}]", false},
		{"grimoire-test", "tests: [{name: a, steps: {b: {exit_code: 1}, c: [{output: x}, {wait: review}]}, expect: {given: {b: x, c: [y, z]}}}]", true},
		{"grimoire-test", "tests: [{name: a, steps: {b: {exitcode: 1}}}]", false},
		{"grimoire-test", "tests: [{name: a, expect: {status: done}}]", false},
		{"tool", "description: x\nargv: [a, b]\nparameters: {type: object}\ntimeout: 5s", true},
		{"tool", "description: x\nargv: [a, b]\npermission: file.read", false},
		{"tool", "description: x", false},
		{"tool", "description: x\nargv: a", false},
		{"plugins-lock", "plugins: {}", true},
		{"plugins-lock", "plugins: {coven-model-x: {any: " + strings.Repeat("a", 64) + "}}", true},
		{"plugins-lock", "plugins: {coven-model-x: {any: aa}}", false},
		{"plugins-lock", "plugins: {coven-model-x: {}}", false},
		{"plugins-lock", "plugins: {coven-thing-x: {any: " + strings.Repeat("a", 64) + "}}", false},
		{"plugins-lock", "plugin: {}", false},
		{"secrets", "api_key: abcdef", true},
		{"secrets", "api-key: abcdef", false},
		{"secrets", "api_key: abc", false},
	} {
		if err := checkYAML(t, compiled(t, tt.kind), tt.text); (err == nil) != tt.ok {
			t.Errorf("%s: %s\n%v", tt.kind, tt.text, err)
		}
	}
}

// The reader and the schema agree about steps.
func TestGrimoireSchemaAgrees(t *testing.T) {
	s := compiled(t, "grimoire")
	for step, ok := range map[string]bool{
		"type: review, reviewers: [agent]":                                                                          true,
		"type: review, reviewers: [80]":                                                                             true,
		"type: review, reviewers: [Agent]":                                                                          false,
		"type: review, reviewers: [" + strings.Repeat("a", 64) + "]":                                                true,
		"type: review, reviewers: [" + strings.Repeat("a", 65) + "]":                                                false,
		"type: review, reviewers: [agent, agent]":                                                                   false,
		"type: review, reviewers: []":                                                                               false,
		"type: review, reviewers: [null]":                                                                           false,
		"type: review, reviewers: agent":                                                                            false,
		"type: review, reviewers: [{name: x}]":                                                                      false,
		"type: review, reviewers: [{plugin: x.y}]":                                                                  false,
		"type: review, reviewers: [{plugin: style, name: A_b-1}]":                                                   true,
		"type: review, reviewers: [{plugin: style, name: 8}]":                                                       true,
		"type: review, reviewers: [{plugin: style, name: a b}]":                                                     false,
		"type: review, reviewers: [{plugin: style, prompt: x, with: {a: 1, b: no}}]":                                true,
		"type: review, reviewers: [{plugin: style, with: {a: [x]}}]":                                                false,
		"type: review, reviewers: [{plugin: style, with: {prompt: x}}]":                                             false,
		"type: agent-loop, reviewers: [agent], arbiter: rules":                                                      true,
		"type: agent-loop, reviewers: [agent], arbiter: Rules":                                                      false,
		"type: agent-loop, reviewers: [agent], arbiter: {plugin: agent, prompt: x}":                                 true,
		"type: agent-loop, reviewers: [agent], arbiter: [agent]":                                                    false,
		"type: agent-loop, reviewers: [agent], patience: 1, max_iterations: 100":                                    true,
		"type: agent-loop, reviewers: [agent], patience: 100, max_iterations: 1":                                    true,
		"type: agent-loop, reviewers: [agent], patience: 0":                                                         false,
		"type: agent-loop, reviewers: [agent], patience: 101":                                                       false,
		"type: agent-loop, reviewers: [agent], max_iterations: 0":                                                   false,
		"type: agent-loop, reviewers: [agent], max_iterations: 101":                                                 false,
		"type: loop, max_iterations: 101, steps: [{name: a, type: agent, prompt: x}]":                               false,
		"type: agent, prompt: x, retries: 10":                                                                       true,
		"type: agent, prompt: x, retries: 0":                                                                        false,
		"type: agent, prompt: x, retries: 11":                                                                       false,
		"type: agent, prompt: x, provider: Claude":                                                                  false,
		"type: agent, prompt: x, on_success: exit_loop":                                                             false,
		"type: agent-loop, reviewers: [agent], on_success: exit_loop":                                               false,
		"type: agent-loop, reviewers: [agent], steps: [{name: a, type: script, command: x}]":                        true,
		"type: agent-loop, reviewers: [agent], steps: [{name: fix, type: script, command: x}]":                      false,
		"type: agent-loop, reviewers: [agent], steps: [{name: a, type: script, command: x, on_success: exit_loop}]": false,
		"type: agent-loop, reviewers: [agent], steps: [{name: l, type: loop, steps: [{name: fix, type: script, command: x, on_success: exit_loop}]}]": true,
		"type: loop, steps: [{name: a, type: agent-loop, reviewers: [agent], on_success: exit_loop}]":                                                 true,
	} {
		text := "name: g\nsteps: [{name: q, " + step + "}]\n"
		if _, err := grimoires.Parse("g.yaml", []byte(text)); (err == nil) != ok {
			t.Errorf("the reader: %s\n%v", step, err)
		}
		if err := checkYAML(t, s, text); (err == nil) != ok {
			t.Errorf("the schema: %s\n%v", step, err)
		}
	}
}
