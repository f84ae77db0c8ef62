// Package reads records which files a program and its descendants read, with a listener of seccomp: the kernel suspends
// each call that opens or executes a file until this package has read its path. It never refuses a call.
//
// The process that becomes the program calls Offer; a process that outlives it, sees the same files and may trace it, calls
// Accept. Not recorded are programs for another architecture (such as 32-bit ones), files opened through io_uring, and those that no
// longer exist at the end.
package reads

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Scope limits the recorded files. All paths are absolute, without symbolic links.
type Scope struct {
	In       []string          // directories whose files are recorded
	Packages []string          // directories in which only the files of installed packages are recorded
	Except   []string          // directories in them whose files are not recorded
	Bound    map[string]string // directories that show others, by mounts: their files are recorded as those of the others
	Inputs   *Inputs           // optional
}

// Opened is the record of a listener.
type Opened struct {
	since      time.Time
	paths      map[string]bool // false for those whose contents were not read
	incomplete bool
	listened   bool // false if the kernel refused the listener, or ended it too early
}

// maxHashed limits the total size of hashed files in bytes. Further files are listed with the hash unhashed.
const maxHashed = 512 << 20

// unhashed stands for the hash of a file that could not be read, or exceeded maxHashed.
const unhashed = "-"

// Write writes those of the opened paths that are regular files in the scope, sorted, one line each, in the format of
// sha256sum, and then the inputs, if there are any: see Split.
func (s Scope) Write(to io.Writer, opened Opened) error {
	out := bufio.NewWriter(to)
	left := int64(maxHashed)
	for _, path := range s.files(opened) {
		sum, size := hash(path, left)
		left -= size
		writeLine(out, sum, s.original(path))
	}
	if s.Inputs != nil && opened.listened && !opened.incomplete {
		s.Inputs.write(out, opened)
	}
	return out.Flush()
}

// files returns the files in the scope, as this process sees them.
func (s Scope) files(opened Opened) []string {
	var files []string
	dirs := map[string]string{} // with and without symbolic links
	for path, read := range opened.paths {
		dir, name := filepath.Split(path)
		real, known := dirs[dir]
		if !known {
			real, _ = filepath.EvalSymlinks(dir) // "" if it is gone
			dirs[dir] = real
		}
		if real == "" || !read {
			continue
		}
		path = filepath.Join(real, name)
		info, err := os.Lstat(path)
		if err == nil && info.Mode()&os.ModeSymlink != 0 {
			if path, err = filepath.EvalSymlinks(path); err == nil {
				info, err = os.Lstat(path)
			}
		}
		if err == nil && info.Mode().IsRegular() && s.contains(s.original(path)) {
			files = append(files, path)
		}
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// original returns the path of a file where no mount shows it.
func (s Scope) original(path string) string {
	for dir, source := range s.Bound {
		if rest, ok := strings.CutPrefix(path, dir+"/"); ok {
			return filepath.Join(source, rest)
		}
	}
	return path
}

func (s Scope) contains(path string) bool {
	return (within(path, s.In) || within(path, s.Packages) && Package(path) != "") && !within(path, s.Except)
}

// Package returns the innermost directory of installed packages that contains a file, or "".
func Package(path string) string {
	for dir := filepath.Dir(path); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		switch filepath.Base(dir) {
		case "site-packages", "dist-packages", "node_modules", "gems":
			return dir
		}
	}
	return ""
}

// within reports whether a path is below one of dirs.
func within(path string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/") })
}

// hash returns the hash of a file of at most limit bytes, and its size.
func hash(path string, limit int64) (string, int64) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // not by regularfile, whose imports would delay the launcher
	if err != nil {
		return unhashed, 0
	}
	defer file.Close() //nolint:errcheck // read only
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return unhashed, 0
	}
	sum := sha256.New()
	size, err := io.Copy(sum, io.LimitReader(file, limit+1))
	if err != nil || size > limit {
		return unhashed, 0
	}
	return hex.EncodeToString(sum.Sum(nil)), size
}

var escaper = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`)

// writeLine writes a line like sha256sum, which marks a line with escapes.
func writeLine(out io.Writer, sum, path string) {
	mark, name := "", escaper.Replace(path)
	if name != path {
		mark = `\`
	}
	_, _ = fmt.Fprintf(out, "%s%s  %s\n", mark, sum, name) // Flush reports errors
}
