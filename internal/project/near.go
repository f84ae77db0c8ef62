package project

import (
	"path/filepath"
)

// Near is a file as a person knows it: below the root, if it is there.
func (p *Project) Near(file string) string {
	if rel, err := filepath.Rel(p.Repo.Root, file); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return file
}
