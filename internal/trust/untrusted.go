package trust

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// UntrustedPaths is the directories of a repository: its checkouts and its git
// directory. Whatever is there, or is reached through there, is the word of those
// who write the repository.
type UntrustedPaths struct{ dirs []os.FileInfo }

// NewUntrustedPaths returns the territory that consists of directories. One that does
// not exist holds nothing.
func NewUntrustedPaths(dirs ...string) UntrustedPaths {
	var t UntrustedPaths
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err == nil {
			t.dirs = append(t.dirs, info)
		}
	}
	return t
}

// maxLinks is how many links a path may lead through, as the kernel has it.
const maxLinks = 40

// Contains reports whether a path is in the territory, or leads through it: each link
// on the way counts, wherever it leads in the end. Directories are compared by
// what they are, not by their names. What does not exist yet is where it would
// be made; what cannot be followed counts as inside.
func (t UntrustedPaths) Contains(path string) bool {
	if !filepath.IsAbs(path) {
		return true
	}
	at, rest, links := "/", elements(path), 0
	if info, err := os.Lstat(at); err != nil || t.is(info) {
		return true
	}
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		next := filepath.Join(at, name)
		info, err := os.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			at = next
			continue
		case err != nil:
			return true
		case info.Mode()&fs.ModeSymlink == 0:
			if at = next; t.is(info) {
				return true
			}
			continue
		}
		target, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks {
			return true
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		rest = append(elements(target), rest...)
	}
	return false
}

// elements are the names of a path, .. among them.
func elements(path string) []string {
	var names []string
	for name := range strings.SplitSeq(path, "/") {
		if name != "" && name != "." {
			names = append(names, name)
		}
	}
	return names
}

func (t UntrustedPaths) is(info os.FileInfo) bool {
	for _, dir := range t.dirs {
		if os.SameFile(dir, info) {
			return true
		}
	}
	return false
}
