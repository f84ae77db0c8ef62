package worktree

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

	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// coven never moves the checkout of a submodule, whose git directory belongs to the agent. When it
// moves W to another tree, it records the commits that the submodules in W have and the commits
// that they should have. As long as the HEAD of a submodule stays where it was, the submodule
// counts as what it should have, so that what coven did is no change of the task.

// A leftLink is a submodule whose checkout stayed behind when W moved.
type leftLink struct {
	Head string `json:"head"`         // the commit that is checked out
	As   string `json:"as,omitempty"` // the commit as which it counts; empty: no submodule
}

// leftLinks maps paths in W to the submodules that stayed behind.
type leftLinks map[string]leftLink

func leftPath(w *repo.Worktree) string { return w.StatePath("submodules.json") }

// leftLinks returns those of W that the index has: a snapshot has the files of submodules.
func (ix *index) leftLinks() (leftLinks, error) {
	if filepath.Base(ix.kept) != commitIndex {
		return nil, nil
	}
	return readLeftLinks(ix.w)
}

func readLeftLinks(w *repo.Worktree) (leftLinks, error) {
	left := leftLinks{}
	err := file.ReadJSON(leftPath(w), &left)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return left, err
}

// countsAs returns the commit as which a submodule counts whose HEAD is at a commit.
func (l leftLinks) countsAs(path, head string) string {
	if link, found := l[path]; found && link.Head == head {
		return link.As
	}
	return head
}

// headOfSubmodule returns the commit that is checked out in the repository at a path of W; empty:
// there is none. It only reads files.
func headOfSubmodule(w *repo.Worktree, path string) string {
	top := filepath.Join(w.Path, path)
	if info, err := os.Lstat(top); err != nil || !info.IsDir() || beyondLink(w.Path, path) {
		return ""
	}
	dir, ok := submoduleDir(top)
	if !ok {
		return ""
	}
	raw, err := file.Read(filepath.Join(dir, "HEAD"), repo.MaxGitFile)
	if err != nil {
		return ""
	}
	head := strings.TrimSpace(string(raw))
	if name, symbolic := strings.CutPrefix(head, "ref: "); symbolic {
		head = refIn(dir, name)
	}
	if !repo.OidRE.MatchString(head) {
		return ""
	}
	return head
}

// refIn returns the commit of a branch in a git directory that an agent controls.
func refIn(dir, name string) string {
	if raw, err := file.Read(filepath.Join(dir, filepath.FromSlash(name)), repo.MaxGitFile); err == nil {
		return strings.TrimSpace(string(raw))
	}
	packed, err := repo.ReadPackedRefs(dir)
	if err != nil {
		return ""
	}
	return packed[name]
}

// leaveLinks records the submodules that stayed behind when W moved from one tree to another.
func leaveLinks(ctx context.Context, w *repo.Worktree, from, to string) error {
	changes, err := w.Repo.Git().Changes(ctx, from, to)
	if err != nil {
		return err
	}
	goals := map[string]string{}
	for _, c := range changes {
		switch {
		case c.Mode == git.ModeSubmodule:
			goals[c.Path] = c.Oid
		case c.OldMode == git.ModeSubmodule:
			goals[c.Path] = ""
		}
	}
	return leaveAs(w, goals)
}

// leaveAs records that the submodules at these paths count as these commits from now on. It
// forgets those that have moved since.
func leaveAs(w *repo.Worktree, goals map[string]string) error {
	left, err := readLeftLinks(w)
	if err != nil || len(left)+len(goals) == 0 {
		return err
	}
	now := leftLinks{}
	for path, link := range left {
		if headOfSubmodule(w, path) == link.Head {
			now[path] = link
		}
	}
	for path, goal := range goals {
		delete(now, path)
		if head := headOfSubmodule(w, path); head != "" && head != goal {
			now[path] = leftLink{Head: head, As: goal}
		}
	}
	if maps.Equal(left, now) {
		return nil
	}
	return file.WriteJSON(leftPath(w), now)
}

// countLeft gives the submodules that stayed behind the entries as which they count. W was staged
// in the index.
func (ix *index) countLeft(ctx context.Context, left leftLinks, links []string) error {
	var edits []git.Entry
	for _, path := range links {
		link, found := left[path]
		if found && headOfSubmodule(ix.w, path) == link.Head {
			e := git.Entry{Mode: git.ModeSubmodule, Oid: link.As, Path: path}
			if link.As == "" {
				e.Mode = "0"
			}
			edits = append(edits, e)
		}
	}
	return ix.put(ctx, edits)
}

// leftBehind returns the repositories that count as nothing, because W moved to a tree without
// these submodules.
func leftBehind(w *repo.Worktree, left leftLinks, repositories []string) []string {
	var behind []string
	for _, path := range repositories {
		if link, found := left[path]; found && link.As == "" && headOfSubmodule(w, path) == link.Head {
			behind = append(behind, path)
		}
	}
	return behind
}

