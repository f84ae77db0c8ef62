package main

import (
	"path/filepath"
)

// near is a file as a person knows it: below the root, if it is there.
func (h *house) near(file string) string {
	if rel, err := filepath.Rel(h.repo.Root, file); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return file
}
