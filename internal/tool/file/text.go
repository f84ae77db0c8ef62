package file

import (
	"bytes"
)

// ReadText returns lines of a text file below root as they are: from the given line, at most
// limit; 0: from the first, all.
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

// WriteText replaces the content of a file below root, or creates it.
func WriteText(root, path, content string) error {
	_, err := dir(root).write(writing{Path: path, Content: content})
	return err
}
