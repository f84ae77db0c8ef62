// Package search finds text in the files of a repository: by a glob, by a regular
// expression, or ranked by relevance to a query.
//
// Rules:
//   - The caller provides the list of files (see List), because only package worktree runs git.
//     Links are not followed; pipes and files outside of the root are never opened.
//   - Only Query uses the index. The index is a cache: it may be deleted at any time, and a
//     damaged one is replaced. If it cannot be written, it is kept in memory.
//   - Each query first compares the index with the files and reads those that have changed,
//     so that a result is never outdated.
//   - Only one process at a time uses an index on disk. The kernel releases the lock of a killed
//     process. Its index has the state of the last update, and the next query updates it.
package search

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/text/glob"
)

// maxFile limits the size of searched files in bytes.
const maxFile = 1 << 20

// A Listing lists the files to search and the dependencies of the list.
type Listing struct {
	Files   []string // relative to the root, with slashes
	Ignored []string // directories that never contain a listed file
	Depends []string // absolute paths of other files that affect the list
}

// List lists the files below a root.
type List func(context.Context) (Listing, error)

// Options configures an index.
type Options struct {
	Root string // the directory of the files
	List List
	// Optional means that the root may be missing. Then there are no files.
	Optional bool
	// Cache is the directory for the indexes of all roots. If it is empty, the index is in memory.
	Cache string
	Now   func() time.Time
	// Similarities returns the similarity in meaning between each text and a query; higher is more similar. Query
	// uses it for ranking. It is called once per query, with the best passages of at most maxCompared files. May be nil.
	Similarities func(ctx context.Context, query string, texts []string) ([]float64, error)
}

// An Index searches the files below one root. It is safe for concurrent use.
type Index struct {
	Options
	mu     sync.Mutex
	memory *store // nil until it is needed
}

// New returns an index. It accesses no files yet.
func New(o Options) *Index { return &Index{Options: o} }

// Files returns the files whose path matches a glob, sorted. An empty glob matches all files. A
// glob without a slash matches names in all directories.
func (x *Index) Files(ctx context.Context, glob string) ([]string, error) {
	match, err := matcher(glob)
	if err != nil {
		return nil, err
	}
	if x.missing() {
		return nil, nil
	}
	listed, err := x.List(ctx)
	if err != nil {
		return nil, err
	}
	at, err := os.Open(x.Root)
	if err != nil {
		return nil, err
	}
	defer at.Close() //nolint:errcheck // read only
	var found []string
	for i, s := range stampAll(at, listed.Files) {
		if s.regular() && match(listed.Files[i]) {
			found = append(found, listed.Files[i])
		}
	}
	return unique(found), nil
}

// missing reports whether an optional root does not exist.
func (x *Index) missing() bool {
	if !x.Optional {
		return false
	}
	_, err := os.Lstat(x.Root)
	return errors.Is(err, fs.ErrNotExist)
}

func matcher(pattern string) (func(string) bool, error) {
	switch err := glob.Check(pattern); {
	case pattern == "":
		return func(string) bool { return true }, nil
	case errors.Is(err, doublestar.ErrBadPattern):
		return nil, exit.Usagef("coven ground files '**/*.go'", "invalid glob %q", pattern)
	case err != nil:
		return nil, exit.Usagef("coven ground files '*.{go,md}'", "%w", err)
	}
	pattern = anywhere(pattern)
	return func(path string) bool {
		ok, err := doublestar.Match(pattern, path)
		return err == nil && ok
	}, nil
}

// readText returns the text of a file. ok is false if the file is binary, too
// large, not a regular file, or missing.
func readText(root *os.Root, path string) (text []byte, ok bool) {
	file, err := regularfile.OpenAt(root, path)
	if err != nil {
		return nil, false
	}
	defer file.Close() //nolint:errcheck // read only
	text, err = io.ReadAll(io.LimitReader(file, maxFile+1))
	return text, err == nil && len(text) <= maxFile && !isBinary(text)
}
