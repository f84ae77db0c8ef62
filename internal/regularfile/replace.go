package regularfile

import (
	"io/fs"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// Replace replaces a file as a whole, and waits until its content is on disk: whoever reads it, also
// after a crash, finds the old content or the new one. The new file is written beside the old one, so
// nothing is left in a directory for temporary files.
func Replace(file string, content []byte, mode fs.FileMode, options ...renameio.Option) error {
	return renameio.WriteFile(file, content, mode, append(options, renameio.WithTempDir(filepath.Dir(file)))...)
}
