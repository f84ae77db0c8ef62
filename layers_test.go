package coven_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// A command may import package cli and the views below it, but no other command.
func TestCommandsAreIndependent(t *testing.T) {
	const commands = "internal/cli/"
	views := []string{commands + "reviewpage"}
	for dir, files := range packages(t) {
		if !strings.HasPrefix(dir, commands) || dir == commands+"root" {
			continue
		}
		for file, used := range files {
			for _, name := range used {
				if ours := strings.TrimPrefix(name, module); strings.HasPrefix(ours, commands) && !slices.Contains(views, ours) {
					t.Errorf("%s imports %s: commands share package cli only", file, ours)
				}
			}
		}
	}
}

// Packages that every user interface calls import none, do not use the command line, and print nothing.
func TestControlHasNoFace(t *testing.T) {
	for dir, files := range packages(t) {
		if dir != "internal/project" && dir != "internal/control/scheduler" && dir != "internal/control" && !strings.HasPrefix(dir, "internal/control/") {
			continue
		}
		for file, used := range files {
			for _, name := range used {
				if strings.HasPrefix(name, "github.com/spf13/") || strings.HasPrefix(name, module+"internal/cli") || name == "golang.org/x/term" || name == "log" {
					t.Errorf("%s imports %s", file, name)
				}
			}
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if sel, ok := n.(*ast.SelectorExpr); ok && prints(sel) {
					t.Errorf("%s: %s.%s", file, sel.X, sel.Sel.Name)
				}
				return true
			})
		}
	}
}

// prints reports whether an identifier of another package writes to the terminal.
func prints(sel *ast.SelectorExpr) bool {
	of, ok := sel.X.(*ast.Ident)
	if !ok {
		return false
	}
	switch of.Name {
	case "fmt":
		return strings.HasPrefix(sel.Sel.Name, "Print")
	case "os":
		return sel.Sel.Name == "Stdout" || sel.Sel.Name == "Stderr" || sel.Sel.Name == "Stdin"
	}
	return false
}

// maxLines is the maximum size of a package, without tests and generated code.
const maxLines = 4000

func TestPackageSize(t *testing.T) {
	lines := map[string]int{}
	for _, file := range goFiles(t) {
		dir := path.Dir(file)
		if strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, ".pb.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines[dir] += strings.Count(string(text), "\n")
	}
	for dir, n := range lines {
		if n > maxLines {
			t.Errorf("%s has %d lines, more than %d", dir, n, maxLines)
		}
	}
}

// cmd/coven consists of a main file and tests.
func TestMainIsSmall(t *testing.T) {
	for _, file := range goFiles(t) {
		if path.Dir(file) == "cmd/coven" && !strings.HasSuffix(file, "_test.go") && path.Base(file) != "main.go" {
			t.Errorf("%s: cmd/coven has main.go only", file)
		}
	}
}

// The tables of the architecture name existing functions, package by package, and no package twice.
func TestPaths(t *testing.T) {
	text, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, tables, _ := strings.Cut(string(text), "## Three paths")
	tables, _, _ = strings.Cut(tables, "\n## ")
	paths := strings.Split(tables, "\n|---|---|\n")[1:]
	if len(paths) != 3 {
		t.Errorf("there are %d paths", len(paths))
	}
	for _, table := range paths {
		checkPath(t, table)
	}
}

func checkPath(t *testing.T, table string) {
	t.Helper()
	seen := map[string]bool{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 4 || !strings.Contains(cells[1], "`") {
			continue
		}
		dir := strings.Trim(cells[1], " `")
		if seen[dir] {
			t.Errorf("%s stands twice in the table", dir)
		}
		seen[dir] = true
		have := functions(t, dir)
		for name := range strings.SplitSeq(cells[2], ",") {
			if name = strings.Trim(name, " `"); !slices.Contains(have, name) {
				t.Errorf("%s has no function %s", dir, name)
			}
		}
	}
	if len(seen) < 5 {
		t.Errorf("the table has %d packages", len(seen))
	}
}

// functions returns the functions of a package in the notation of the table: Type.Method.
func functions(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	for _, file := range goFiles(t) {
		if path.Dir(file) != dir || strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			name := fn.Name.Name
			if fn.Recv != nil {
				of := fn.Recv.List[0].Type
				if star, ok := of.(*ast.StarExpr); ok {
					of = star.X
				}
				if id, ok := of.(*ast.Ident); ok {
					name = id.Name + "." + name
				}
			}
			names = append(names, name)
		}
	}
	return names
}

// User interfaces do not need the types of the packages that control hides: no exported function, method or
// field of control mentions them.
func TestControlHidesItsParts(t *testing.T) {
	hidden := []string{"runner", "engine", "worktree", "process"}
	for _, file := range goFiles(t) {
		if path.Dir(file) != "internal/control" || strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.FileExports(f) // leaves only exported declarations, with the bodies of functions
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BlockStmt, *ast.ValueSpec:
				return false
			case *ast.SelectorExpr:
				if of, ok := n.X.(*ast.Ident); ok && slices.Contains(hidden, of.Name) {
					t.Errorf("%s mentions %s.%s", file, of.Name, n.Sel.Name)
				}
			}
			return true
		})
	}
}
