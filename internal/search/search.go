// Package search finds text in the files of a repository: by a glob, by a regular
// expression, or ranked by how well a file answers a query.
//
// Rules:
//   - The caller gives the list of files (see List), because only package worktree runs git.
//     Links are not followed; pipes and files outside of the root are never opened.
//   - Only Query uses the index. The index is a cache: it may be deleted at any time, and a
//     damaged one is replaced. If it cannot be written, the index is in memory.
//   - Each query first compares the index with the files and reads those that have changed,
//     so that an answer is never older than its question.
//   - One process at a time uses an index on disk. The kernel releases the lock of a killed
//     one. Its index is that of the last update, and the next query reads the other files again.
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
	"github.com/coven-run/coven/internal/regularfile"
)

// maxFile limits the size of the files whose text is searched, in bytes.
const maxFile = 1 << 20

// A Listing names the files that are searched, and what the list depends on.
type Listing struct {
	Files   []string // relative to the root, with slashes
	Ignored []string // directories that have none of the files, whatever changes in them
	Depends []string // absolute paths of other files that decide which ones are listed
}

// List lists the files below a root.
type List func(context.Context) (Listing, error)

// Options are what an index is made of.
type Options struct {
	Root string // the directory of the files
	List List
	// Optional means that the root may be missing. Then there are no files.
	Optional bool
	// Cache is the directory for the indexes of all roots. Empty: the index is in memory.
	Cache string
	Now   func() time.Time
	// Similarities returns how similar texts are to a query in their meaning, higher is more: Query ranks by them, too. It
	// is called once for a query, with the best passages of at most maxCompared files. nil: only words count.
	Similarities func(ctx context.Context, query string, texts []string) ([]float64, error)
}

// An Index searches the files below one root. It is safe for concurrent use.
type Index struct {
	Options
	mu     sync.Mutex
	memory *store // it is nil until it is needed
}

// New returns an index. It touches no file before the first question.
func New(o Options) *Index { return &Index{Options: o} }

// Files returns the files whose path matches a glob, sorted; an empty one matches all. A
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

// missing reports whether there is no root, and need not be one.
func (x *Index) missing() bool {
	if !x.Optional {
		return false
	}
	_, err := os.Lstat(x.Root)
	return errors.Is(err, fs.ErrNotExist)
}

func matcher(glob string) (func(string) bool, error) {
	switch {
	case glob == "":
		return func(string) bool { return true }, nil
	case !doublestar.ValidatePattern(glob):
		return nil, exit.Usagef("coven ground files '**/*.go'", "invalid glob %q", glob)
	case alternatives(glob) > maxAlternatives:
		return nil, exit.Usagef("coven ground files '*.{go,md}'", "the glob has more than %d combinations of the alternatives in its braces", maxAlternatives)
	}
	pattern := anywhere(glob)
	return func(path string) bool {
		ok, err := doublestar.Match(pattern, path)
		return err == nil && ok
	}, nil
}

// readText returns the text of a file in a root; ok is false for one that is binary, too
// large, not a regular file, or gone.
func readText(root *os.Root, path string) (text []byte, ok bool) {
	file, err := regularfile.OpenAt(root, path)
	if err != nil {
		return nil, false
	}
	defer file.Close() //nolint:errcheck // read only
	text, err = io.ReadAll(io.LimitReader(file, maxFile+1))
	return text, err == nil && len(text) <= maxFile && !isBinary(text)
}
