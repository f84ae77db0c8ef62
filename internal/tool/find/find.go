// Package find provides the tools of coven's own loop that find files and text: ls, glob and grep.
//
// Rules:
//   - Nothing outside of the root is listed or read; symbolic links cannot escape from it. Pipes are never
//     opened, and binary and large files are not searched.
//   - glob and grep omit the files that git ignores; ls lists them.
//   - A file that a rule denies is not shown, even if a link leads to it.
//   - The length of an answer is limited. A truncated answer says so.
package find

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/search"
	"github.com/coven-run/coven/internal/tool"
)

// Limits of an answer.
const (
	maxFiles   = 1000
	maxLines   = 200 // matching lines
	maxContext = 10
	maxText    = 30_000 // bytes
)

// Options configures the tools.
type Options struct {
	Root  string        // absolute, with links resolved
	Files *search.Index // index of the files below Root
	// Check returns an error if a rule denies a permission for a file. The path is absolute with links
	// resolved.
	Check func(needed permission.Name, path string) error
}

// Tools returns the tools ls, glob and grep.
func Tools(o Options) []tool.Tool {
	return []tool.Tool{
		{
			Kind: tool.Ls, Category: "file", ReadOnly: true, Call: tool.Decoded(begun(o.ls)),
			Description: fmt.Sprintf("List a directory of the worktree: directories end with /, files have their size in bytes. At most %d entries are returned.", maxFiles),
			Schema: json.RawMessage(`{"type":"object","properties":{
"path":{"type":"string","description":"the directory, relative to the top of the worktree; default: the top"}},
"additionalProperties":false}`),
		},
		{
			Kind: tool.Glob, Category: "search", ReadOnly: true, Call: tool.Decoded(begun(o.glob)),
			Description: fmt.Sprintf("List the files of the worktree whose path matches a pattern, without those that git ignores. At most %d are returned.", maxFiles),
			Schema: json.RawMessage(`{"type":"object","properties":{
"pattern":{"type":"string","minLength":1,"maxLength":1000,"description":"such as src/**/*.go, from the top of the worktree; without a slash it matches names in all directories"},
"path":{"type":"string","description":"only below this directory, relative to the top of the worktree"}},
"required":["pattern"],"additionalProperties":false}`),
		},
		{
			Kind: tool.Grep, Category: "search", ReadOnly: true, Call: tool.Decoded(begun(o.grep)),
			Description: fmt.Sprintf("Find the lines of files that match a regular expression (RE2, one line at a time). Files that git ignores, binary ones and those larger than 1 MiB are not searched. At most %d lines are returned, as path:line:text.", maxLines),
			Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{
"pattern":{"type":"string","minLength":1,"maxLength":1000,"description":"the regular expression"},
"path":{"type":"string","description":"only this file, or below this directory, relative to the top of the worktree"},
"glob":{"type":"string","maxLength":1000,"description":"only files that match, such as *.go"},
"ignoreCase":{"type":"boolean","description":"match upper and lower case alike"},
"context":{"type":"integer","minimum":0,"maximum":%d,"description":"lines to show before and after each match, as path-line-text"},
"filesOnly":{"type":"boolean","description":"return only the paths of the files that match"}},
"required":["pattern"],"additionalProperties":false}`, maxContext)),
		},
	}
}

// begun lets the next call start immediately, because these tools change nothing.
func begun[T any](do func(context.Context, T) (string, error)) func(context.Context, T) (string, error) {
	return func(ctx context.Context, in T) (string, error) {
		tool.Begun(ctx)
		return do(ctx, in)
	}
}

type globbing struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
}

func (o Options) glob(ctx context.Context, in globbing) (string, error) {
	below, err := o.below(in.Path)
	if err != nil {
		return "", err
	}
	files, err := o.Files.Files(ctx, in.Pattern)
	if err != nil {
		return "", fmt.Errorf("pattern: %w", err)
	}
	shown := o.shown(permission.FileRead)
	files = slices.DeleteFunc(files, func(name string) bool { return !below(name) || !shown(name) })
	for i := range files {
		files[i] = printable(files[i])
	}
	return list(files, "No files match.", "use a narrower pattern"), nil
}

type grepping struct {
	Pattern    string `json:"pattern"`
	Path       string `json:"path"`
	Glob       string `json:"glob"`
	IgnoreCase bool   `json:"ignoreCase"`
	Context    int    `json:"context"`
	FilesOnly  bool   `json:"filesOnly"`
}

func (o Options) grep(ctx context.Context, in grepping) (string, error) {
	below, err := o.below(in.Path)
	if err != nil {
		return "", err
	}
	shown := o.shown(permission.FileRead, permission.CodeSearch)
	expression, limit := in.Pattern, maxLines
	if in.IgnoreCase {
		expression = "(?i:" + expression + ")"
	}
	if in.FilesOnly {
		limit = maxFiles
	}
	lines, more, err := o.Files.Search(ctx, expression, search.QueryOptions{Glob: in.Glob, Limit: limit, First: in.FilesOnly, Keep: func(name string) bool { return below(name) && shown(name) }})
	switch {
	case err != nil:
		return "", err
	case len(lines) == 0:
		return "No lines match.", nil
	case in.FilesOnly:
		return filesOf(lines, more), nil
	}
	all, err := o.Files.Around(lines, in.Context)
	if err != nil {
		return "", fmt.Errorf("read the lines around: %w", err)
	}
	return format(lines, all, more), nil
}

// filesOf lists the files that contain lines.
func filesOf(lines []search.Line, more bool) string {
	var files []string
	for _, l := range lines {
		files = append(files, printable(l.Path))
	}
	text := list(files, "", "use a narrower pattern")
	if more {
		text += "\n(there are more files: use a narrower pattern, path or glob)"
	}
	return text
}

// format formats matching lines and their context like grep.
func format(found, all []search.Line, more bool) string {
	var b strings.Builder
	next := 0 // index into found
	for i, l := range all {
		mark := "-"
		if next < len(found) && found[next].Path == l.Path && found[next].Line == l.Line {
			mark = ":"
			next++
		}
		if i > 0 && len(all) > len(found) && (all[i-1].Path != l.Path || all[i-1].Line != l.Line-1) {
			b.WriteString("--\n")
		}
		line := fmt.Sprintf("%s%s%d%s%s\n", printable(l.Path), mark, l.Line, mark, strings.ToValidUTF8(l.Text, "\uFFFD"))
		if b.Len()+len(line) > maxText {
			more = true
			break
		}
		b.WriteString(line)
	}
	if more {
		b.WriteString("(there are more lines: use a narrower pattern, path or glob)")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// below returns a function that reports whether a file is at or below the path name.
func (o Options) below(name string) (func(string) bool, error) {
	at, err := o.place(name)
	if err != nil {
		return nil, err
	}
	at = filepath.ToSlash(at)
	return func(file string) bool { return at == "." || file == at || strings.HasPrefix(file, at+"/") }, nil
}

// place resolves a path to one relative to the root.
func (o Options) place(name string) (string, error) {
	full := name
	if !filepath.IsAbs(full) {
		full = filepath.Join(o.Root, full)
	}
	resolved, err := filepath.EvalSymlinks(full)
	if err != nil {
		return "", fmt.Errorf("path: %s does not exist", printable(name))
	}
	at, err := filepath.Rel(o.Root, resolved)
	if err != nil || !filepath.IsLocal(at) {
		return "", fmt.Errorf("path: %s is outside the worktree", printable(name))
	}
	return at, nil
}

// shown returns a function that reports whether all permissions are granted for a file, relative to the
// root. It resolves links in the file's directory.
func (o Options) shown(permissions ...permission.Name) func(string) bool {
	var places sync.Map // of directories
	return func(name string) bool {
		dir := path.Dir(name)
		place, known := places.Load(dir)
		if !known {
			resolved, err := filepath.EvalSymlinks(filepath.Join(o.Root, filepath.FromSlash(dir)))
			if err != nil {
				return false
			}
			place = resolved
			places.Store(dir, place)
		}
		return !slices.ContainsFunc(permissions, func(p permission.Name) bool { return o.Check(p, filepath.Join(place.(string), path.Base(name))) != nil })
	}
}

// list joins lines to a text of limited length.
func list(lines []string, none, advice string) string {
	if len(lines) == 0 {
		return none
	}
	var b strings.Builder
	for i, line := range lines {
		if i == maxFiles || b.Len()+len(line) >= maxText {
			fmt.Fprintf(&b, "(%d of %d: %s)", i, len(lines), advice)
			break
		}
		b.WriteString(line + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// printable quotes a path that contains non-printable characters.
func printable(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) {
		return strconv.Quote(name)
	}
	return name
}

var errNotDirectory = errors.New("it is not a directory")
