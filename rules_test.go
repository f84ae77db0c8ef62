// Package coven_test checks the rules of this repository: allowed imports, package names and package
// comments, and unused names.
package coven_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/coven-run/coven/"

// A rule names packages that others must not import. "a/..." means a and the packages below it, and
// "a/*" those directly below it.
type rule struct {
	from   []string // the importers
	except []string // importers to which the rule does not apply
	never  []string
	but    []string // packages that may be imported although never names them
	why    string
}

var rules = []rule{
	{
		from: []string{"..."}, except: []string{"cmd/coven", "internal/cli/...", "internal/manual/man"},
		never: []string{"internal/cli/...", "internal/tui", "internal/web"},
		why:   "nothing depends on a face",
	},
	{
		from: []string{"internal/cli/...", "internal/tui", "internal/web"}, except: []string{"internal/cli/grimoire", "internal/cli/setup"},
		never: []string{"worktree/...", "runner/..."},
		why:   "a face asks internal/control",
	},
	{
		from: []string{"..."}, except: []string{"cmd/coven", "internal/fake/...", "internal/manual/...", "examples/..."},
		never: []string{"internal/fake/...", "internal/manual/...", "internal/testrun", "examples/*"},
		but:   []string{"examples/plugins"},
		why:   "the product contains no fakes and no tools of its development",
	},
	{
		from:  []string{"runner"},
		never: []string{"worktree/...", "plugins", "internal/session", "internal/project", "internal/config", "internal/process", "internal/control/..."},
		why:   "the runner declares its interfaces: see runner/seams.go",
	},
	{
		from:  []string{"runner/engine"},
		never: []string{"..."},
		but: []string{
			"grimoires", "internal/budget", "internal/config/check", "internal/event", "internal/event/findings", "internal/text/lazyregexp", "internal/text/tmpl",
			"plugins/arbiter", "plugins/reviewer",
		},
		why: "the tree of steps is pure",
	},
	{
		from: []string{"plugins/..."}, except: []string{"plugins/builtin/..."},
		never: []string{"..."}, but: []string{"plugins/...", "internal/exit", "internal/text/lazyregexp"},
		why: "the SDK of plugins is for programs of others",
	},
	{
		from:  []string{"plugins/builtin/*"},
		never: []string{"..."}, but: []string{"plugins/...", "internal/budget", "internal/exit", "internal/text/lazyregexp", "internal/text/shellword", "internal/text/strictjson"},
		why: "a plugin of ours is a process of its own, as one of others is",
	},
	{
		from:  []string{"worktree/..."},
		never: []string{"..."},
		but: []string{
			"worktree/...", "internal/file/diskusage", "internal/exit", "internal/process/failpoint", "internal/text/lazyregexp", "internal/file/regularfile",
			"internal/text/ending", "internal/text/shellword",
		},
		why: "worktrees know nothing of tasks, sessions and agents",
	},
	{
		from:  []string{"grimoires"},
		never: []string{"runner/...", "worktree/...", "plugins/...", "internal/session", "internal/project", "internal/control/..."},
		why:   "a workflow is read and checked without anything that runs it",
	},
	{
		from:  []string{"internal/session", "internal/event", "internal/event/findings", "internal/task", "internal/config", "internal/agent"},
		never: []string{"runner/...", "worktree/...", "plugins", "internal/project", "internal/control/...", "internal/process"},
		why:   "what reads and writes records runs nothing",
	},
	{
		from:  []string{"internal/permission", "internal/text/tmpl", "internal/process", "internal/secret", "internal/sandbox", "internal/gate"},
		never: []string{"runner/...", "worktree/...", "plugins/...", "grimoires", "internal/session", "internal/project", "internal/control/...", "internal/agent"},
		why:   "what guards users can be read without the rest",
	},
	{
		from:  []string{"internal/project", "internal/pluginregistry"},
		never: []string{"runner/...", "internal/control/..."},
		why:   "an opened repository is not an operation on it",
	},
	{
		from: []string{
			"internal/control/accounts", "internal/control/agents", "internal/control/conversation", "internal/control/launch", "internal/control/reviewers",
			"internal/control/workspace",
		},
		never: []string{"internal/control"},
		why:   "internal/control hands its parts to the runner, not the other way around",
	},
}

// Limits of a package: the number of its importers, unless it imports almost no package of this module, and
// of its imports from this module.
const (
	maxImporters = 47 // each command imports project
	maxImports   = 40
)

