package fakebd

import (
	"os"
	"path/filepath"
	"strings"
)

// findBeads finds the .beads directory: $BEADS_DIR, else the nearest one upward
// within the checkout, else that of the main checkout. It returns "" if there is none.
// In a linked worktree, that of the main checkout comes first, as in bd.
func (r *run) findBeads() string {
	dir := r.dir
	if set := r.flags.value("directory"); set != "" {
		dir = set
	}
	if set := r.env("BEADS_DIR"); set != "" {
		if !filepath.IsAbs(set) {
			set = filepath.Join(dir, set)
		}
		return present(set)
	}
	top := checkout(dir)
	if home := mainCheckout(top); home != "" && home != top {
		if found := present(filepath.Join(home, ".beads")); found != "" {
			return found
		}
	}
	for at := dir; ; at = filepath.Dir(at) {
		if found := present(filepath.Join(at, ".beads")); found != "" {
			return found
		}
		if at == top || at == filepath.Dir(at) {
			return ""
		}
	}
}

func present(dir string) string {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return ""
	}
	return dir
}

// checkout returns the nearest directory upward with a .git, or "".
func checkout(dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			return ""
		}
	}
}

// mainCheckout follows the .git file of a linked worktree to its repository. The
// file contains "gitdir: PATH", and PATH contains a file commondir.
func mainCheckout(top string) string {
	if top == "" {
		return ""
	}
	text, err := os.ReadFile(filepath.Join(top, ".git"))
	if err != nil {
		return top // .git is a directory, so this is the main checkout
	}
	gitdir, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir: ")
	if !ok {
		return top
	}
	if !filepath.IsAbs(gitdir) {
		gitdir = filepath.Join(top, gitdir)
	}
	common, err := os.ReadFile(filepath.Join(gitdir, "commondir"))
	if err != nil {
		return top
	}
	shared := strings.TrimSpace(string(common))
	if !filepath.IsAbs(shared) {
		shared = filepath.Join(gitdir, shared)
	}
	return filepath.Dir(shared)
}
