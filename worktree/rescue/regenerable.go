package rescue

import (
	"path"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// cacheTag begins the file CACHEDIR.TAG, which programs put into a directory that they can make again.
const cacheTag = "Signature: 8a477f597d28d172789f06886806bc55"

// maxCacheTag limits the size of a CACHEDIR.TAG that is read, in bytes.
const maxCacheTag = 4 << 10

// regenerable recognizes ignored files that hold no work: compiled Python, the state of TypeScript's builds, and the files of
// caches that have a CACHEDIR.TAG, such as those of pytest, mypy and Cargo.
type regenerable struct {
	w    *repo.Worktree
	tags map[string]bool // by directory
}

func (r *regenerable) has(name string) bool {
	dir := path.Dir(name)
	return path.Base(dir) == "__pycache__" && strings.HasSuffix(name, ".pyc") || strings.HasSuffix(name, ".tsbuildinfo") || r.tagged(dir)
}

// tagged reports whether a directory, or one that contains it, has a CACHEDIR.TAG.
func (r *regenerable) tagged(dir string) bool {
	if dir == "." {
		return false
	}
	known, ok := r.tags[dir]
	if !ok {
		text, _ := file.Read(filepath.Join(r.w.Path, dir, "CACHEDIR.TAG"), maxCacheTag) // an unreadable file is no tag
		known = strings.HasPrefix(string(text), cacheTag) || r.tagged(path.Dir(dir))
		r.tags[dir] = known
	}
	return known
}
