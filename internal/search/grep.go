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

// A Line is a line of a file.
type Line struct {
	Path string `json:"path"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

// DefaultLines is the default limit of Search.
const DefaultLines = 1000

// Search returns the lines that match a regular expression, sorted by path and line. more
// reports whether the limit was reached.
func (x *Index) Search(ctx context.Context, expression string, w QueryOptions) (lines []Line, more bool, err error) {
	re, err := regexp.Compile(expression)
	if err != nil {
		return nil, false, exit.Usagef("coven ground search --help", "invalid regular expression: %w", err)
	}
	if w.Limit <= 0 {
		w.Limit = DefaultLines
	}
	paths, err := x.Files(ctx, w.Glob)
	if err != nil || len(paths) == 0 {
		return nil, false, err
	}
	root, err := os.OpenRoot(x.Root)
	if err != nil {
		return nil, false, err
	}
	defer root.Close() //nolint:errcheck // read only
	lines = []Line{}
	// Search in chunks, so that a frequent word does not require reading all files.
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

// grepAll searches files in parallel.
func grepAll(root *os.Root, paths []string, re *regexp.Regexp, w QueryOptions) [][]Line {
	found, limit := make([][]Line, len(paths)), w.Limit+1
	if w.First {
		limit = 1
	}
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(paths)) {
		workers.Go(func() {
			for i := range next {
				if w.Keep == nil || w.Keep(paths[i]) {
					found[i] = grep(root, paths[i], re, limit)
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

// grep returns the first matching lines of a file.
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

// Around returns the results of Search with up to n lines of context before and after them, without
// duplicates and sorted by path and line. If a file has changed, the lines may differ.
func (x *Index) Around(lines []Line, n int) ([]Line, error) {
	if n <= 0 || len(lines) == 0 {
		return lines, nil
	}
	root, err := os.OpenRoot(x.Root)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // read only
	var all []Line
	for len(lines) > 0 {
		path, of := lines[0].Path, 1
		for of < len(lines) && lines[of].Path == path {
			of++
		}
		all = append(all, around(root, path, lines[:of], n)...)
		lines = lines[of:]
	}
	return all, nil
}

// around returns the lines of one file with their context.
func around(root *os.Root, path string, found []Line, n int) (all []Line) {
	text, ok := readText(root, path)
	if !ok {
		return found
	}
	for number := 1; len(text) > 0 && len(found) > 0; number++ {
		line, rest, _ := bytes.Cut(text, []byte("\n"))
		if number >= found[0].Line-n {
			all = append(all, Line{path, number, clip(string(line))})
		}
		for len(found) > 0 && number >= found[0].Line+n { // its context is complete
			found = found[1:]
		}
		text = rest
	}
	return all
}
