package detect

import (
	"os"
	"path/filepath"

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