// wide lists the packages that exceed maxImports, with their number of imports.
var wide = map[string]int{"internal/control": 54, "internal/control/launch": 48}

// vague lists package names that do not describe the contents.
var vague = []string{"util", "utils", "common", "helper", "helpers", "shared", "types", "models", "core", "base", "manager", "misc"}

func TestImports(t *testing.T) {
	used := imports(t)
	for _, r := range rules {
		found := false
		for from, all := range used {
			if !within(r.from, from) || within(r.except, from) {
				continue
			}
			found = true
			for _, to := range all {
				if within(r.never, to) && !within(r.but, to) {
					t.Errorf("%s imports %s: %s", from, to, r.why)
				}
			}
		}
		if !found {
			t.Errorf("no package has the rule: %s", r.why)
		}
	}
}

func TestHubs(t *testing.T) {
	used := imports(t)
	importers := map[string]int{}
	for from, all := range used {
		limit := max(maxImports, wide[from])
		if len(all) > limit {
			t.Errorf("%s imports %d packages, more than %d", from, len(all), limit)
		}
		for _, to := range all {
			importers[to]++
		}
	}
	for name, n := range importers {
		if n > maxImporters && len(used[name]) > 2 {
			t.Errorf("%s has %d importers, more than %d", name, n, maxImporters)
		}
	}
}

// imports returns the imports of each package from this module, without tests.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for dir, files := range packages(t) {
		all[dir] = nil
		for _, names := range files {
			for _, name := range names {
				if ours, ok := strings.CutPrefix(name, module); ok && !slices.Contains(all[dir], ours) {
					all[dir] = append(all[dir], ours)
				}
			}
		}
		slices.Sort(all[dir])
	}
	return all
}

// within reports whether a package matches one of the patterns of rules.
func within(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		tree, isTree := strings.CutSuffix(p, "...")
		if isTree {
			return tree == "" || name+"/" == tree || strings.HasPrefix(name, tree)
		}
		ok, err := path.Match(p, name)
		return err == nil && ok
	})
}

// Only package worktree runs git, and only through its git package. Exceptions are the demo, the chaos
// test of workers, plugintest and fakeforge, which have their own repositories.
func TestOnlyWorktreeRunsGit(t *testing.T) {
	for dir, files := range packages(t) {
		for file, used := range files {
			if strings.HasPrefix(dir, "worktree") || dir == "examples/demo" || dir == "distributed/chaos" || dir == "plugins/plugintest" || dir == "internal/fake/fakeforge" || !slices.Contains(used, "os/exec") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), `Command("git"`) || strings.Contains(string(text), `CommandContext(ctx, "git"`) {
				t.Errorf("%s runs git", file)
			}
		}
	}
}

// Each comparison of trees or an index by git gets its options from git.DiffArgs, so that no configuration and no attribute
// leaves out a change.
func TestDiffsHaveTheirOptions(t *testing.T) {
	except := map[string]bool{"worktree/pool/pool.go": true} // compares without the submodules, which it empties
	commands := []string{`"diff"`, `"diff-tree"`, `"diff-index"`, `"diff-files"`}
	found := 0
	for _, file := range goFiles(t) {
		if !strings.HasPrefix(file, "worktree/") || strings.HasSuffix(file, "_test.go") || except[file] {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			name := ""
			switch fun := call.Fun.(type) {
			case *ast.SelectorExpr:
				name = fun.Sel.Name
			case *ast.Ident:
				name = fun.Name
			}
			for _, argument := range call.Args {
				if text, ok := argument.(*ast.BasicLit); ok && slices.Contains(commands, text.Value) {
					found++
					if name != "DiffArgs" {
						t.Errorf("%s: %s(%s) without git.DiffArgs", file, name, text.Value)
					}
				}
			}
			return true
		})
	}
	if found == 0 {
		t.Error("nothing compares with git")
	}
}

