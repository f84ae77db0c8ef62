package repo

import "path/filepath"

// Supplier returns the repository whose main checkout has the ignored files and the submodules for worktrees.
func (r *Repo) Supplier() *Repo {
	if r != nil && r.Origin != nil {
		return r.Origin
	}
	return r
}

// Borrowed returns the paths in the git directory of Origin that this repository uses.
func (r *Repo) Borrowed() []string {
	if r.Origin == nil {
		return nil
	}
	var paths []string
	for _, name := range []string{"objects", "hooks", "modules", "lfs"} {
		paths = append(paths, filepath.Join(r.Origin.GitDir, name))
	}
	return paths
}

// OriginCheckout returns the main checkout of Origin. It is empty if there is none.
func (r *Repo) OriginCheckout() string {
	if r.Origin == nil || r.Origin.Bare {
		return ""
	}
	return r.Origin.Root
}
