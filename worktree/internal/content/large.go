package content

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/coven-run/coven/internal/text/shellword"
)

const (
	// MaxStored limits the total size of the large files of a worktree that are stored at once, in bytes.
	MaxStored = 4 << 30
	// minLarge is the size from which a file counts, in bytes.
	minLarge = 64 << 20
)

// A LargeError means that the large files of a worktree exceed MaxStored. Nothing was stored.
type LargeError struct {
	Path  string // of the largest file
	Bytes int64  // of all
}

func (e *LargeError) Error() string {
	return fmt.Sprintf("large files of %d GB, more than coven stores; the largest is %s: remove it, or add it to .gitignore", e.Bytes>>30, shellword.Word(e.Path))
}

// CheckLarge returns a *LargeError if the files, by their paths in error messages, are too large to store.
func CheckLarge(files map[string]string) error {
	var found LargeError
	most := int64(0)
	for path, name := range files {
		info, err := os.Lstat(name)
		if err != nil || !info.Mode().IsRegular() || info.Size() < minLarge {
			continue
		}
		if found.Bytes += info.Size(); info.Size() > most {
			found.Path, most = path, info.Size()
		}
	}
	if found.Bytes > MaxStored {
		return &found
	}
	return nil
}

// checkLarge is CheckLarge for paths in the worktree, and returns the sizes of the large files. It ignores files that
// the main checkout has, too. With SkipLarge, it returns the paths without the large files.
func (ix *Index) checkLarge(paths []string) (left []string, sizes map[string]int64, err error) {
	files, sizes := map[string]string{}, map[string]int64{}
	for _, p := range paths {
		name := filepath.Join(ix.Worktree.Path, p)
		if info, err := os.Lstat(name); err == nil && info.Size() >= minLarge {
			sizes[p] = info.Size()
			if !ix.mainHas(p, info.Size()) {
				files[p] = name
			}
		}
	}
	err = CheckLarge(files)
	if err != nil && ix.SkipLarge {
		return without(paths, slices.Collect(maps.Keys(files))), sizes, nil
	}
	return paths, sizes, err
}

// mainHas reports whether the main checkout has a file with this path and size.
func (ix *Index) mainHas(path string, size int64) bool {
	info, err := os.Lstat(filepath.Join(ix.Worktree.Repo.Root, path))
	return err == nil && info.Size() == size
}