// programsOfGit lists the git commands that coven runs, outside the sandbox and often on an agent's content, with the
// programs of the configuration that they could run, and the reason why that is safe. No git runs hooks (core.hooksPath),
// a monitor (core.fsmonitor), a pager or an editor: see neutral in worktree/internal/git/env.go, and output that is no
// terminal. The configuration is that of the user and the repository, never one that a worktree contains; PlainGit has none.
var programsOfGit = map[string]string{
	"cat-file":         "filters, with --filters only: see filters",
	"check-attr":       "",
	"check-ignore":     "",
	"check-ref-format": "",
	"checkout-index":   "filters",
	"commit-tree":      "gpg.program, only for a landing that the user's settings sign, and its receipt: in the user's name, on a commit",
	"commit-graph":     "",
	"config":           "",
	"diff-index":       "external diffs, textconv: off by git.DiffArgs",
	"diff-tree":        "external diffs, textconv: off by git.DiffArgs",
	"fetch":            "ssh, credential helpers, remote helpers: from the user's remotes; from a worktree, with the configuration of PlainGit",
	"for-each-ref":     "",
	"hash-object":      "filters: off by --no-filters, or without a path",
	"lfs":              "credential helpers, transfer agents: from the user's configuration, to the user's remotes; .lfsconfig of the checkout names no programs",
	"log":              "gpg.program, to verify the signature of a receipt: in the user's name; external diffs, textconv: off by --no-patch",
	"ls-files":         "filters, with -m: see filters",
	"ls-remote":        "ssh, credential helpers, remote helpers: to the user's remotes",
	"ls-tree":          "",
	"merge-base":       "",
	"merge-tree":       "merge drivers: in the sandbox, see worktree/integrate/drivers.go",
	"mktree":           "",
	"pack-objects":     "",
	"pack-refs":        "",
	"prune":            "",
	"push":             "ssh, credential helpers, remote helpers: from the user's remotes",
	"read-tree":        "filters, with -u",
	"remote":           "",
	"rev-list":         "",
	"rev-parse":        "",
	"show-ref":         "",
	"status":           "filters; in the user's checkout only",
	"stripspace":       "",
	"symbolic-ref":     "",
	"unpack-objects":   "",
	"update-index":     "filters",
	"update-ref":       "",
	"var":              "",
	"verify-commit":    "gpg.program, to verify the signature of a receipt: in the user's name",
	"worktree":         "none with --no-checkout",
	"write-tree":       "",
	"filters in words": "filters run as configured when coven opened the repository, in the user's checkout: see worktree/internal/repo/filter.go",
}

// runsGit are the functions that run git with the command as their first text.
var runsGit = []string{"Run", "Output", "Line", "Fields", "Feed", "Stream", "DiffArgs", "mergeTree", "discover"}

// Each git that coven runs is in the table.
func TestGitsAndTheirPrograms(t *testing.T) {
	unused := maps.Clone(programsOfGit)
	delete(unused, "filters in words")
	word := regexp.MustCompile(`^"[a-z]+(-[a-z]+)*"$`)
	for _, file := range goFiles(t) {
		if !strings.HasPrefix(file, "worktree/") || strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		check := func(list []ast.Expr, must bool) {
			for _, e := range list {
				text, ok := e.(*ast.BasicLit)
				if !ok {
					continue
				}
				command := strings.Trim(text.Value, `"`)
				_, known := programsOfGit[command]
				if must && !known && word.MatchString(text.Value) {
					t.Errorf("%s runs git %s, which programsOfGit does not list", file, command)
				}
				if known {
					delete(unused, command)
				}
				return // options and names follow
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if sel, ok := n.Fun.(*ast.SelectorExpr); ok && slices.Contains(runsGit, sel.Sel.Name) {
					check(n.Args, true)
				}
			case *ast.CompositeLit:
				check(n.Elts, false)
			}
			return true
		})
	}
	if len(unused) > 0 {
		t.Errorf("coven does not run: git %v", slices.Sorted(maps.Keys(unused)))
	}
}

// The step tree is pure: package engine has no access to files, processes, the network, randomness or the
// time.
func TestEngineIsPure(t *testing.T) {
	forbidden := []string{"os", "os/", "io/fs", "net", "net/", "syscall", "math/rand", "math/rand/", "crypto/rand", "runtime", "unsafe", "golang.org/x/sys/", "path/filepath"}
	checked := 0
	for _, file := range goFiles(t) {
		if path.Dir(file) != "runner/engine" || strings.HasSuffix(file, "_test.go") {
			continue
		}
		checked++
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range f.Imports {
			name := strings.Trim(spec.Path.Value, `"`)
			if slices.ContainsFunc(forbidden, func(f string) bool { return name == f || strings.HasSuffix(f, "/") && strings.HasPrefix(name, f) }) {
				t.Errorf("%s imports %s", file, name)
			}
			if name == "time" && spec.Name != nil {
				t.Errorf("%s imports time as %s", file, spec.Name)
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" && !slices.Contains(pureTime, sel.Sel.Name) {
					t.Errorf("%s uses time.%s", file, sel.Sel.Name)
				}
			}
			return true
		})
	}
	if checked == 0 {
		t.Error("runner/engine has no files")
	}
}

