// Package detect recognizes the tools of a repository by the files at its top: the commands that test it, the command
// that installs its dependencies, and the directories that worktrees need besides the tracked files.
package detect

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// Checks detects how a repository is tested. checks are commands in the order in which they run; found describes
// their sources: "npm test (package.json)". A Makefile with a target test replaces all others. Unreadable files
// count as missing.
func Checks(root string) (checks, found []string) {
	t := top(root)
	for _, tests := range []func(top) (command, file string){top.make, top.node, top.golang, top.cargo, top.jvm, top.python, top.ruby} {
		command, file := tests(t)
		if command == "" {
			continue
		}
		checks, found = append(checks, command), append(found, command+" ("+file+")")
		if command == "make test" {
			break
		}
	}
	return checks, found
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

var testTarget = lazyregexp.New(`(?m)^(?:[^\s:#=][^:#=\n]*[ \t])?test(?:[ \t][^:#=\n]*)?[ \t]*::?(?:[^:=]|$)`)

func (t top) make() (command, file string) {
	file = t.first("GNUmakefile", "makefile", "Makefile") // make reads the first one only
	if testTarget.MatchString(strings.ReplaceAll(t.read(file), "\r\n", "\n")) {
		return "make test", file
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

func (t top) python() (command, file string) {
	for _, known := range pytestFiles {
		if t.first(known.name) != "" && known.section.MatchString(t.read(known.name)) {
			return t.pythonRunner() + "python -m pytest", known.name
		}
	}
	if t.first("manage.py") != "" {
		return t.pythonRunner() + "python manage.py test", "manage.py"
	}
	return "", ""
}

// pythonRunner returns the command of the tool that keeps the project's environment, with a space, or "".
func (t top) pythonRunner() string {
	switch t.first("uv.lock", "poetry.lock", "Pipfile") {
	case "uv.lock":
		return "uv run "
	case "poetry.lock":
		return "poetry run "
	case "Pipfile":
		return "pipenv run "
	}
	return ""
}

func (t top) ruby() (command, file string) {
	switch {
	case t.first(".rspec") != "":
		return "bundle exec rspec", ".rspec"
	case t.first("bin/rails") != "" && t.isDir("test"):
		return "bin/rails test", "bin/rails"
	}
	return "", ""
}