// submodules lists the paths of the submodules that .gitmodules names in W.
func submodules(ctx context.Context, w *repo.Worktree) ([]string, error) {
	names, err := submoduleNames(ctx, w)
	return slices.Sorted(maps.Keys(names)), err
}

// submoduleNames returns the names of the submodules in .gitmodules by their paths.
func submoduleNames(ctx context.Context, w *repo.Worktree) (map[string]string, error) {
	modules := filepath.Join(w.Path, ".gitmodules")
	if info, err := os.Lstat(modules); err != nil || !info.Mode().IsRegular() {
		return nil, nil //nolint:nilerr // git does not read it either
	}
	fields, err := w.Git().Fields(ctx, "config", "-z", "--file", modules, "--get-regexp", `^submodule\..*\.path$`)
	if err != nil && git.ExitCode(err) != 1 {
		return nil, fmt.Errorf("read .gitmodules: %w", err)
	}
	names := map[string]string{}
	for _, field := range fields {
		key, at, _ := strings.Cut(field, "\n")
		if filepath.IsLocal(at) {
			names[path.Clean(at)] = strings.TrimSuffix(strings.TrimPrefix(key, "submodule."), ".path")
		}
	}
	return names, nil
}

// snapshotLink begins a line of a snapshot's message.
const snapshotLink = "Submodule: "

// ownLinks returns lines for a snapshot, which has the files of submodules but not their commits:
// the submodules in W that count as another commit than the one in the branch.
func ownLinks(ctx context.Context, w *repo.Worktree, tip string) (string, error) {
	paths, err := submodules(ctx, w)
	if err != nil || tip == "" {
		return "", err
	}
	left, err := readLeftLinks(w)
	if err != nil {
		return "", err
	}
	var lines strings.Builder
	for _, p := range paths {
		head := headOfSubmodule(w, p)
		if head == "" {
			continue
		}
		has, err := linkIn(ctx, w, tip, p)
		if err != nil {
			return "", err
		}
		if as := left.countsAs(p, head); as != has && as != "" && has != "" {
			lines.WriteString(snapshotLink + as + " " + strconv.Quote(p) + "\n")
		}
	}
	return lines.String(), nil
}

// linkIn returns the commit of a submodule in a tree; empty: there is no such submodule.
func linkIn(ctx context.Context, w *repo.Worktree, tree, path string) (string, error) {
	entries, err := w.Repo.Git().Entries(ctx, tree, path)
	if err != nil || len(entries) != 1 || entries[0].Mode != git.ModeSubmodule {
		return "", err
	}
	return entries[0].Oid, nil
}

// cutLines cuts lines that begin with a prefix off the end of a text.
func cutLines(text, prefix string) (before, lines string) {
	before = text
	for {
		at := strings.LastIndexByte(strings.TrimSuffix(before, "\n"), '\n') + 1
		if !strings.HasPrefix(before[at:], prefix) {
			return before, text[len(before):]
		}
		before = before[:at]
	}
}

// linksOf reads such lines.
func linksOf(lines string) map[string]string {
	links := map[string]string{}
	for line := range strings.Lines(lines) {
		oid, quoted, _ := strings.Cut(strings.TrimPrefix(strings.TrimSuffix(line, "\n"), snapshotLink), " ")
		if path, err := strconv.Unquote(quoted); err == nil && repo.OidRE.MatchString(oid) {
			links[path] = oid
		}
	}
	return links
}

// leaveAsIn makes submodules count as in a snapshot: all, or those at or below some paths.
func leaveAsIn(ctx context.Context, w *repo.Worktree, snapshot git.Commit, paths []string) error {
	s, err := parseSnapshot(snapshot)
	if err != nil {
		return err
	}
	if has, err := w.Repo.HasCommit(ctx, s.Tip); err != nil || !has {
		return err
	}
	candidates, err := linkPaths(ctx, w)
	if err != nil {
		return err
	}
	goals, own := map[string]string{}, linksOf(s.links)
	for _, p := range candidates {
		if len(paths) > 0 && !slices.ContainsFunc(paths, func(asked string) bool { return asked == p || strings.HasPrefix(p, asked+"/") }) {
			continue
		}
		goals[p] = own[p]
		if goals[p] != "" {
			continue
		}
		if goals[p], err = linkIn(ctx, w, s.Tip, p); err != nil {
			return err
		}
	}
	return leaveAs(w, goals)
}

// linkPaths lists the paths at which W can have a submodule: of the branch, or left behind.
func linkPaths(ctx context.Context, w *repo.Worktree) ([]string, error) {
	left, err := readLeftLinks(w)
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
		if e.Mode == git.ModeSubmodule {
			paths = append(paths, e.Path)
		}
	}
	return paths, err
}
