package command

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/process"
)

const lint = `
description: Run the linter
category: code
parameters:
  type: object
  properties:
    file: {type: string}
    also: {type: array, items: {type: string}}
    level: {type: integer}
    fix: {type: boolean}
  required: [file]
  additionalProperties: false
argv: [lint, "--level={{default 1 .level}}", "{{if .fix}}--fix{{end}}", "file:{{.file}}", "{{.also}}", --, "{{.file}}"]
timeout: 5s
`

func TestArgv(t *testing.T) {
	d, err := parse("lint.yaml", "lint", []byte(lint))
	if err != nil {
		t.Fatal(err)
	}
	for arguments, want := range map[string]string{
		`{"file":"a.go"}`: `lint|--level=1|file:a.go|--|a.go`,
		`{"file":"-rf","level":12345678,"fix":true}`:             `lint|--level=12345678|--fix|file:-rf|--|-rf`,
		`{"file":"$(rm -rf /); {{.also}}'\"","also":["x y",""]}`: `lint|--level=1|file:$(rm -rf /); {{.also}}'"|x y||--|$(rm -rf /); {{.also}}'"`,
		`{"file":"--level=1x"}`:                                  "lint|--level=1|file:--level=1x|--|--level=1x",
		`{"file":"a","also":["--output=/x"]}`:                    `✗ the argument "--output=/x" begins with -, so that it would be an option of lint`,
		`{"file":"a\u0000b"}`:                                    `✗ an argument has a NUL byte`,
		`[]`:                                                     `✗ wrong arguments: not a JSON object`,
	} {
		argv, err := Argv(d, json.RawMessage(arguments))
		got := strings.Join(argv, "|")
		if err != nil {
			got = "✗ " + err.Error()
		}
		if got != want {
			t.Errorf("%s:\n%s\nwant\n%s", arguments, got, want)
		}
	}
}

// The arguments of a call are validated, and the output is returned.
func TestTool(t *testing.T) {
	d, err := parse("lint.yaml", "lint", []byte(lint))
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	run := func(_ context.Context, argv []string, limit time.Duration) (process.Exit, []byte, error) {
		ran++
		if limit != 5*time.Second {
			t.Errorf("it has %s", limit)
		}
		return process.Exit{Code: 3}, []byte(strings.Join(argv, " ")), nil
	}
	tool := Tool("lint", d, run)
	if tool.Permission != permission.BashExecute || tool.Category != "code" || tool.Source != "lint.yaml" {
		t.Errorf("the tool is %+v", tool)
	}
	if _, err := tool.Call(t.Context(), json.RawMessage(`{"file":7}`)); err == nil || !strings.Contains(err.Error(), "file: type") || ran != 0 {
		t.Errorf("a wrong call: %v", err)
	}
	if _, err := tool.Call(t.Context(), json.RawMessage(`{"file":"a"}`)); err == nil || err.Error() != "exit code 3\nlint --level=1 file:a -- a" {
		t.Errorf("a call: %v", err)
	}
}

func TestLoad(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, Dir)
	if all, problems := Load(root, nil); len(all)+len(problems) != 0 {
		t.Errorf("without a directory: %v, %v", all, problems)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"good.yaml": "description: x\nargv: [make]\n", "notes.md": "x", "read.yaml": "description: x\nargv: [cat]\n",
		"twice.yaml": "description: x\nargv: [a]\n", "twice.yml": "description: x\nargv: [a]\n",
		"bad.yaml":      "description: x\nargv: [a]\ncategory: cod\n",
		"unknown.yaml":  "description: x\nargv: [a]\ncomand: b\n",
		"none.yaml":     "description: x\n",
		"silent.yaml":   "argv: [a]\n",
		"named.yaml":    "name: other\ndescription: x\nargv: [a]\n",
		"allowed.yaml":  "permission: file.read\ndescription: x\nargv: [a]\n",
		"program.yaml":  "description: x\nargv: [\"{{.p}}\"]\nparameters: {type: object, properties: {p: {type: string}}, required: [p]}\n",
		"missing.yaml":  "description: x\nargv: [a, \"{{.file}}\"]\nparameters: {type: object, properties: {fle: {type: string}}}\n",
		"optional.yaml": "description: x\nargv: [a, \"-f={{.file}}\"]\nparameters: {type: object, properties: {file: {type: string}}}\n",
		"text.yaml":     "description: x\nargv: [a]\nparameters: {type: string}\n",
		"long.yaml":     "description: x\nargv: [a]\ntimeout: 2h\n",
		"template.yaml": "description: x\nargv: [a, \"{{.\"]\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/dev/zero", filepath.Join(dir, "zero.yaml")); err != nil {
		t.Fatal(err)
	}
	all, problems := Load(root, func(name string) bool { return name == "read" })
	if names := slices.Sorted(maps.Keys(all)); !slices.Equal(names, []string{"good"}) {
		t.Errorf("there are %v", names)
	}
	for name, want := range map[string]string{
		"read": "coven has a tool of this name", "twice": "there is .coven/tools/twice.yaml, too", "bad": `unknown category "cod" (did you mean "code"?)`,
		"unknown": "unknown key", "none": "it has no command", "silent": "it has no description", "named": `the name is "other"`,
		"allowed": "needs the permission bash.execute", "program": "the program cannot be a parameter", "missing": `there is no parameter file (did you mean "fle"?)`,
		"optional": "a call may leave out file", "text": "its parameters are not an object", "long": "it is from 1s to 1h0m0s", "template": "argv[1]:1:", "zero": "zero.yaml: ",
	} {
		if err := problems[name]; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
		delete(problems, name)
	}
	if len(problems) > 0 {
		t.Errorf("also wrong: %v", problems)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(t.TempDir(), dir); err != nil {
		t.Fatal(err)
	}
	if all, problems := Load(root, nil); len(all) != 0 || problems[Dir] == nil {
		t.Errorf("behind a link: %v, %v", all, problems)
	}
}

// FuzzArgument checks that any value stays one argument, also for the gate's shell parser.
func FuzzArgument(f *testing.F) {
	for _, s := range []string{"", "a b", "$(x)", "'", "\"", "\n", "{{.x}}", "-x", "\\", "`x`", "é\xff", ";", "~", "!", "*"} {
		f.Add(s)
	}
	d, err := parse("p.yaml", "p", []byte("description: x\nargv: [printf, --, \"{{.v}}\"]\nparameters: {type: object, properties: {v: {type: string}}, required: [v]}\n"))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, v string) {
		arguments, err := json.Marshal(map[string]string{"v": v})
		if err != nil || strings.ContainsRune(v, 0) {
			t.Skip()
		}
		v = strings.ToValidUTF8(v, "\uFFFD") // like JSON
		argv, err := Argv(d, arguments)
		if err != nil || len(argv) != 3 || json.Valid(arguments) && strings.ToValidUTF8(argv[2], "\uFFFD") != argv[2] {
			t.Fatalf("%q: %q (%v)", v, argv, err)
		}
		text, err := Text(d, arguments)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := syntax.NewParser().Parse(strings.NewReader(text), "")
		if err != nil || len(parsed.Stmts) != 1 || len(parsed.Stmts[0].Cmd.(*syntax.CallExpr).Args) != 3 {
			t.Fatalf("%q is judged as %q (%v)", v, text, err)
		}
	})
}
