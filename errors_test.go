package coven_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// takers maps each exported error type without a next command to the file in which coven adds one, or
// passes the error to an agent or a step.
var takers = map[string]string{
	"agent.Problem":              "internal/cli/agents/validate.go",
	"mcp.AgentError":             "internal/cli/spawn/spawn.go", // reported to an agent, which can do nothing
	"checkout.Error":             "internal/control/workspace/landing.go",
	"git.Error":                  "internal/cli/app.go", // any error of git: coven doctor
	"tmpl.Error":                 "grimoires/validate.go",
	"endpoint.Failure":           "plugins/builtin/endpoint/failure.go",
	"engine.OverTimeError":       "runner/executor_agent.go",
	"regularfile.SizeError":      "internal/session/damage.go",
	"runner.ConflictError":       "runner/executor_merge.go",
	"runner.RefusedError":        "runner/executor_merge.go",
	"pullrequest.Wait":           "runner/executor_pull.go",
	"runner.Wait":                "internal/control/dismiss.go",
	"scaffold.DifferError":       "internal/cli/plugin/proto.go",
	"tool.DuplicateError":        "internal/tool/registry.go", // a bug in coven
	"spawn.PanicError":           "internal/control/launch/subagent.go",
	"jsonline.SyntaxError":       "internal/task/document.go",
	"isolation.CommitsError":     "internal/control/workspace/workspace.go",
	"integrate.ConflictError":    "internal/control/workspace/landing.go",
	"integrate.DirtyError":       "internal/control/workspace/landing.go",
	"integrate.GitlinkError":     "internal/control/workspace/landing.go",
	"commit.HookError":           "internal/control/workspace/landing.go",
	"commit.MarkersError":        "internal/control/workspace/workspace.go",
	"content.LargeError":         "internal/control/workspace/workspace.go", // the message says it
	"rescue.IgnoredError":        "internal/project/ignored.go",
	"snapshot.NoPathError":       "internal/control/snapshot/snapshot.go",
	"land.FilterError":           "internal/control/workspace/commands.go",
	"land.SignError":             "internal/control/workspace/landing.go",
	"commit.SuspectError":        "internal/control/workspace/workspace.go",
	"integrate.UnrelatedError":   "internal/control/workspace/landing.go",
	"integrate.UnresolvedError":  "internal/control/workspace/workspace.go",
	"tripwire.UnrestorableError": "internal/control/rescue/rescue.go",
	"forgehttp.Limited":          "plugins/builtin/forgehttp/poll.go", // or a text of the plugin
	"forgehttp.Refusal":          "plugins/builtin/github/act.go",
}

// C-138: each exported error type has a method NextCommand, or is converted to an error or message that has
// a next command.
func TestErrorsAdvise(t *testing.T) {
	types := errorTypes(t)
	for name, advises := range types {
		file, taken := takers[name]
		switch {
		case advises && taken:
			t.Errorf("%s has a next command of its own: remove it from the table", name)
		case !advises && !taken:
			t.Errorf("%s has no method NextCommand, and is not in the table", name)
		case taken:
			_, short, _ := strings.Cut(name, ".")
			text, err := os.ReadFile(file)
			if err != nil || !regexp.MustCompile(`\b`+short+`\b`).Match(text) {
				t.Errorf("%s is not mentioned in %s: %v", name, file, err)
			}
		}
	}
	for name := range takers {
		if _, ok := types[name]; !ok {
			t.Errorf("there is no type %s", name)
		}
	}
}

// errorTypes returns the exported error types of coven, package.Type, and whether they have a method
// NextCommand.
func errorTypes(t *testing.T) map[string]bool {
	t.Helper()
	methods := map[string][]string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != "." || slices.Contains([]string{"examples", "testdata"}, d.Name())) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range f.Decls {
			if m, ok := decl.(*ast.FuncDecl); ok && m.Recv != nil {
				of := f.Name.Name + "." + receiver(m.Recv.List[0].Type)
				methods[of] = append(methods[of], m.Name.Name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]bool{}
	for name, all := range methods {
		_, short, _ := strings.Cut(name, ".")
		if ast.IsExported(short) && slices.Contains(all, "Error") {
			types[name] = slices.Contains(all, "NextCommand")
		}
	}
	return types
}

// receiver returns the name of the type of a method.
func receiver(e ast.Expr) string {
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}
	if name, ok := e.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}
