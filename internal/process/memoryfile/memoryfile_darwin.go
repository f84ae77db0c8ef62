package memoryfile

import (
	"errors"
	"fmt"
	"os"
)

// New creates an unnamed file of any length. macOS has no memory files, so it
// is a temporary file of mode 0600 whose name is removed before anything is written.
func New(name string) (*os.File, error) {
	file, err := os.CreateTemp("", "coven-"+name+"-")
	if err != nil {
		return nil, fmt.Errorf("make memory file: %w", err)
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(fmt.Errorf("make memory file: %w", err), file.Close())
	}
	return file, nil
}
