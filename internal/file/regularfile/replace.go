package regularfile

import (
	"io/fs"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// Replace replaces a file atomically and waits until its content is on disk. Every reader, also
// after a crash, sees either the old or the new content. The new file is written to the same directory, so
// that nothing is left behind in a directory for temporary files.
func Replace(file string, content []byte, mode fs.FileMode, options ...renameio.Option) error {
	return renameio.WriteFile(file, content, mode, append(options, renameio.WithTempDir(filepath.Dir(file)))...)
}
