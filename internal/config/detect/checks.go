// Package detect recognizes the tools of a repository by the files at its top: the commands that test it, the command
// that installs its dependencies, and the directories that worktrees need besides the tracked files.
package detect

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/internal/text/shellword"
)

// Checks detects how a repository is tested. checks are commands in the order in which they run; found describes
// their sources: "npm test (package.json)". A Makefile or justfile with a target test replaces all others. If there is nothing
// at the top, the projects in directories there are tested. Unreadable files count as missing.
func Checks(root string) (checks, found []string) {
	if checks, found = checksIn(root); len(checks) > 0 {
		return checks, found
	}
	for _, dir := range projectDirs(root) {
		below, _ := checksIn(filepath.Join(root, dir))
		for _, command := range below {
			command = "cd " + shellword.Word(dir) + " && " + command
			checks, found = append(checks, command), append(found, command+" ("+dir+"/)")
		}
	}
	return checks, found
}

// checksIn detects how the project in a directory is tested.
func checksIn(dir string) (checks, found []string) {
	t := top(dir)
	if command, file := t.target("test"); command != "" {
		return []string{command}, []string{command + " (" + file + ")"}
	}
	for _, tests := range []func(top) (command, file string){top.check, top.node, top.golang, top.cargo, top.jvm, top.python, top.ruby, top.known} {
		if command, file := tests(t); command != "" {
			checks, found = append(checks, command), append(found, command+" ("+file+")")
		}
	}
	return checks, found
}

// maxProjects limits the directories whose projects are tested.
const maxProjects = 6

// notProjects lists directories that contain projects of others, or projects that are no part of this one.
var notProjects = []string{"node_modules", "vendor", "third_party", "testdata", "examples", "example", "docs", "fixtures", "target", "build", "dist"}

// projectDirs returns the directories at the top of a checkout that may contain projects.
func projectDirs(root string) (dirs []string) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && !slices.Contains(notProjects, e.Name()) && len(dirs) < maxProjects {
			if checks, _ := checksIn(filepath.Join(root, e.Name())); len(checks) > 0 {
				dirs = append(dirs, e.Name())
			}
		}
	}
	return dirs
}

// Program returns the program that a check starts with, if it is one that Checks knows, or "".
func Program(check string) string {
	word, _, _ := strings.Cut(check, " ")
	switch word {
	case "make", "npm", "pnpm", "yarn", "bun", "go", "cargo", "gradle", "mvn", "uv", "poetry", "pipenv", "python", "bundle",
		"just", "cmake", "meson", "dotnet", "mix", "deno", "composer", "swift", "zig", "sbt", "stack", "cabal", "bazel":
		return word
	}
	return ""
}

// Missing returns the first check whose program is not installed, and this program, or "" if there is none.
func Missing(checks []string) (program, check string) {
	for _, check := range checks {
		program := Program(check)
		if _, err := exec.LookPath(program); program != "" && err != nil {
			return program, check
		}
	}
	return "", ""
}

// top is the directory at the top of a checkout.
type top string

// maxFile limits the size of the files that are read, in bytes.
const maxFile = 1 << 20

// read returns the text of a file, or "" if there is none.
func (t top) read(name string) string {
	f, err := regularfile.OpenIn(string(t), name)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return ""
	}
	return string(data)
}

// first returns the first of the names that is a regular file, or "".
func (t top) first(names ...string) string {
	for _, name := range names {
		if f, err := regularfile.OpenIn(string(t), name); err == nil {
			_ = f.Close()
			return name
		}
	}
	return ""
}

func (t top) isDir(name string) bool {
	info, err := os.Stat(filepath.Join(string(t), name))
	return err == nil && info.IsDir()
}

// target returns the command that makes a target of a Makefile, or runs a recipe of a justfile.
func (t top) target(name string) (command, file string) {
	rule := regexp.MustCompile(`(?m)^(?:[^\s:#=][^:#=\n]*[ \t])?` + name + `(?:[ \t][^:#=\n]*)?[ \t]*::?(?:[^:=]|$)`)
	file = t.first("GNUmakefile", "makefile", "Makefile") // make reads the first one only
	if rule.MatchString(strings.ReplaceAll(t.read(file), "\r\n", "\n")) {
		return "make " + name, file
	}
	file = t.first("justfile", ".justfile", "Justfile")
	if recipe := regexp.MustCompile(`(?m)^@?` + name + `(?:[ \t][^:=\n]*)?:(?:[^=]|$)`); recipe.MatchString(t.read(file)) {
		return "just " + name, file
	}
	return "", ""
}

// check returns the command that makes the target check, of a Makefile or of the GNU build system.
func (t top) check() (command, file string) {
	if command, file := t.target("check"); command != "" {
		return command, file
	}
	if file := t.first("Makefile.am"); file != "" && t.first("configure") != "" {
		return "./configure && make check", file
	} else if file != "" {
		return "autoreconf --install && ./configure && make check", file
	}
	return "", ""
}

// node returns the test script of package.json, unless it is the default of npm init.
func (t top) node() (command, file string) {
	var pkg struct {
		Scripts struct {
			Test string `json:"test"`
		} `json:"scripts"`
	}
	if json.Unmarshal([]byte(t.read("package.json")), &pkg) != nil {
		return "", ""
	}
	test := strings.TrimSpace(pkg.Scripts.Test)
	if test == "" || strings.Contains(test, "no test specified") {
		return "", ""
	}
	if manager := t.packageManager(); manager != "bun" {
		return manager + " test", "package.json"
	}
	return "bun run test", "package.json" // bun test is the test runner of bun
}

func (t top) golang() (command, file string) {
	if t.first("go.mod") == "" {
		return "", ""
	}
	return "go test ./...", "go.mod"
}

