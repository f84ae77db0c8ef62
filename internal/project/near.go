package project

import (
	"path/filepath"
)

// Near returns a file's path relative to the repository, or file itself if it is outside.
func (p *Project) Near(file string) string {
	if p.Repo == nil {
		return file
	}
	if rel, err := filepath.Rel(p.Repo.Root, file); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return file
}
