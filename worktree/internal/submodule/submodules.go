// Package submodule determines the commits that the submodules of a worktree count as, and finds their git
// directories.
package submodule

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// A Left is a submodule whose checkout stayed at its commit when the worktree moved.
type Left struct {
	Head string `json:"head"`         // the checked-out commit
	As   string `json:"as,omitempty"` // the commit that it counts as, empty if it counts as deleted
}

// Lefts maps paths in the worktree to the submodules that stayed behind.
type Lefts map[string]Left

// LeftPath returns the path of the file that SetLeft writes.
func LeftPath(w *repo.Worktree) string { return w.StatePath("submodules.json") }

// ReadLeft reads the submodules that stayed behind.
func ReadLeft(w *repo.Worktree) (Lefts, error) {
	left := Lefts{}
	err := file.ReadJSON(LeftPath(w), &left)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return left, err
}

// countsAs returns the commit that a submodule at commit head counts as.
func (l Lefts) countsAs(path, head string) string {
	if link, found := l[path]; found && link.Head == head {
		return link.As
	}
	return head
}

// Head returns the commit that is checked out in the repository at a path in the worktree, or "" if there
// is none. It only reads files.
func Head(w *repo.Worktree, path string) string {
	top := filepath.Join(w.Path, path)
	if info, err := os.Lstat(top); err != nil || !info.IsDir() || file.BeyondLink(w.Path, path) {
		return ""
	}
	dir, ok := Dir(top)
	if !ok {
		return ""
	}
	raw, err := file.Read(filepath.Join(dir, "HEAD"), object.MaxGitFile)
	if err != nil {
		return ""
	}
	head := strings.TrimSpace(string(raw))
	if name, symbolic := strings.CutPrefix(head, "ref: "); symbolic {
		if head, err = object.ReadRef(dir, name, nil); err != nil {
			return ""
		}
	}
	if !object.IsID(head) {
		return ""
	}
	return head
}

// LeaveLinks records the submodules that stayed behind when the worktree moved from one tree to another.
func LeaveLinks(ctx context.Context, w *repo.Worktree, from, to string) error {
	changes, err := w.Repo.Git().Changes(ctx, from, to)
	if err != nil {
		return err
	}
	goals := map[string]string{}
	for _, c := range changes {
		switch {
		case c.Mode == object.ModeSubmodule:
			goals[c.Path] = c.Oid
		case c.OldMode == object.ModeSubmodule:
			goals[c.Path] = ""
		}
	}
	return SetLeft(w, goals)
}

// SetLeft records the commits that the submodules at these paths count as from now on. It forgets
// submodules that have moved since they were recorded.
func SetLeft(w *repo.Worktree, goals map[string]string) error {
	left, err := ReadLeft(w)
	if err != nil || len(left)+len(goals) == 0 {
		return err
	}
	now := Lefts{}
	for path, link := range left {
		if Head(w, path) == link.Head {
			now[path] = link
		}
	}
	for path, goal := range goals {
		delete(now, path)
		if head := Head(w, path); head != "" && head != goal {
			now[path] = Left{Head: head, As: goal}
		}
	}
	if maps.Equal(left, now) {
		return nil
	}
	return file.WriteJSON(LeftPath(w), now)
}

// LeftBehind returns the repositories to ignore, because the worktree moved to a tree without these
// submodules.
func LeftBehind(w *repo.Worktree, left Lefts, repositories []string) []string {
	var behind []string
	for _, path := range repositories {
		if link, found := left[path]; found && link.As == "" && Head(w, path) == link.Head {
			behind = append(behind, path)
		}
	}
	return behind
}

// Paths lists the paths of the submodules in the worktree's .gitmodules, sorted.
func Paths(ctx context.Context, w *repo.Worktree) ([]string, error) {
	names, err := Names(ctx, w)
	return slices.Sorted(maps.Keys(names)), err
}

