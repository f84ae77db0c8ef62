package object

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/ref"
)

// Limits for reading an agent's git directory.
const (
	MaxGitFile    = 4 << 10
	MaxPackedRefs = 16 << 20
)

// IsID reports whether a text is the ID of an object.
func IsID(text string) bool {
	if len(text) != 40 && len(text) != 64 {
		return false
	}
	for i := range len(text) {
		if c := text[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// ReadPackedRefs reads the packed refs of a git directory that an agent controls. It returns the object IDs
// by full ref name.
func ReadPackedRefs(dir string) (map[string]string, error) {
	raw, err := file.Read(filepath.Join(dir, "packed-refs"), MaxPackedRefs)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return ParsePackedRefs(string(raw)), nil
}

// ParsePackedRefs returns the object IDs in a packed-refs file, by full ref name.
func ParsePackedRefs(text string) map[string]string {
	refs := make(map[string]string, strings.Count(text, "\n"))
	for line := range strings.Lines(text) {
		if oid, name, found := strings.Cut(strings.TrimSuffix(line, "\n"), " "); found && IsID(oid) {
			refs[name] = oid
		}
	}
	return refs
}

// ReadRef returns the value of a ref in a git directory that an agent controls, or ref.ErrNoRef. It reads the
// packed refs only if necessary, and only if packed is nil.
func ReadRef(dir, name string, packed map[string]string) (string, error) {
	path := filepath.Join(dir, filepath.FromSlash(name))
	info, err := os.Lstat(path)
	switch {
	case err == nil && !info.IsDir():
		raw, err := file.Read(path, MaxGitFile)
		return strings.TrimSuffix(string(raw), "\n"), err
	case err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR):
		return "", err
	}
	if packed == nil {
		if packed, err = ReadPackedRefs(dir); err != nil {
			return "", err
		}
	}
	if oid, found := packed[name]; found {
		return oid, nil
	}
	return "", fmt.Errorf("%s: %w", name, ref.ErrNoRef)
}
