package file

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Directories lists the directories in a directory, which may be none.
func Directories(path string) []fs.DirEntry {
	if CheckDirectory(path) != nil {
		return nil
	}
	entries, _ := os.ReadDir(path) // what cannot be listed stays
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return !e.IsDir() })
}

// IsGitDir reports whether git refuses to store a path element with this name.
func IsGitDir(element string) bool { return strings.EqualFold(element, ".git") }

// BeyondLink reports whether a directory of a path is a symbolic link, so that the
// path is not in this checkout.
func BeyondLink(top, p string) bool {
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		if info, err := os.Lstat(filepath.Join(top, dir)); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return true
		}
	}
	return false
}
