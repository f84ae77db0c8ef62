package file

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Directories lists the directories in a directory. It returns none if path is not a directory.
func Directories(path string) []fs.DirEntry {
	if CheckDirectory(path) != nil {
		return nil
	}
	entries, _ := os.ReadDir(path) // directories that cannot be listed stay
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return !e.IsDir() })
}

// IsGitDir reports whether git refuses to store a path element with this name.
func IsGitDir(element string) bool { return strings.EqualFold(element, ".git") }

// IsGitDirElsewhere reports whether macOS or Windows takes a path element for .git: HFS+ ignores some characters, NTFS
// ignores dots and spaces at the end and has short names and streams.
func IsGitDirElsewhere(element string) bool {
	element = strings.Map(func(c rune) rune {
		if 0x200c <= c && c <= 0x200f || 0x202a <= c && c <= 0x202e || 0x206a <= c && c <= 0x206f || c == 0xfeff {
			return -1
		}
		return c
	}, element)
	element, _, _ = strings.Cut(element, ":")
	element = strings.TrimRight(element, ". ")
	return IsGitDir(element) || strings.EqualFold(element, "git~1")
}

// BeyondLink reports whether a parent directory of p is a symbolic link, so that p is not in the checkout.
func BeyondLink(top, p string) bool {
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		if info, err := os.Lstat(filepath.Join(top, dir)); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return true
		}
	}
	return false
}