var cargoWorkspace = lazyregexp.New(`(?m)^[ \t]*\[workspace\]`)

func (t top) cargo() (command, file string) {
	switch text := t.read("Cargo.toml"); {
	case t.first("Cargo.toml") == "":
		return "", ""
	case cargoWorkspace.MatchString(text):
		return "cargo test --workspace", "Cargo.toml" // cargo test may leave out members
	default:
		return "cargo test", "Cargo.toml"
	}
}

// jvm returns the check of Gradle or Maven. A repository with both is tested by Gradle.
func (t top) jvm() (command, file string) {
	if file := t.first("build.gradle.kts", "build.gradle", "settings.gradle.kts", "settings.gradle"); file != "" {
		return t.wrapped("gradlew", "gradle") + " check", file
	}
	if t.first("pom.xml") != "" {
		return t.wrapped("mvnw", "mvn") + " verify", "pom.xml"
	}
	return "", ""
}

// wrapped returns the wrapper of a program in the repository, or the program.
func (t top) wrapped(wrapper, program string) string {
	if t.first(wrapper) != "" {
		return "./" + wrapper
	}
	return program
}

// pytestFiles lists the files in which pytest is configured, each with the section.
var pytestFiles = []struct {
	name    string
	section *lazyregexp.Regexp
}{
	{"pytest.ini", lazyregexp.New(``)},
	{"pyproject.toml", lazyregexp.New(`(?m)^[ \t]*\[tool\.pytest(?:\.ini_options)?\]`)},
	{"tox.ini", lazyregexp.New(`(?m)^\[pytest\]`)},
	{"setup.cfg", lazyregexp.New(`(?m)^\[tool:pytest\]`)},
	{"conftest.py", lazyregexp.New(``)},
}

// needsPytest matches pytest as a dependency.
var needsPytest = lazyregexp.New(`(?m)(?:^|["'\s\[,])pytest\b`)

func (t top) python() (command, file string) {
	for _, known := range pytestFiles {
		if t.first(known.name) != "" && known.section.MatchString(t.read(known.name)) {
			return t.pythonCommand() + " -m pytest", known.name
		}
	}
	if t.first("manage.py") != "" {
		return t.pythonCommand() + " manage.py test", "manage.py"
	}
	for _, name := range []string{"pyproject.toml", "setup.py", "setup.cfg", "requirements-dev.txt", "requirements-test.txt", "dev-requirements.txt", "test-requirements.txt", "requirements.txt", "Pipfile", "tox.ini"} {
		if needsPytest.MatchString(t.read(name)) {
			return t.pythonCommand() + " -m pytest", name
		}
	}
	return "", ""
}

// pythonCommand returns the command that runs Python in the project's environment: with the tool that keeps it, or from its
// directory.
func (t top) pythonCommand() string {
	switch t.first("uv.lock", "poetry.lock", "Pipfile") {
	case "uv.lock":
		return "uv run python"
	case "poetry.lock":
		return "poetry run python"
	case "Pipfile":
		return "pipenv run python"
	}
	for _, env := range []string{".venv", "venv"} {
		if t.first(env+"/pyvenv.cfg") != "" {
			return env + "/bin/python"
		}
	}
	return "python"
}

// rakeTest matches a task test in a Rakefile.
var rakeTest = lazyregexp.New(`Rake::TestTask|(?m)^[ \t]*task[ \t(]+:?["']?test\b`)

func (t top) ruby() (command, file string) {
	switch {
	case t.first(".rspec") != "":
		return "bundle exec rspec", ".rspec"
	case t.first("bin/rails") != "" && t.isDir("test"):
		return "bin/rails test", "bin/rails"
	case t.first("Gemfile") != "" && rakeTest.MatchString(t.read("Rakefile")):
		return "bundle exec rake test", "Rakefile"
	}
	return "", ""
}

// others lists further build tools: a file, text that it contains, and the command.
var others = []struct {
	file    string // or a pattern such as *.sln
	text    *lazyregexp.Regexp
	command string
}{
	{"CMakeLists.txt", lazyregexp.New(`(?i)enable_testing|include *\( *CTest`), "cmake -S . -B build && cmake --build build && ctest --test-dir build --output-on-failure"},
	{"meson.build", lazyregexp.New(`\btest *\(`), "meson setup build && meson test -C build"},
	{"*.sln", nil, "dotnet test"},
	{"*.csproj", nil, "dotnet test"},
	{"mix.exs", nil, "mix test"},
	{"deno.json", lazyregexp.New(`"test" *:`), "deno task test"},
	{"deno.jsonc", lazyregexp.New(`"test" *:`), "deno task test"},
	{"deno.json", nil, "deno test"},
	{"deno.jsonc", nil, "deno test"},
	{"composer.json", lazyregexp.New(`(?s)"scripts" *:.*"test" *:`), "composer test"},
	{"phpunit.xml", nil, "vendor/bin/phpunit"},
	{"phpunit.xml.dist", nil, "vendor/bin/phpunit"},
	{"Package.swift", nil, "swift test"},
	{"build.zig", nil, "zig build test"},
	{"build.sbt", nil, "sbt test"},
	{"stack.yaml", nil, "stack test"},
	{"*.cabal", nil, "cabal test"},
	{"MODULE.bazel", nil, "bazel test //..."},
	{"WORKSPACE", nil, "bazel test //..."},
}

// known returns the command of the first of the others whose file is there.
func (t top) known() (command, file string) {
	for _, o := range others {
		found, err := filepath.Glob(filepath.Join(string(t), o.file))
		if err != nil || len(found) == 0 {
			continue
		}
		name := filepath.Base(found[0])
		if t.first(name) != "" && (o.text == nil || o.text.MatchString(t.read(name))) {
			return o.command, name
		}
	}
	return "", ""
}
