// Package programversion determines the versions of programs.
//
// An agent CLI takes a tenth of a second to print its version, so a Cache stores it as long
// as the program's file has the same path, size and time. The cache can be deleted at
// any time; damaged files are ignored.
package programversion

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/internal/text/oneline"
)

// ErrMissing means that a program is not installed.
var ErrMissing = errors.New("not on PATH")

// versionTimeout is the timeout for printing a version.
const versionTimeout = 30 * time.Second

// maxOutput limits a program's output, in bytes. maxLine limits the line
// made from it, in characters.
const (
	maxOutput = 64 << 10
	maxLine   = 200
)

// head keeps the first maxOutput bytes written to it.
type head struct{ bytes.Buffer }

// Write implements io.Writer.
func (h *head) Write(p []byte) (int, error) {
	h.Buffer.Write(p[:min(len(p), maxOutput-h.Len())])
	return len(p), nil
}

// Of runs a program with --version and returns its output as one line. The error is
// ErrMissing if the program is not on PATH.
func Of(ctx context.Context, program string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	var out, reason head
	cmd := exec.CommandContext(ctx, program, "--version")
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &reason, time.Second
	err := cmd.Run()
	failed := (*exec.ExitError)(nil)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", ErrMissing
	case ctx.Err() != nil:
		return "", fmt.Errorf("%s --version does not end: %w", program, context.Cause(ctx))
	case errors.As(err, &failed) && failed.Exited():
		return "", fmt.Errorf("%s --version ends with exit code %d: %s", program, failed.ExitCode(), oneline.Clip(reason.String(), maxLine))
	case err != nil && !errors.Is(err, exec.ErrWaitDelay): // ErrWaitDelay: a child process is still running
		return "", fmt.Errorf("%s --version: %w", program, err)
	}
	return oneline.Clip(out.String(), maxLine), nil
}

var versionRE = lazyregexp.New(`\d+(\.\d+)+`)

// OlderThan reports whether the version in a line is older than least. known is false if the
// line contains no version.
func OlderThan(line, least string) (older, known bool) {
	found := versionRE.FindString(line)
	return slices.Compare(numbers(found), numbers(least)) < 0, found != ""
}

func numbers(version string) []int {
	var all []int
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			break
		}
		all = append(all, n)
	}
	return all
}

// Cache stores versions in a directory of the user. If Dir is empty, it stores nothing.
type Cache struct{ Dir string }

// file identifies the file of a program.
type file struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
	Time int64  `json:"mtime_ns"`
}

// stored is the content of a cache file, Dir/versions/PROGRAM.json.
type stored struct {
	file
	Version string `json:"version"` // the line printed by the program
}

// maxStored limits the size of a cache file, in bytes.
const maxStored = 64 << 10

// Of is like the function Of but does not run a program whose version is cached.
func (c Cache) Of(ctx context.Context, program string) (string, error) {
	found, err := locate(program)
	if err != nil {
		return "", err
	}
	place := filepath.Join(c.Dir, "versions", program+".json")
	if known := read(place); c.Dir != "" && known.file == found {
		return known.Version, nil
	}
	line, err := Of(ctx, program)
	if _, known := OlderThan(line, "0"); err == nil && known && c.Dir != "" {
		write(place, stored{found, line})
	}
	return line, err
}

// locate finds the file of a program on PATH.
func locate(program string) (file, error) {
	path, err := exec.LookPath(program)
	if errors.Is(err, exec.ErrNotFound) {
		return file{}, ErrMissing
	}
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return file{}, fmt.Errorf("find %s: %w", program, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return file{}, fmt.Errorf("find %s: %w", program, err)
	}
	return file{Path: path, Size: info.Size(), Time: info.ModTime().UnixNano()}, nil
}

// read returns the cached version, or the zero value.
func read(place string) stored {
	var s stored
	text, err := regularfile.Read(place, maxStored)
	if err != nil || json.Unmarshal(text, &s) != nil || s.Version != oneline.Of(s.Version) {
		return stored{}
	}
	if _, known := OlderThan(s.Version, "0"); !known {
		return stored{}
	}
	return s
}

// write caches a version. It ignores errors, because the program can be run again.
func write(place string, s stored) {
	text, err := json.Marshal(s)
	if err != nil || os.MkdirAll(filepath.Dir(place), 0o700) != nil {
		return
	}
	_ = regularfile.Replace(place, append(text, '\n'), 0o600)
}
