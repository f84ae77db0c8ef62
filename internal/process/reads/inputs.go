package reads

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Inputs asks for a record of everything that the result of a program may depend on: the files, directories and links that it
// looked at, and those that it did not find. It does not contain the network, the time and the environment.
//
// Files of the worktree that the program itself made or changed are no inputs: it must not depend on their state before. There
// are no inputs at all if another file changed meanwhile, or if the program read the file .git of the worktree: the index and the
// commits of a worktree belong to it alone.
type Inputs struct {
	Dir    string   // the worktree, whose paths are recorded without it
	Except []string // directories that are no inputs, such as caches
	Bound  []string // directories in Dir that show others, by mounts
	Hashed []string // directories besides Dir whose files are compared by their contents, not by size and time of modification
}

// An input is a path and its state when the program had ended.
type input struct {
	Path  []byte `json:"path"` // with dirMark
	Read  bool   `json:"read"`
	State string `json:"state"`
}

// separator precedes the inputs in the output of Write. No path contains it.
const separator = 0

// Split divides the output of Write into the list of files and the inputs. They are nil if they were not recorded, or not
// completely.
func Split(record []byte) (list, inputs []byte) {
	list, inputs, _ = bytes.Cut(record, []byte{separator})
	return list, inputs
}

// dirMark stands for Dir in paths and states. Neither contains it otherwise.
const dirMark = "\x00"

func (i Inputs) withoutDir(text string) string { return strings.ReplaceAll(text, i.Dir, dirMark) }

// unknown is a state that never equals another one.
const unknown = "unknown"

func (i Inputs) write(out io.Writer, opened Opened) {
	var all []input
	e := examiner{inputs: i, since: opened.since, left: maxHashed}
	for path, read := range opened.paths {
		if state := e.state(path, read); state == unknown {
			return
		} else if state != "" {
			all = append(all, input{[]byte(i.withoutDir(path)), read, state})
		}
	}
	slices.SortFunc(all, func(a, b input) int { return bytes.Compare(a.Path, b.Path) })
	_, _ = out.Write([]byte{separator}) // Flush reports errors
	_ = json.NewEncoder(out).Encode(record{i, all, e.made})
}

type record struct {
	Inputs Inputs   `json:"scope"`
	All    []input  `json:"inputs"`
	Made   [][]byte `json:"made"`
}

// Made returns the paths, relative to the worktree, of the files in it that the program has made or changed and also looked at.
// They are no inputs.
func Made(inputs []byte) (paths []string, err error) {
	var r record
	if err := json.Unmarshal(inputs, &r); err != nil {
		return nil, fmt.Errorf("read the inputs: %w", err)
	}
	for _, path := range r.Made {
		paths = append(paths, strings.TrimPrefix(string(path), r.Inputs.Dir+"/"))
	}
	return paths, nil
}

// Compare reads inputs and prints the first one whose state is different now, in the working directory. It prints nothing if there
// is none. It runs in the same sandbox as the program whose inputs they are.
func Compare(in io.Reader, out io.Writer) error {
	var r record
	err := json.NewDecoder(bufio.NewReader(in)).Decode(&r)
	if err != nil {
		return fmt.Errorf("read the inputs: %w", err)
	}
	if r.Inputs.Dir, err = os.Getwd(); err != nil {
		return err
	}
	if len(r.All) == 0 {
		return errors.New("read the inputs: there are none")
	}
	e := examiner{inputs: r.Inputs, since: time.Now(), left: maxHashed}
	for _, i := range r.All {
		path := strings.ReplaceAll(string(i.Path), dirMark, r.Inputs.Dir)
		if e.state(path, i.Read) != i.State {
			_, err := fmt.Fprintln(out, path)
			return err
		}
	}
	return nil
}

// An examiner determines the states of inputs.
type examiner struct {
	inputs Inputs
	since  time.Time // later changes are those of the program
	left   int64     // bytes that may still be hashed
	made   [][]byte  // files in Dir that are no inputs because the program has changed them
}

// state returns the state of a path, or "" if it is no input. The file .git of a worktree is different in each.
func (e *examiner) state(path string, read bool) string {
	switch {
	case path == e.inputs.Dir+"/.git" && read:
		return unknown
	case path == e.inputs.Dir+"/.git", e.inputs.isExcepted(path, read):
		return ""
	}
	return e.inputs.withoutDir(e.stateOf(path, read))
}

// isExcepted reports whether a path is no input, or exists only because it contains a directory that is none.
func (i *Inputs) isExcepted(path string, read bool) bool {
	contains := func(dir string) bool { return !read && within(dir, []string{path}) || dir == path }
	return slices.ContainsFunc(i.Except, contains) || within(path, i.Except) ||
		within(path, []string{"/proc", "/sys", "/dev"}) || slices.ContainsFunc(strings.Split(path, "/"), isLitter)
}

func (e *examiner) stateOf(path string, read bool) string {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return "missing"
	case err != nil:
		return "refused"
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		if err != nil {
			return unknown
		}
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return "link to " + target
		}
		state := e.state(real, read)
		if state == unknown {
			return unknown
		}
		return "link to " + target + ": " + state
	case isMadeSince(path, e.since) && !e.inputs.isOwn(path):
		return unknown
	case isMadeSince(path, e.since):
		e.made = append(e.made, []byte(filepath.Clean(path)))
		return ""
	case info.Mode().IsRegular():
		return e.file(path, info)
	case info.IsDir() && read:
		return e.directory(path)
	}
	return info.Mode().Type().String()
}

// isOwn reports whether a program can make a file: it is in the worktree, and not shown there by a mount.
func (i *Inputs) isOwn(path string) bool {
	return within(path, []string{i.Dir}) && !within(path, i.Bound)
}

func (e *examiner) file(path string, info fs.FileInfo) string {
	mode := info.Mode().Perm() & 0o100
	if !within(path, append([]string{e.inputs.Dir}, e.inputs.Hashed...)) {
		return fmt.Sprintf("file %o %d %d", mode, info.Size(), info.ModTime().UnixNano())
	}
	sum, size := hash(path, e.left)
	if e.left -= size; sum == unhashed {
		return unknown
	}
	return fmt.Sprintf("file %o %s", mode, sum)
}

// directory returns the state of a directory with the names in it, except those of the program.
func (e *examiner) directory(path string) string {
	entries, err := os.ReadDir(path)
	if err != nil {
		return "refused"
	}
	sum := sha256.New()
	for _, entry := range entries {
		if !isLitter(entry.Name()) && !isMadeSince(filepath.Join(path, entry.Name()), e.since) {
			_, _ = fmt.Fprintf(sum, "%s %s\x00", entry.Type(), entry.Name())
		}
	}
	return "directory " + hex.EncodeToString(sum.Sum(nil))
}

// isLitter reports whether only tools make files and directories of a name, which are there in one worktree and not in another.
func isLitter(name string) bool {
	return slices.Contains([]string{"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".coverage", ".nyc_output", ".DS_Store"}, name)
}
