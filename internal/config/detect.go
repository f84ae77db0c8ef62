package config

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// DetectChecks detects how a repository is tested. checks are commands in the order
// in which they run; found describes their sources: "npm test (package.json)". A
// Makefile with a test target replaces all others. Unreadable files count as missing.
func DetectChecks(root string) (checks, found []string) {
	d := detector{root}
	if file, ok := d.makefile(); ok {
		return []string{"make test"}, []string{"make test (" + file + ")"}
	}
	for _, way := range []struct {
		command, file string
		holds         func(file string) bool
	}{
		{"npm test", "package.json", d.npm},
		{"go test ./...", "go.mod", d.exists},
		{"cargo test", "Cargo.toml", d.exists},
		{"python -m pytest", "pyproject.toml", d.pytest},
	} {
		if way.holds(way.file) {
			checks = append(checks, way.command)
			found = append(found, way.command+" ("+way.file+")")
		}
	}
	return checks, found
}

type detector struct{ root string }

// read returns the text of a file of the repository.
func (d detector) read(name string) (string, bool) {
	f, err := regularfile.OpenIn(d.root, name)
	if err != nil {
		return "", false
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxFile))
	return string(data), err == nil
}

func (d detector) exists(name string) bool {
	_, ok := d.read(name)
	return ok
}

var testTarget = lazyregexp.New(`(?m)^(?:[^\s:#=][^:#=\n]*[ \t])?test(?:[ \t][^:#=\n]*)?[ \t]*::?(?:[^:=]|$)`)

// makefile returns the file that make uses, and whether it has a target test.
func (d detector) makefile() (file string, ok bool) {
	for _, file := range []string{"GNUmakefile", "makefile", "Makefile"} {
		if text, ok := d.read(file); ok {
			return file, testTarget.MatchString(strings.ReplaceAll(text, "\r\n", "\n"))
		}
	}
	return "", false
}

// npm reports whether a package.json has a test script other than the default of npm init.
func (d detector) npm(name string) bool {
	text, ok := d.read(name)
	var pkg struct {
		Scripts struct {
			Test string `json:"test"`
		} `json:"scripts"`
	}
	if !ok || json.Unmarshal([]byte(text), &pkg) != nil {
		return false
	}
	test := strings.TrimSpace(pkg.Scripts.Test)
	return test != "" && !strings.Contains(test, "no test specified")
}

var pytestTable = lazyregexp.New(`(?m)^[ \t]*\[tool\.pytest(?:\.ini_options)?\]`)

func (d detector) pytest(name string) bool {
	text, ok := d.read(name)
	return ok && pytestTable.MatchString(text)
}

// DetectLinks returns the directories of dependencies at the top of a checkout, for worktree.link.
func DetectLinks(root string) (links []string) {
	for _, name := range []string{"node_modules", ".venv", "venv"} {
		info, err := os.Lstat(filepath.Join(root, name))
		if err == nil && info.IsDir() && (name == "node_modules" || isFile(filepath.Join(root, name, "pyvenv.cfg"))) {
			links = append(links, name)
		}
	}
	return links
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// manifests lists the files at the top of a checkout in which projects name the projects beside them.
var manifests = []string{"go.mod", "go.work", "package.json", "pnpm-workspace.yaml", "Cargo.toml", "pyproject.toml", "settings.gradle", "settings.gradle.kts", "compose.yaml", "docker-compose.yml"}

var besidePath = lazyregexp.New(`(?m)(?:^|[\s"':=(])(\.\./[\w@+-][\w.@+-]*)`)

// DetectSibling returns the first directory beside a checkout that a manifest names, as in ../lib, and the manifest.
func DetectSibling(root string) (dir, manifest string) {
	d := detector{root}
	for _, name := range manifests {
		text, _ := d.read(name)
		for _, found := range besidePath.FindAllStringSubmatch(text, -1) {
			if info, err := os.Stat(filepath.Join(root, found[1])); err == nil && info.IsDir() {
				return found[1], name
			}
		}
	}
	return "", ""
}
