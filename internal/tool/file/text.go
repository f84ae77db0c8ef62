package file

import (
	"bytes"
)

// ReadText returns up to limit unmodified lines of a text file below root, starting at line. Zero means
// from the first line and without a limit.
func ReadText(root, path string, line, limit int) (string, error) {
	_, data, err := dir(root).load(path)
	if err != nil {
		return "", err
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	lines = lines[min(max(line-1, 0), len(lines)):]
	if limit > 0 {
		lines = lines[:min(limit, len(lines))]
	}
	return string(bytes.Join(lines, nil)), nil
}

// WriteText creates a file below root or replaces its content.
func WriteText(root, path, content string) error {
	_, err := dir(root).write(writing{Path: path, Content: content})
	return err
}
