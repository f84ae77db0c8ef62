package baseline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/permission"
)

// Limits of read_note: the size of the file and of an answer in bytes, and of an answer in lines.
const (
	maxFile   = 10 << 20
	maxAnswer = 64 << 10
	maxLines  = 2000
)

type readInput struct {
	Path   string `json:"path"`
	Offset int    `json:"offset"`
	Limit  int    `json:"limit"`
}

func (o Options) readNote(_ context.Context, in readInput) (string, error) {
	switch {
	case in.Path == "":
		return "", errors.New("path is empty")
	case in.Offset < 0 || in.Limit < 0:
		return "", errors.New("offset and limit must be at least 1")
	}
	text, err := o.read(in.Path)
	if err != nil {
		return "", err
	}
	if bytes.IndexByte(text, 0) >= 0 {
		return "", fmt.Errorf("%s is not a text file", in.Path)
	}
	return excerpt(string(text), max(in.Offset, 1), in.Limit)
}

// read returns the content of a file below the root. Neither the given name nor the name after
// resolving links may be refused by a rule.
func (o Options) read(name string) ([]byte, error) {
	root, err := filepath.EvalSymlinks(o.Files.Root)
	if err != nil {
		return nil, err
	}
	given := filepath.FromSlash(name)
	if filepath.IsAbs(given) {
		if given, err = below(o.Files.Root, given); err != nil {
			return nil, err
		}
	}
	if !filepath.IsLocal(given) {
		return nil, outsideError(name)
	}
	if err := o.Check(permission.FileRead, filepath.Join(o.Files.Root, given)); err != nil {
		return nil, err
	}
	resolved, err := filepath.EvalSymlinks(filepath.Join(root, given))
	if err != nil {
		return nil, readError(name, err)
	}
	actual, err := below(root, resolved)
	if err != nil {
		return nil, outsideError(name)
	}
	if slices.Contains(strings.Split(strings.ToLower(filepath.ToSlash(actual)), "/"), ".git") {
		return nil, fmt.Errorf("%s belongs to git", name)
	}
	if err := o.Check(permission.FileRead, filepath.Join(o.Files.Root, actual)); err != nil {
		return nil, err
	}
	text, err := readReal(root, actual)
	return text, readError(name, err)
}

// readReal reads a file whose path has no links. It fails if the path contains a link by then.
func readReal(root, name string) ([]byte, error) {
	file, err := regularfile.OpenIn(root, name)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // read only
	opened, err := file.Stat()
	if err != nil {
		return nil, err
	}
	again, err := filepath.EvalSymlinks(filepath.Join(root, name))
	if err != nil {
		return nil, err
	}
	there, err := os.Lstat(again)
	if err != nil {
		return nil, err
	}
	if again != filepath.Join(root, name) || !os.SameFile(opened, there) {
		return nil, errors.New("the file was replaced while it was read")
	}
	if opened.Size() > maxFile {
		return nil, &regularfile.SizeError{Max: maxFile}
	}
	return io.ReadAll(io.LimitReader(file, maxFile))
}

func below(root, name string) (string, error) {
	rel, err := filepath.Rel(root, name)
	if err != nil || !filepath.IsLocal(rel) {
		return "", outsideError(name)
	}
	return rel, nil
}

func outsideError(name string) error { return fmt.Errorf("%s is outside of the worktree", name) }

// readError wraps an error with the file name that the agent used.
func readError(name string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no file %s", name)
	}
	return fmt.Errorf("%s cannot be read: %w", name, regularfile.Cause(err))
}

// excerpt returns lines of a text. If lines follow, the last line says how to continue.
func excerpt(text string, offset, limit int) (string, error) {
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	total := len(lines)
	if offset > max(total, 1) {
		return "", fmt.Errorf("the file has %d lines: offset %d is behind its end", total, offset)
	}
	if limit == 0 || limit > maxLines {
		limit = maxLines
	}
	var out strings.Builder
	last := offset - 1
	for _, line := range lines[min(offset-1, total):min(offset-1+limit, total)] {
		if out.Len()+len(line) > maxAnswer {
			break
		}
		out.WriteString(line)
		last++
	}
	switch {
	case last < offset && total > 0:
		return "", fmt.Errorf("line %d is longer than %d bytes", offset, maxAnswer)
	case last < total:
		fmt.Fprintf(&out, "[lines %d to %d of %d: continue with offset %d]\n", offset, last, total, last+1)
	}
	return out.String(), nil
}
