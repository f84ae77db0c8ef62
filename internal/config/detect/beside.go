package detect

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// Links returns the directories of dependencies at the top of a checkout, for worktree.link.
func Links(root string) (links []string) {
	t := top(root)
	for _, name := range []string{"node_modules", ".venv", "venv"} {
		info, err := os.Lstat(filepath.Join(root, name))
		if err == nil && info.IsDir() && (name == "node_modules" || t.first(name+"/pyvenv.cfg") != "") {
			links = append(links, name)
		}
	}
	return links
}

// maxLink limits the size of a file that names the directories of packages, in bytes.
const maxLink = 1 << 20

// InPlace returns the directories of a checkout in which Python finds packages that a virtual environment installs in
// place. Installers write them to files in site-packages.
func InPlace(root, env string) (dirs []string) {
	if !utf8.ValidString(root) { // it cannot be part of a regular expression
		return nil
	}
	inCheckout := regexp.MustCompile(regexp.QuoteMeta(root) + `(?:/[^\s'"]*)?(?:[\s'"]|$)`)
	links, _ := filepath.Glob(env + "/lib/python*/site-packages/*.pth")              // the pattern is valid
	finders, _ := filepath.Glob(env + "/lib/python*/site-packages/__editable__*.py") // and this one
	for _, link := range append(links, finders...) {
		text, _ := regularfile.Read(link, maxLink) // an unreadable file names no directory
		for _, dir := range inCheckout.FindAllString(string(text), -1) {
			dir = strings.TrimRight(dir, "\n\r\t '\"")
			if path.Ext(link) == ".py" { // it names the packages
				dir = filepath.Dir(dir)
			}
			if dir = filepath.Clean(dir); !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs
}

// manifests lists the files at the top of a checkout in which projects name the projects beside them.
var manifests = []string{"go.mod", "go.work", "package.json", "pnpm-workspace.yaml", "Cargo.toml", "pyproject.toml", "settings.gradle", "settings.gradle.kts", "compose.yaml", "docker-compose.yml"}

var besidePath = lazyregexp.New(`(?m)(?:^|[\s"':=(])(\.\./[\w@+-][\w.@+-]*)`)

// Sibling returns the first directory beside a checkout that a manifest names, as in ../lib, and the manifest.
func Sibling(root string) (dir, manifest string) {
	t := top(root)
	for _, name := range manifests {
		for _, found := range besidePath.FindAllStringSubmatch(t.read(name), -1) {
			if t.isDir(found[1]) {
				return found[1], name
			}
		}
	}
	return "", ""
}

// Submodules reports whether a checkout names submodules.
func Submodules(root string) bool { return top(root).first(".gitmodules") != "" }
