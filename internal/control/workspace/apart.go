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
	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// belongsElsewhere explains the failure of a command that could not read a file of the main checkout, or returns "". Its
// output names such a file, or a Python module that is installed from there.
func (s *Workspace) belongsElsewhere(dir string, output []byte) string {
	if !utf8.ValidString(s.Repo.Root) { // it cannot be part of a regular expression
		return ""
	}
	file := cmp.Or(s.namedElsewhere(output), s.importedElsewhere(output))
	if file == "" {
		return ""
	}
	if rel, err := filepath.Rel(s.Repo.Root, file); err == nil {
		file = rel
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

// importedElsewhere returns the file of the main checkout from which a Python module would be imported that an output
// reports as missing: installers write the directories of packages that are installed in place to files in site-packages.
func (s *Workspace) importedElsewhere(output []byte) string {
	match := missingModule.FindSubmatch(output)
	if match == nil {
		return ""
	}
	module := strings.ReplaceAll(string(match[1]), ".", "/")
	envs := []string{filepath.Join(s.Repo.Root, ".venv"), filepath.Join(s.Repo.Root, "venv")}
	for _, kv := range s.Environ() {
		if name, value, _ := strings.Cut(kv, "="); slices.Contains([]string{"VIRTUAL_ENV", "CONDA_PREFIX"}, name) {
			envs = append(envs, value)
		}
	}
	for _, env := range envs {
		links, _ := filepath.Glob(env + "/lib/python*/site-packages/*.pth")
		finders, _ := filepath.Glob(env + "/lib/python*/site-packages/__editable__*.py")
		for _, link := range append(links, finders...) {
			if file := s.moduleIn(link, module); file != "" {
				return file
			}
		}
	}
	return ""
}

// maxLink limits the size of a file that names the directories of packages, in bytes.
const maxLink = 1 << 20

// moduleIn returns the file of a module in one of the directories of the main checkout that a file in site-packages
// names.
func (s *Workspace) moduleIn(link, module string) string {
	text, err := regularfile.Read(link, maxLink)
	if err != nil {
		return ""
	}
	for _, dir := range regexp.MustCompile(regexp.QuoteMeta(s.Repo.Root)+`[^\s'"]*`).FindAllString(string(text), -1) {
		for _, name := range []string{module + "/__init__.py", module + ".py"} {
			for _, path := range []string{filepath.Join(dir, name), filepath.Join(filepath.Dir(dir), name)} {
				if _, err := os.Lstat(path); err == nil && s.Sandbox.KeepsApart(path) {
					return path
				}
			}
		}
	}
	return ""
}