// pureTime lists the identifiers of package time that are only values.
var pureTime = []string{"Duration", "Time", "Nanosecond", "Microsecond", "Millisecond", "Second", "Minute", "Hour"}

// The interfaces that the runner requires are small: nine interfaces of at most six methods each, except
// nine for the workspace and seven for the landing.
func TestSeamsOfTheRunner(t *testing.T) {
	var names []string
	for _, file := range goFiles(t) {
		if path.Dir(file) != "runner" || strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if i, ok := spec.Type.(*ast.InterfaceType); ok {
				names = append(names, spec.Name.Name)
				limit := 6
				switch spec.Name.Name {
				case "workspace":
					limit = 9
				case "landing":
					limit = 7
				}
				if n := i.Methods.NumFields(); n > limit {
					t.Errorf("%s has %d methods", spec.Name.Name, n)
				}
			}
			return true
		})
	}
	slices.Sort(names)
	if want := "agents claims commands journal landing reviewers tracker tripwire workspace"; strings.Join(names, " ") != want {
		t.Errorf("the interfaces are %s", names)
	}
}

// Package variables must not compile regular expressions, because every process of coven pays for it and a
// task starts many.
func TestStartCompilesNothing(t *testing.T) {
	for _, file := range goFiles(t) {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "examples/") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range f.Decls {
			if variables, ok := decl.(*ast.GenDecl); ok && variables.Tok == token.VAR && calls(variables, "regexp", "MustCompile") {
				t.Errorf("%s compiles a regular expression when coven starts: use lazyregexp.New", file)
			}
		}
	}
}

// By default, renameio searches for a directory for temporary files with each file that it writes: it
// writes a file to the system's temporary directory and moves it.
func TestFilesAreReplacedBesideThem(t *testing.T) {
	for _, file := range goFiles(t) {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "examples/") || file == "internal/file/regularfile/replace.go" {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if calls(f, "renameio", "WriteFile") {
			t.Errorf("%s calls renameio.WriteFile: use regularfile.Replace", file)
		}
		if calls(f, "renameio", "NewPendingFile") && !calls(f, "renameio", "WithTempDir") {
			t.Errorf("%s calls renameio.NewPendingFile without WithTempDir", file)
		}
	}
}

// calls reports whether code below n calls a function of a package. It does not look into nested function
// literals.
func calls(n ast.Node, pkg, name string) bool {
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			x, ok := sel.X.(*ast.Ident)
			found = found || ok && x.Name == pkg && sel.Sel.Name == name
		}
		_, function := n.(*ast.FuncLit)
		return !function
	})
	return found
}

func TestPackageComments(t *testing.T) {
	comments := map[string]int{}
	for _, file := range goFiles(t) {
		if strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, ".pb.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		if f.Doc != nil {
			comments[path.Dir(file)]++
		} else {
			comments[path.Dir(file)] += 0
		}
	}
	for dir, n := range comments {
		if n != 1 {
			t.Errorf("%s has %d package comments, want one", dir, n)
		}
	}
}

func TestNames(t *testing.T) {
	for _, file := range goFiles(t) {
		for element := range strings.SplitSeq(strings.TrimSuffix(file, ".go"), "/") {
			if slices.Contains(vague, strings.TrimSuffix(element, "_test")) {
				t.Errorf("%s: %q says nothing of what is inside", file, element)
			}
		}
	}
}

// packages returns the packages of this module with the imports of each file, without tests and generated
// code.
func packages(t *testing.T) map[string]map[string][]string {
	t.Helper()
	all := map[string]map[string][]string{}
	for _, file := range goFiles(t) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		dir := path.Dir(file)
		if all[dir] == nil {
			all[dir] = map[string][]string{}
		}
		used := []string{}
		for _, spec := range f.Imports {
			used = append(used, strings.Trim(spec.Path.Value, `"`))
		}
		all[dir][file] = used
	}
	return all
}

// goFiles returns the Go files of the module, with slashes, below its root.
func goFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "bin"):
			return filepath.SkipDir
		case strings.HasSuffix(file, ".go") && strings.Contains(file, "/"):
			files = append(files, filepath.ToSlash(file))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("no Go files found")
	}
	return files
}

