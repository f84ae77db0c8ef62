package file

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
)

// Recreate creates a file. It first removes anything that the agent may have created at the path.
func Recreate(path, text string) error {
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = io.WriteString(file, text)
	return errors.Join(err, file.Close())
}

// WriteIfChanged writes a file, unless it already has this content. The new content need not survive a power
// failure.
func WriteIfChanged(path, content string) error {
	if have, err := readOwn(path); err == nil && bytes.Equal(have, []byte(content)) {
		return nil
	}
	return WriteNoSync(path, []byte(content))
}

// WriteNoSync replaces a file atomically. The new content need not survive a power failure.
func WriteNoSync(path string, content []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path))
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Chmod(0o644), file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}
