// Package consent records the decisions of a person about a repository, each as a file in .coven/run, where agents cannot write.
package consent

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/worktree"
)

// dir is the directory of the files, relative to the project.
const dir = ".coven/run"

// maxText limits the size of a file in bytes.
const maxText = 64 << 10

// Read returns the text of a decision. given is false if there is none.
func Read(root, name string) (text string, given bool, err error) {
	content, err := regularfile.ReadIn(root, filepath.Join(dir, name), maxText)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	return string(content), err == nil, err
}

// Record records a decision, or replaces it.
func Record(root, name, text string) error {
	if err := errors.Join(regularfile.Directory(root, dir), worktree.EnsureCovenDir(root)); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
		return err
	}
	return regularfile.Replace(filepath.Join(root, dir, name), []byte(text), 0o600)
}
