package grimoires

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/coven-run/coven/internal/config/check"
)

// files creates a repository and a user directory and returns their library.
func files(t *testing.T, all map[string]string) (*Library, string) {
	t.Helper()
	dir := t.TempDir()
	for _, sub := range []string{"repo", "user"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range all {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return NewLibrary(filepath.Join(dir, "repo"), filepath.Join(dir, "user")), dir
}

const minimal = "name: NAME\nsteps: [{name: a, type: agent, prompt: default}]\n"

func named(name string) string { return strings.Replace(minimal, "NAME", name, 1) }

func TestLibraryPrecedence(t *testing.T) {
	l, dir := files(t, map[string]string{
		"repo/.coven/grimoires/mine.yaml":       named("mine"),
		"repo/.coven/grimoires/short.yml":       named("short"),
		"repo/.coven/grimoires/README.md":       "",
		"repo/.coven/grimoires/not a name.yaml": "",
		"user/grimoires/mine.yaml":              "broken",
		"user/grimoires/implement.yaml":         named("implement"),
		"repo/.coven/prompts/default.md":        "\ufeffmine\r\n",
		"user/prompts/default.md":               "the user's",
		"user/prompts/own.md":                   "own",
	})
	names, err := l.Names()
	if err != nil || !slices.Equal(names, []string{"implement", "mine", "none", "prepare-pr", "review-only", "short", "spec-to-tasks"}) {
		t.Errorf("names: %v, %v", names, err)
	}
	prompts, err := l.PromptNames()
	if err != nil || !slices.Equal(prompts, []string{"apply-review", "default", "fix-tests", "implement", "is-actionable", "own", "prepare-pr", "resolve-conflict", "review", "revise-change", "spec-to-tasks", "task"}) {
		t.Errorf("prompts: %v, %v", prompts, err)
	}
	for name, want := range map[string]string{
		"mine": ".coven/grimoires/mine.yaml", "short": ".coven/grimoires/short.yml",
		"implement": filepath.Join(dir, "user/grimoires/implement.yaml"), "none": BuiltIn,
	} {
		if g, err := l.Load(name); err != nil || g.Source != want || g.Name != name {
			t.Errorf("%s: %+v, %v", name, g, err)
		}
	}
	for name, want := range map[string]Prompt{
		"default": {Name: "default", Text: "mine\n", Source: ".coven/prompts/default.md"},
		"own":     {Name: "own", Text: "own", Source: filepath.Join(dir, "user/prompts/own.md")},
	} {
		if p, err := l.Prompt(name); err != nil || p != want {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	if p, err := l.Prompt("task"); err != nil || p.Source != BuiltIn {
		t.Errorf("task: %+v, %v", p, err)
	}
}

func TestLibraryUnknown(t *testing.T) {
	l, _ := files(t, map[string]string{"repo/secret.yaml": named("secret")})
	for name, want := range map[string]string{
		"implment":     `unknown grimoire "implment" (did you mean "implement"?)`,
		"xyz":          `unknown grimoire "xyz" (known: implement, none, prepare-pr, review-only, spec-to-tasks)`,
		"":             `unknown grimoire "" (known: implement, none, prepare-pr, review-only, spec-to-tasks)`,
		"../../secret": `unknown grimoire "../../secret" (known: implement, none, prepare-pr, review-only, spec-to-tasks)`,
		"a/b":          `unknown grimoire "a/b" (known: implement, none, prepare-pr, review-only, spec-to-tasks)`,
	} {
		if _, err := l.Load(name); err == nil || err.Error() != want || !IsInvalid(err) {
			t.Errorf("%q: got %v", name, err)
		}
	}
	unknown := (*UnknownError)(nil)
	if _, err := l.Prompt("fix-test"); !errors.As(err, &unknown) || unknown.Hint != `did you mean "fix-tests"?` {
		t.Errorf("got %v", err)
	}
	if _, err := NewLibrary("", "").Load("none"); err != nil {
		t.Error(err)
	}
	if _, err := NewLibrary(filepath.Join(t.TempDir(), "gone"), "").Load("none"); err == nil || IsInvalid(err) {
		t.Errorf("a repository that is gone: %v", err)
	}
}

func TestLoadErrors(t *testing.T) {
	l, _ := files(t, map[string]string{
		"repo/.coven/grimoires/other.yaml":   named("another"),
		"repo/.coven/grimoires/twice.yaml":   named("twice"),
		"repo/.coven/grimoires/twice.yml":    named("twice"),
		"repo/.coven/grimoires/unknown.yaml": "name: unknown\nsteps:\n- {name: s, type: agent, prompt: fix-test}\n- {name: t, type: merge, nope: 1}\n",
		"repo/.coven/grimoires/inline.yaml":  "name: inline\nsteps:\n- name: s\n  type: agent\n  prompt: |\n    a\n    {{include \"tsk\"}} {{include \"task\"}}\n- name: u\n  type: agent\n  prompt: |\n    {{.task.nope}}\n",
		"repo/.coven/grimoires/bad.yaml":     "name: bad\nsteps:\n- {name: s, type: agent, prompt: bad}\n- {name: t, type: agent, prompt: bad, input: {x: y}}\n- {name: u, type: agent, prompt: broken}\n- {name: v, type: agent, prompt: loop}\n- {name: w, type: agent, prompt: broken}\n",
		"repo/.coven/grimoires/text.yaml":    "name: text\nsteps: [{name: a, type: agent, prompt: text}]\n",
		"repo/.coven/prompts/bad.md":         "x\n{{.input.x}} {{.steps.t.output}} {{include `gone`}}",
		"repo/.coven/prompts/broken.md":      "{{if}}",
		"repo/.coven/prompts/loop.md":        "{{include `loop2`}}",
		"repo/.coven/prompts/loop2.md":       "\n {{include `loop`}}",
		"repo/.coven/prompts/text.md":        "a\xff",
		"repo/.coven/prompts/dir.md/x":       "",
	})
	for name, want := range map[string]string{
		"other":   `.coven/grimoires/other.yaml:1:7: grimoire name "another" does not match file name "other" (use the same name)`,
		"twice":   `.coven/grimoires/twice.yml:1:1: .coven/grimoires/twice.yaml has the same name (keep one)`,
		"unknown": `.coven/grimoires/unknown.yaml:3:34: grimoire 'unknown' step 's': unknown prompt 'fix-test' (did you mean 'fix-tests'?)` + "\n.coven/grimoires/unknown.yaml:4:26: unknown key \"nope\" (known: name, type, when, timeout, on_fail, retries, backoff, budget, on_success, output, require_review, strategy, message, checks, on_conflict, next)",
		"inline": ".coven/grimoires/inline.yaml:7:15: grimoire 'inline' step 's': unknown prompt 'tsk' (did you mean 'task'?)\n" +
			`.coven/grimoires/inline.yaml:11:12: .task has no "nope" (known: acceptance, acceptance_criteria, body, description, design, external_ref, id, labels, notes, parent, priority, title, type)`,
		"bad": `.coven/prompts/bad.md:2:9: there is no input "x", in the step "s" of the grimoire "bad"
.coven/prompts/bad.md:2:22: the step "t" has not ended when "s" begins, in the step "s" of the grimoire "bad" (only earlier steps, and steps of the same loop, can be named)
.coven/prompts/bad.md:2:44: grimoire 'bad' step 's': unknown prompt 'gone' (known: apply-review, bad, broken, default, fix-tests, implement, is-actionable, loop, loop2, prepare-pr, resolve-conflict, review, revise-change, spec-to-tasks, task, text)
.coven/prompts/bad.md:2:22: the step "t" has not ended when "t" begins, in the step "t" of the grimoire "bad" (only earlier steps, and steps of the same loop, can be named)
.coven/prompts/bad.md:2:44: grimoire 'bad' step 't': unknown prompt 'gone' (known: apply-review, bad, broken, default, fix-tests, implement, is-actionable, loop, loop2, prepare-pr, resolve-conflict, review, revise-change, spec-to-tasks, task, text)
.coven/prompts/broken.md:1:1: missing value for if
.coven/prompts/loop2.md:2:12: the prompt "loop" includes itself: loop -> loop2 -> loop`,
		"text": `.coven/prompts/text.md:1: the prompt is not UTF-8 text`,
	} {
		if _, err := l.Load(name); err == nil || err.Error() != want || !IsInvalid(err) {
			t.Errorf("%s: got\n%v\nwant\n%s", name, err, want)
		}
	}
	if _, err := l.Prompt("dir"); err == nil || !strings.Contains(err.Error(), "it is not a file") {
		t.Errorf("a directory: %v", err)
	}
}

// A repository cannot make coven read files outside it.
func TestProjectLinksStayInside(t *testing.T) {
	l, dir := files(t, map[string]string{"outside.md": "secret", "repo/docs/inside.md": "fine", "repo/.coven/prompts/x.md": "x"})
	for name, to := range map[string]string{"out": "../../../outside.md", "abs": filepath.Join(dir, "outside.md"), "in": "../../docs/inside.md"} {
		if err := os.Symlink(to, filepath.Join(dir, "repo/.coven/prompts", name+".md")); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"out", "abs"} {
		if p, err := l.Prompt(name); err == nil {
			t.Errorf("%s: read %q", name, p.Text)
		}
	}
	if p, err := l.Prompt("in"); err != nil || p.Text != "fine" {
		t.Errorf("in: %v, %v", p, err)
	}
	big := filepath.Join(dir, "user/prompts/big.md")
	if err := os.MkdirAll(filepath.Dir(big), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(big, make([]byte, maxFile+1), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Prompt("big"); err == nil || !strings.Contains(err.Error(), "larger") {
		t.Errorf("big: %v", err)
	}
}

// Reading does not block on a named pipe in place of a file.
func TestPipesAreNotWaitedFor(t *testing.T) {
	for _, name := range []string{"grimoires/x.yaml", "prompts/x.md", matchersFile, "config.json", "grimoires"} {
		l, dir := files(t, nil)
		file := filepath.Join(dir, "repo/.coven", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), syscall.Mkfifo(file, 0o644)); err != nil {
			t.Fatal(err)
		}
		_, load := l.Load("x")
		_, prompt := l.Prompt("x")
		_, matchers := l.Matchers()
		_, list := l.Names()
		problems, err := l.Validate()
		said := fmt.Sprint(load, prompt, matchers, list, problems, err)
		if !strings.Contains(said, name) {
			t.Errorf("%s: %s", name, said)
		}
	}
}

func TestFreeze(t *testing.T) {
	l, dir := files(t, map[string]string{
		"repo/.coven/grimoires/g.yaml": "name: g\nsteps:\n- {name: a, type: agent, prompt: one.md}\n- name: b\n  type: agent\n  prompt: |\n    {{include \"two\"}}\n- {name: c, type: script, command: 'x {{raw .a.output}} {{.a.output}}'}\n",
		"repo/.coven/prompts/one.md":   "{{include \"two\"}}",
		"repo/.coven/prompts/two.md":   "two",
		"repo/.coven/prompts/three.md": "three",
	})
	g, err := l.Load("g")
	if err != nil {
		t.Fatal(err)
	}
	p, err := l.Freeze(g, check.Of("make test"))
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Prompts) != 2 || p.Prompts["one"].Text == "" || p.Prompts["two"].Text != "two" || !slices.Equal(p.Checks, check.Of("make test")) {
		t.Errorf("got %+v", p)
	}
	if !slices.Equal(p.Raw, []string{"step c: line 1, column 5 of its command"}) {
		t.Errorf("raw: %v", p.Raw)
	}
	if err := os.RemoveAll(filepath.Join(dir, "repo", ".coven")); err != nil {
		t.Fatal(err)
	}
	if got, err := p.RenderPrompt("one", nil); err != nil || got != "two" {
		t.Errorf("the plan reads the library: %q, %v", got, err)
	}
	want := ".coven/grimoires/g.yaml:1:1: grimoire 'g' step 'a': unknown prompt 'one' (known: apply-review, default, fix-tests, implement, is-actionable, prepare-pr, resolve-conflict, review, revise-change, spec-to-tasks, task)"
	if _, err := l.Freeze(g, nil); err == nil || !strings.HasPrefix(err.Error(), want) || !IsInvalid(err) {
		t.Errorf("prompts that are gone: %v", err)
	}
}

// The built-in grimoires and prompts are valid, under their own names.
func TestShipped(t *testing.T) {
	l := NewLibrary("", "")
	names, err := l.Names()
	if err != nil || !slices.Equal(names, []string{"implement", "none", "prepare-pr", "review-only", "spec-to-tasks"}) {
		t.Fatalf("%v, %v", names, err)
	}
	for _, name := range names {
		g, err := l.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Freeze(g, nil); err != nil || g.Description == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	prompts, err := l.PromptNames()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range prompts {
		p, err := l.Prompt(name)
		if err != nil || (name != "task" && !regexp.MustCompile(`^[A-Z][a-z]+ [a-z]`).MatchString(p.Text)) {
			t.Errorf("%s begins %.30q, %v", name, p.Text, err)
		}
	}
	g, err := l.Load("implement")
	if err != nil || len(g.Steps) != 3 || !g.Steps[1].Inner()[0].OnlyChecks() || !g.Steps[0].Kind.(*Agent).ExpectChanges || !g.Steps[2].Kind.(*Merge).RequireReview {
		t.Errorf("implement: %+v, %v", g, err)
	}
}

// Every example in the reference is valid, and the examples use every key.
func TestReference(t *testing.T) {
	text, err := os.ReadFile("../docs/formats/grimoire.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(name: (\\w+)\n.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) != strings.Count(string(text), "```yaml") || len(blocks) == 0 {
		t.Fatalf("%d examples are grimoires", len(blocks))
	}
	for _, b := range blocks {
		l, _ := files(t, map[string]string{"repo/.coven/grimoires/" + b[2] + ".yaml": b[1]})
		if _, err := l.Load(b[2]); err != nil {
			t.Errorf("%v\nin\n%s", err, b[1])
		}
	}
	_, err = Parse("", []byte("name: g\nx: y\nsteps:\n- {name: a, type: agent, x: y}\n- {name: b, type: script, x: y}\n- {name: c, type: loop, x: y}\n- {name: d, type: merge, x: y}"))
	for _, m := range regexp.MustCompile(`known: ([^)]*)`).FindAllStringSubmatch(err.Error(), -1) {
		for key := range strings.SplitSeq(m[1], ", ") {
			if !strings.Contains(string(text), "`"+key+"`") {
				t.Errorf("%s is not described", key)
			}
		}
	}
	for _, key := range slices.Concat(taskKeys(), slices.Collect(func(yield func(string) bool) {
		for key := range result().keys {
			if !yield(key) {
				return
			}
		}
	})) {
		if !regexp.MustCompile(`[ \x60]` + key + `[ \x60]`).MatchString(string(text)) {
			t.Errorf("%s is not described", key)
		}
	}
}

func TestNothingElseIsEmbedded(t *testing.T) {
	err := fs.WalkDir(shipped, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasSuffix(name, ".md") && !strings.HasSuffix(name, ".yaml") {
			t.Errorf("%s is embedded", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
