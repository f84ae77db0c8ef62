package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"gopkg.in/yaml.v3"
)

// An action is a composite action of GitHub.
type action struct {
	Inputs map[string]struct {
		Required bool
		Default  string
	}
	Outputs map[string]struct{ Value string }
	Runs    struct {
		Steps []struct {
			ID, Shell, Run string
			Env            map[string]string
		}
	}
}

var expression = regexp.MustCompile(`\$\{\{ *(\S+) *\}\}`)

// cmdAction implements action CLONE SHA [INPUT=VALUE...]: it runs the steps of examples/verify-action as GitHub does, and sets the variable
// VERIFIED to the output. The step that installs coven does nothing. A value @FILE is the content of a file.
func cmdAction(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: action CLONE SHA [INPUT=VALUE...]")
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "examples", "verify-action", "action.yml"))
	ts.Check(err)
	var a action
	ts.Check(yaml.Unmarshal(text, &a))
	values := map[string]string{}
	for name, input := range a.Inputs {
		values["inputs."+name] = input.Default
	}
	for _, arg := range args[2:] {
		name, value, _ := strings.Cut(arg, "=")
		if file, ok := strings.CutPrefix(value, "@"); ok {
			value = ts.ReadFile(file)
		}
		if _, ok := a.Inputs[name]; !ok {
			ts.Fatalf("the action has no input %s", name)
		}
		values["inputs."+name] = value
	}
	evaluate := func(text string) string {
		return expression.ReplaceAllStringFunc(text, func(found string) string {
			name := expression.FindStringSubmatch(found)[1]
			value, ok := values[name]
			if !ok {
				ts.Fatalf("%s has no value", name)
			}
			return value
		})
	}
	temp, err := os.MkdirTemp(ts.MkAbs(".."), "runner")
	ts.Check(err)
	ts.Check(os.WriteFile(filepath.Join(temp, "go"), []byte("#!/bin/sh\n"), 0o700))
	for _, step := range a.Runs.Steps {
		if step.Shell != "bash" {
			ts.Fatalf("unknown shell %q", step.Shell)
		}
		output, script := filepath.Join(temp, "output"), filepath.Join(temp, "script")
		ts.Check(os.WriteFile(output, nil, 0o600))
		ts.Check(os.WriteFile(script, []byte(evaluate(step.Run)), 0o600))
		cmd := exec.CommandContext(context.Background(), "bash", "--noprofile", "--norc", "-eo", "pipefail", script)
		cmd.Dir = ts.MkAbs(args[0])
		cmd.Env = append(environment(ts), "PATH="+temp+":"+ts.Getenv("PATH"), "CI=true", "GITHUB_ACTIONS=true", "GITHUB_SHA="+args[1],
			"GITHUB_OUTPUT="+output, "GITHUB_WORKSPACE="+cmd.Dir, "RUNNER_TEMP="+temp)
		for name, value := range step.Env {
			cmd.Env = append(cmd.Env, name+"="+evaluate(value))
		}
		said, err := cmd.CombinedOutput()
		ts.Logf("%s", said)
		ts.Check(err)
		for line := range strings.Lines(ts.ReadFile(output)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			values["steps."+step.ID+".outputs."+name] = value
		}
	}
	ts.Setenv("VERIFIED", evaluate(a.Outputs["verified"].Value))
}
