// Package file provides the tools of coven's own loop that read and change files: read, write and
// edit.
//
// The tools access only regular files below a root; symbolic links cannot escape from it. The gate
// decides about a call before the tool runs.
package file

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/internal/tool"
)

const category = "file"

// Limits of a call.
const (
	maxFile  = 10 << 20  // bytes of a file
	maxLines = 2000      // lines that read returns
	maxText  = 256 << 10 // bytes that read returns
)

// Tools returns the tools for files below root, which must be an absolute path.
func Tools(root string) []tool.Tool {
	d := dir(root)
	return []tool.Tool{
		{
			Kind: tool.Read, Category: category, ReadOnly: true, Call: call(d.read),
			Description: fmt.Sprintf("Read a text file of the worktree. Each line has its number and a tab in front. At most %d lines are returned.", maxLines),
			Schema: json.RawMessage(`{"type":"object","properties":{
"path":{"type":"string","description":"the file, relative to the top of the worktree"},
"startLine":{"type":"integer","minimum":1,"description":"the first line to return; 1 is the first of the file"},
"endLine":{"type":"integer","minimum":1,"description":"the last line to return"}},
"required":["path"],"additionalProperties":false}`),
		},
		{
			Kind: tool.Write, Category: category, Call: call(d.write),
			Description: "Write a file of the worktree. It replaces the whole file, and creates the file and its directories if necessary.",
			Schema: json.RawMessage(`{"type":"object","properties":{
"path":{"type":"string","description":"the file, relative to the top of the worktree"},
"content":{"type":"string","description":"the new content"}},
"required":["path","content"],"additionalProperties":false}`),
		},
		{
			Kind: tool.Edit, Category: category, Call: call(d.edit),
			Description: "Replace a text in a file of the worktree. The text must occur exactly once, so give enough of what is around it; or set replaceAll.",
			Schema: json.RawMessage(`{"type":"object","properties":{
"path":{"type":"string","description":"the file, relative to the top of the worktree"},
"oldText":{"type":"string","minLength":1,"description":"the text to replace, as it is in the file, without line numbers"},
"newText":{"type":"string","description":"what replaces it"},
"replaceAll":{"type":"boolean","description":"replace each occurrence"}},
"required":["path","oldText","newText"],"additionalProperties":false}`),
		},
	}
}

// call returns a function that decodes its arguments.
func call[T any](do func(T) (string, error)) func(context.Context, json.RawMessage) (string, error) {
	return tool.Decoded(func(ctx context.Context, in T) (string, error) {
		tool.Begun(ctx)
		return do(in)
	})
}

// dir is the root directory.
type dir string

type reading struct {
	Path      string `json:"path"`
	StartLine int    `json:"startLine"`
	EndLine   int    `json:"endLine"`
}

func (d dir) read(in reading) (string, error) {
	_, data, err := d.load(in.Path)
	if err != nil {
		return "", err
	}
	if len(data) == 0 {
		return "(the file is empty)", nil
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	if len(lines[len(lines)-1]) == 0 {
		lines = lines[:len(lines)-1]
	}
	first, last := max(in.StartLine, 1), in.EndLine
	if last == 0 || last > len(lines) {
		last = len(lines)
	}
	switch {
	case in.EndLine != 0 && in.EndLine < first:
		return "", fmt.Errorf("endLine: %d is before line %d", in.EndLine, first)
	case first > len(lines):
		return "", fmt.Errorf("startLine: the file has %s", oneline.Count(len(lines), "line"))
	}
	var b strings.Builder
	for n := first; n <= last; n++ {
		if n == first+maxLines || b.Len()+len(lines[n-1]) > maxText && n > first {
			fmt.Fprintf(&b, "\n(cut: continue with startLine %d; the file has %d lines)", n, len(lines))
			return b.String(), nil
		}
		fmt.Fprintf(&b, "%d\t%s", n, lines[n-1])
	}
	if in.EndLine > len(lines) {
		fmt.Fprintf(&b, "\n(the file ends at line %d)", len(lines))
	}
	return b.String(), nil
}

type writing struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

func (d dir) write(in writing) (string, error) {
	name, err := d.name(in.Path)
	if err != nil {
		return "", err
	}
	if err := d.store(name, []byte(in.Content)); err != nil {
		return "", err
	}
	return fmt.Sprintf("Wrote %s to %s.", oneline.Count(len(in.Content), "byte"), name), nil
}

type editing struct {
	Path       string `json:"path"`
	OldText    string `json:"oldText"`
	NewText    string `json:"newText"`
	ReplaceAll bool   `json:"replaceAll"`
}

func (d dir) edit(in editing) (string, error) {
	name, data, err := d.load(in.Path)
	if err != nil {
		return "", err
	}
	text, old, replacement := string(data), in.OldText, in.NewText
	if !strings.Contains(text, old) && strings.Contains(text, "\r\n") { // models write LF line endings
		old, replacement = crlf(old), crlf(replacement)
	}
	n := strings.Count(text, old)
	switch {
	case old == replacement:
		return "", errors.New("oldText and newText are the same")
	case n == 0:
		return "", fmt.Errorf("oldText does not occur in %s; read the file again", name)
	case n > 1 && !in.ReplaceAll:
		return "", fmt.Errorf("oldText occurs %d times in %s; give more of what is around it, or set replaceAll", n, name)
	}
	if err := d.store(name, []byte(strings.ReplaceAll(text, old, replacement))); err != nil {
		return "", err
	}
	return fmt.Sprintf("Replaced %s in %s.", oneline.Count(n, "occurrence"), name), nil
}

func crlf(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n")
}

// name converts a path to one relative to the directory.
func (d dir) name(path string) (string, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(string(d), path)
	}
	name, err := filepath.Rel(string(d), path)
	if err != nil || !filepath.IsLocal(name) {
		return "", fmt.Errorf("path: %s is outside the worktree", path)
	}
	return name, nil
}

// load reads a text file.
func (d dir) load(path string) (name string, data []byte, err error) {
	if name, err = d.name(path); err != nil {
		return "", nil, err
	}
	data, err = regularfile.ReadIn(string(d), name, maxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil, &missingError{name}
	case err != nil:
		return "", nil, fmt.Errorf("path: %s cannot be read: %w", name, regularfile.Cause(err))
	case bytes.IndexByte(data, 0) >= 0 || !utf8.Valid(data):
		return "", nil, fmt.Errorf("path: %s is not a text file", name)
	}
	return name, data, nil
}

// missingError means that a file does not exist. It unwraps to fs.ErrNotExist.
type missingError struct{ name string }

func (e *missingError) Error() string { return "path: " + e.name + " does not exist" }
func (e *missingError) Unwrap() error { return fs.ErrNotExist }

// store replaces the content of a file. The snapshot before the call has the old content.
func (d dir) store(name string, data []byte) error {
	root, err := os.OpenRoot(string(d))
	if err != nil {
		return fmt.Errorf("open the worktree: %w", err)
	}
	defer root.Close() //nolint:errcheck // nothing is written through it
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return fmt.Errorf("path: the directory of %s cannot be made: %w", name, regularfile.Cause(err))
	}
	f, err := regularfile.OpenFileIn(string(d), name, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("path: %s cannot be written: %w", name, regularfile.Cause(err))
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = f.Write(data)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("path: %s cannot be written: %w", name, regularfile.Cause(err))
	}
	return nil
}
