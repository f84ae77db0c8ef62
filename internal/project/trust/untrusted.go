package trust

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// UntrustedPaths are the directories of a repository: its checkouts and its git directory. Anyone who can
// write to the repository controls the files in these directories, or reached through them.
type UntrustedPaths struct{ dirs []os.FileInfo }

// NewUntrustedPaths returns the paths in the given directories. Directories that do not
// exist are ignored.
func NewUntrustedPaths(dirs ...string) UntrustedPaths {
	var t UntrustedPaths
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err == nil {
			t.dirs = append(t.dirs, info)
		}
	}
	return t
}

// maxLinks is the maximum number of symbolic links in a path, as in the kernel.
const maxLinks = 40

// Contains reports whether a path is inside one of the directories or leads through one: every link on the
// way counts, regardless of its target. Directories are compared by identity, not by name. A path that does
// not exist is treated as if it were created; a path that cannot be resolved counts as inside.
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

// elements returns the elements of a path, including "..".
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
