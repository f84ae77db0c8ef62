package project

import (
	"path/filepath"
)

// Near returns the path of a file relative to the root, if it is below the root.
func (p *Project) Near(file string) string {
	if rel, err := filepath.Rel(p.Repo.Root, file); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return file
}