// Names returns the names of the submodules in the worktree's .gitmodules, by path.
func Names(ctx context.Context, w *repo.Worktree) (map[string]string, error) {
	raw, err := readModules(w)
	if err != nil || len(raw) == 0 {
		return nil, err
	}
	out, err := w.Git().Feed(ctx, raw, "config", "-z", "--file", "-", "--get-regexp", `^submodule\..*\.path$`)
	if err != nil && git.ExitCode(err) != 1 {
		return nil, fmt.Errorf("read .gitmodules: %w", err)
	}
	names := map[string]string{}
	for _, field := range git.Split(out) {
		key, at, _ := strings.Cut(field, "\n")
		if filepath.IsLocal(at) {
			names[path.Clean(at)] = strings.TrimSuffix(strings.TrimPrefix(key, "submodule."), ".path")
		}
	}
	return names, nil
}

// maxModules limits the size of a .gitmodules file, in bytes.
const maxModules = 16 << 20

// readModules returns the content of the worktree's .gitmodules, or nothing if it is not a regular file: git would
// not read it, either.
func readModules(w *repo.Worktree) ([]byte, error) {
	root, err := file.OpenRoot(w.Path)
	if file.Missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	raw, err := root.Read(".gitmodules", maxModules)
	if file.Missing(err) || errors.Is(err, regularfile.ErrNotFile) {
		return nil, nil
	}
	return raw, err
}

// LinkPrefix is the prefix of a line with a submodule in a snapshot's message.
const LinkPrefix = "Submodule: "

// OwnLinks returns lines for the message of a snapshot, which contains the files of submodules but not
// their commits. The lines list the submodules that count as another commit than that of the branch.
func OwnLinks(ctx context.Context, w *repo.Worktree, tip string) (string, error) {
	paths, err := Paths(ctx, w)
	if err != nil || tip == "" {
		return "", err
	}
	left, err := ReadLeft(w)
	if err != nil {
		return "", err
	}
	var lines strings.Builder
	for _, p := range paths {
		head := Head(w, p)
		if head == "" {
			continue
		}
		has, err := LinkIn(ctx, w, tip, p)
		if err != nil {
			return "", err
		}
		if as := left.countsAs(p, head); as != has && as != "" && has != "" {
			lines.WriteString(LinkPrefix + as + " " + strconv.Quote(p) + "\n")
		}
	}
	return lines.String(), nil
}

// LinkIn returns the commit of a submodule in a tree, or "" if the tree has no such submodule.
func LinkIn(ctx context.Context, w *repo.Worktree, tree, path string) (string, error) {
	entries, err := w.Repo.Git().Entries(ctx, tree, path)
	if err != nil || len(entries) != 1 || entries[0].Mode != object.ModeSubmodule {
		return "", err
	}
	return entries[0].Oid, nil
}

// CutLines splits the lines that begin with prefix off the end of text.
func CutLines(text, prefix string) (before, lines string) {
	before = text
	for {
		at := strings.LastIndexByte(strings.TrimSuffix(before, "\n"), '\n') + 1
		if !strings.HasPrefix(before[at:], prefix) {
			return before, text[len(before):]
		}
		before = before[:at]
	}
}

// ParseLinks parses the lines that OwnLinks returns. It returns the commits by path.
func ParseLinks(lines string) map[string]string {
	links := map[string]string{}
	for line := range strings.Lines(lines) {
		oid, quoted, _ := strings.Cut(strings.TrimPrefix(strings.TrimSuffix(line, "\n"), LinkPrefix), " ")
		if path, err := strconv.Unquote(quoted); err == nil && object.IsID(oid) {
			links[path] = oid
		}
	}
	return links
}

// Links lists the paths at which the worktree may have a submodule: those on the branch, and those left
// behind.
func Links(ctx context.Context, w *repo.Worktree) ([]string, error) {
	left, err := ReadLeft(w)
	if err != nil {
		return nil, err
	}
	paths := slices.Collect(maps.Keys(left))
	tip, err := w.TipIfAny(ctx)
	if err != nil || tip == "" {
		return paths, err
	}
	entries, err := w.Repo.Git().Entries(ctx, tip)
	for _, e := range entries {
		if e.Mode == object.ModeSubmodule {
			paths = append(paths, e.Path)
		}
	}
	return paths, err
}