// Reasons for reading a file or a stream without a limit.
const (
	ofCoven   = "coven writes it where agents cannot write"
	ofKernel  = "the kernel provides it"
	ofUser    = "the user names it in the command"
	directory = "it opens a directory"
	measured  = "its size has been checked, or it is read in parts"
)

// unbounded lists the files that may call os.ReadFile, os.Open, or io.ReadAll without a limit. All others use
// packages regularfile and worktree/internal/file, or an io.LimitReader: an agent may replace a file by
// one that is larger than memory, or by a pipe.
var unbounded = map[string]string{
	"internal/agent/evaluator/restrict_linux.go": ofKernel,
	"internal/cli/grimoire/validate.go":          ofUser,
	"internal/cli/plugin/test.go":                ofUser,
	"internal/config/set.go":                     directory,
	"internal/file/regularfile/sync.go":          directory,
	"internal/mcp/stopped_linux.go":              ofKernel,
	"internal/process/contains_linux.go":         ofKernel,
	"internal/process/processtable_linux.go":     ofKernel,
	"internal/process/seal_linux.go":             directory,
	"internal/process/shim.go":                   ofKernel,
	"internal/process/sockets/sockets_linux.go":  ofKernel,
	"internal/process/tree_linux.go":             ofKernel,
	"internal/project/claims.go":                 ofKernel,
	"internal/sandbox/forwarder/lock.go":         directory,
	"internal/sandbox/forwarder/save.go":         directory,
	"internal/search/refresh.go":                 directory,
	"internal/search/search.go":                  directory,
	"internal/session/index.go":                  directory,
	"internal/session/journal.go":                directory,
	"internal/session/summary.go":                directory,
	"internal/task/lock.go":                      directory,
	"plugins/builtin/command/left.go":            ofKernel,
	"plugins/builtin/github/token.go":            measured,
	"plugins/builtin/scripted/scripted.go":       measured,
	"worktree/checkout/lock.go":                  ofCoven,
	"worktree/checkout/merge.go":                 ofCoven,
	"worktree/checkout/record.go":                ofCoven,
	"worktree/internal/content/index.go":         ofCoven,
	"worktree/internal/file/stat.go":             measured,
	"worktree/internal/git/diff.go":              measured,
	"worktree/internal/git/pipe_linux.go":        ofKernel,
	"worktree/internal/lock/holder.go":           ofCoven,
	"worktree/internal/repo/worktree.go":         directory,
	"worktree/internal/sparse/sparse.go":         ofCoven,
	"worktree/internal/suspect/suspect.go":       measured,
	"worktree/isolation/isolate.go":              ofCoven,
	"worktree/isolation/privaterefs.go":          ofCoven,
	"worktree/pool/tidy.go":                      directory,
	"worktree/rescue/stagedwork.go":              measured,
	"worktree/stale.go":                          directory,
}

func TestReadsAreBounded(t *testing.T) {
	tools := []string{"distributed/chaos", "distributed/server/servertest", "examples/...", "internal/fake/...", "internal/manual/...", "internal/testrun", "plugins/plugintest"}
	unused := maps.Clone(unbounded)
	for _, file := range goFiles(t) {
		if strings.HasSuffix(file, "_test.go") || within(tools, path.Dir(file)) {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		switch reads := readsAll(f); {
		case reads != "" && unbounded[file] == "":
			t.Errorf("%s calls %s: read at most N bytes of a regular file, see package regularfile", file, reads)
		case reads != "":
			delete(unused, file)
		}
	}
	for file := range unused {
		t.Errorf("%s reads nothing without a limit", file)
	}
}

// readsAll returns a function that the code below n calls to read without a limit, or "".
func readsAll(n ast.Node) (function string) {
	ast.Inspect(n, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		switch name := callee(call); name {
		case "os.ReadFile", "os.Open":
			function = name
		case "io.ReadAll":
			if from, ok := call.Args[0].(*ast.CallExpr); !ok || !slices.Contains([]string{"io.LimitReader", "io.NewSectionReader", "http.MaxBytesReader"}, callee(from)) {
				function = name
			}
		}
		return true
	})
	return function
}

// callee returns the function of another package that a call calls, such as "os.Open".
func callee(call *ast.CallExpr) string {
	if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
		if pkg, ok := sel.X.(*ast.Ident); ok {
			return pkg.Name + "." + sel.Sel.Name
		}
	}
	return ""
}
