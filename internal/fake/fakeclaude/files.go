package fakeclaude

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
)

// files runs the tools that access files. It records which files the model has
// read: other existing files must not be overwritten.
type files struct {
	cwd, home string
	commands  atomic.Int32 // number of running commands

	mu   sync.Mutex
	seen map[string]bool
}

func newFiles(cwd, home string) *files {
	return &files{cwd: cwd, home: home, seen: map[string]bool{}}
}

func (f *files) path(input object, name string) string {
	path, _ := input[name].(string)
	return absolute(path, f.cwd, f.home)
}

func (f *files) wasSeen(path string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen[path]
}

func (f *files) see(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen[path] = true
}

const unseen = "File has not been read yet. Read it first before writing to it."

// objection returns the reason to refuse a call before permission is asked, or "".
func (f *files) objection(c call) string {
	switch c.name {
	case "Write":
		path := f.path(c.input, "file_path")
		if _, err := os.Stat(path); err == nil && !f.wasSeen(path) {
			return unseen
		}
	case "Edit":
		return f.editObjection(c)
	case "NotebookEdit":
		path := f.path(c.input, "notebook_path")
		if filepath.Ext(path) != ".ipynb" {
			return "File must be a Jupyter notebook (.ipynb file). For editing other file types, use the FileEdit tool."
		}
		if !f.wasSeen(path) {
			return unseen
		}
	}
	return ""
}

func (f *files) editObjection(c call) string {
	path := f.path(c.input, "file_path")
	before, after := text(c.input, "old_string"), text(c.input, "new_string")
	data, err := os.ReadFile(path)
	switch {
	case before == after:
		return "No changes to make: old_string and new_string are exactly the same."
	case errors.Is(err, fs.ErrNotExist) && before == "":
		return ""
	case err != nil:
		return f.missing()
	case !f.wasSeen(path):
		return unseen
	}
	all, _ := c.input["replace_all"].(bool)
	switch count := strings.Count(string(data), before); {
	case count == 0:
		return "String to replace not found in file.\nString: " + before
	case count > 1 && !all:
		return fmt.Sprintf("Found %d matches of the string to replace, but replace_all is false. To replace all occurrences, "+
			"set replace_all to true. To replace only one occurrence, please provide more context to uniquely identify the instance.\nString: %s", count, before)
	}
	return ""
}

func (f *files) missing() string {
	return fmt.Sprintf("File does not exist. Note: your current working directory is %s.", f.cwd)
}

func (f *files) read(c call, input object) outcome {
	path := f.path(input, "file_path")
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return failed(c, f.missing())
	}
	if err != nil {
		return failed(c, err.Error())
	}
	f.see(path)
	lines := strings.Split(string(data), "\n")
	first := min(max(number(input, "offset"), 1), len(lines)+1)
	last := len(lines)
	if limit := number(input, "limit"); limit > 0 {
		last = min(last, first+limit-1)
	}
	var numbered []string
	for i := first; i <= last; i++ {
		numbered = append(numbered, fmt.Sprintf("%d\t%s", i, lines[i-1]))
	}
	return succeeded(c, strings.Join(numbered, "\n"))
}

func (f *files) write(c call, input object) outcome {
	path := f.path(input, "file_path")
	_, err := os.Stat(path)
	if err := f.store(path, text(input, "content")); err != nil {
		return failed(c, err.Error())
	}
	if err == nil {
		return succeeded(c, fmt.Sprintf("The file %s has been updated successfully.", path))
	}
	return succeeded(c, "File created successfully at: "+path)
}

func (f *files) edit(c call, input object) outcome {
	path := f.path(input, "file_path")
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return failed(c, err.Error())
	}
	count := 1
	if all, _ := input["replace_all"].(bool); all {
		count = -1
	}
	edited := strings.Replace(string(data), text(input, "old_string"), text(input, "new_string"), count)
	if err := f.store(path, edited); err != nil {
		return failed(c, err.Error())
	}
	return succeeded(c, fmt.Sprintf("The file %s has been updated successfully.", path))
}

// store writes the file, keeps its mode, and creates its directory.
func (f *files) store(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // subject to umask, as in any editor
		return err
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil { //nolint:gosec // as above
		return err
	}
	f.see(path)
	return nil
}

func text(input object, name string) string {
	value, _ := input[name].(string)
	return value
}

func number(input object, name string) int {
	value, _ := input[name].(float64)
	return int(value)
}
