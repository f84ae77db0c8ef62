package search

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"runtime"
	"sync"

	"github.com/coven-run/coven/internal/exit"
)

// A Line is a line that matches a regular expression.
type Line struct {
	Path string `json:"path"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

// DefaultLines is the number of lines if a search does not say it.
const DefaultLines = 1000

// Search returns the lines that match a regular expression, sorted by path and line. more
// reports whether there are others than these.
func (x *Index) Search(ctx context.Context, expression string, w Wanted) (lines []Line, more bool, err error) {
	re, err := regexp.Compile(expression)
	if err != nil {
		return nil, false, exit.Usagef("coven ground search --help", "invalid regular expression: %w", err)
	}
	if w.Limit <= 0 {
		w.Limit = DefaultLines
	}
	paths, err := x.Files(ctx, "")
	if err != nil || len(paths) == 0 {
		return nil, false, err
	}
	root, err := os.OpenRoot(x.Root)
	if err != nil {
		return nil, false, err
	}
	defer root.Close() //nolint:errcheck // read only
	lines = []Line{}
	// Some files at a time, so that a common word does not read all of them.
	for chunk := 64 * runtime.GOMAXPROCS(0); len(paths) > 0 && len(lines) <= w.Limit; {
		if err := context.Cause(ctx); err != nil {
			return nil, false, err
		}
		n := min(chunk, len(paths))
		for _, found := range grepAll(root, paths[:n], re, w) {
			lines = append(lines, found...)
		}
		paths = paths[n:]
	}
	if len(lines) > w.Limit {
		return lines[:w.Limit], true, nil
	}
	return lines, false, nil
}

// grepAll searches files on all cores.
func grepAll(root *os.Root, paths []string, re *regexp.Regexp, w Wanted) [][]Line {
	found := make([][]Line, len(paths))
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(paths)) {
		workers.Go(func() {
			for i := range next {
				if w.Keep == nil || w.Keep(paths[i]) {
					found[i] = grep(root, paths[i], re, w.Limit+1)
				}
			}
		})
	}
	for i := range paths {
		next <- i
	}
	close(next)
	workers.Wait()
	return found
}

// grep returns the first lines of a file that match.
func grep(root *os.Root, path string, re *regexp.Regexp, limit int) (found []Line) {
	text, ok := readText(root, path)
	if !ok {
		return nil
	}
	for number := 1; len(text) > 0 && len(found) < limit; number++ {
		line, rest, _ := bytes.Cut(text, []byte("\n"))
		if re.Match(bytes.TrimSuffix(line, []byte("\r"))) {
			found = append(found, Line{path, number, clip(string(line))})
		}
		text = rest
	}
	return found
}
