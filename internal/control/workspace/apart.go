package workspace

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coven-run/coven/internal/config/detect"
	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/internal/text/shellword"
)

// belongsElsewhere explains the failure of a command that could not read a file of the main checkout, or returns "". Its
// output names such a file, or a Python module that is installed from there.
func (s *Workspace) belongsElsewhere(dir string, output []byte) string {
	if !utf8.ValidString(s.Repo.Root) { // it cannot be part of a regular expression
		return ""
	}
	found := s.importedElsewhere(output)
	file := cmp.Or(s.namedElsewhere(output), found.file)
	if file == "" {
		return ""
	}
	file = s.inRepository(file)
	if env := s.inRepository(found.env); slices.Contains(s.Link, env) {
		return fmt.Sprintf("%s belongs to the main checkout, where %s finds it: begin the command with PYTHONPATH=%s",
			file, env, shellword.Word(s.inRepository(found.source)))
	}
	for _, place := range []string{dir, s.Worktree.Path} {
		if install := detect.Installers(place); len(install) > 0 {
			return fmt.Sprintf("%s belongs to the main checkout: install the package in the worktree (worktree.setup: [%q])", file, install[0])
		}
	}
	return file + " belongs to the main checkout: use the file in the worktree"
}

// namedElsewhere returns a file of the main checkout that an output names and that is not shared.
func (s *Workspace) namedElsewhere(output []byte) string {
	root := s.Repo.Root
	for _, found := range regexp.MustCompile(regexp.QuoteMeta(root)+`/[^\s'":;,()\[\]]+`).FindAll(output, -1) {
		path := filepath.Clean(strings.TrimRight(string(found), "."))
		if _, err := os.Lstat(path); err == nil && s.Sandbox.KeepsApart(path) {
			return path
		}
	}
	return ""
}

var missingModule = lazyregexp.New(`(?:No module named|cannot import name '\w+' from) '([\w.]+)'`)

// An inPlace is a Python module that is installed in place, from the main checkout.
type inPlace struct {
	file   string // the module
	source string // the directory that Python searches for it
	env    string // the virtual environment in which it is installed
}

// importedElsewhere returns the module of the main checkout that an output reports as missing.
func (s *Workspace) importedElsewhere(output []byte) inPlace {
	match := missingModule.FindSubmatch(output)
	if match == nil {
		return inPlace{}
	}
	module := strings.ReplaceAll(string(match[1]), ".", "/")
	envs := []string{filepath.Join(s.Repo.Root, ".venv"), filepath.Join(s.Repo.Root, "venv")}
	for _, kv := range s.Environ() {
		if name, value, _ := strings.Cut(kv, "="); slices.Contains([]string{"VIRTUAL_ENV", "CONDA_PREFIX"}, name) {
			envs = append(envs, value)
		}
	}
	for _, env := range envs {
		for _, source := range detect.InPlace(s.Repo.Root, env) {
			for _, name := range []string{module + "/__init__.py", module + ".py"} {
				file := filepath.Join(source, name)
				if _, err := os.Lstat(file); err == nil && s.Sandbox.KeepsApart(file) {
					return inPlace{file, source, env}
				}
			}
		}
	}
	return inPlace{}
}

// inRepository returns the path of a file in the main checkout, relative to its top if there is such a path.
func (s *Workspace) inRepository(file string) string {
	if rel, err := filepath.Rel(s.Repo.Root, file); err == nil {
		return rel
	}
	return file
}
