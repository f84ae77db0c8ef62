package checkout

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/object"
)

// merge creates the new index and the new files, and determines the steps.
func (m *Move) merge(ctx context.Context, from, to string, changes []object.Change) error {
	units := unitsOf(changes)
	before, err := m.copyIndex(ctx, from)
	if err != nil {
		return err
	}
	// Read the present content before git compares it with the index. If it differs later, it was edited in
	// between.
	have, err := m.fingerprints(units)
	if err != nil {
		return err
	}
	if !m.untouched(before, changes) {
		if have, err = m.compared(ctx, units, from, to, before, changes); err != nil {
			return err
		}
	}
	if err := m.stage(ctx, from, to); err != nil {
		return err
	}
	if err := m.loadMerged(from); err != nil {
		return err
	}
	if err := m.compare(before, changes); err != nil {
		return err
	}
	return m.plan(have, before)
}

// copyIndex links the index into State twice: as the working copy, which git never changes in place, and as
// the backup.
func (m *Move) copyIndex(ctx context.Context, oid string) (*index, error) {
	index := filepath.Join(m.c.Git.Dir, "index")
	for _, as := range []string{m.keptPath(), m.mergedPath()} {
		if err := duplicate(index, as); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("store the index of %s: %w", m.c.top(), err)
		}
	}
	x, err := m.loadIndex(m.mergedPath(), oid)
	if err != nil || !x.split && !x.sparse {
		return x, err
	}
	// If so configured, git splits the index again at its next write.
	if err := m.whole().Run(ctx, "update-index", "-q", "--no-split-index", "--force-write-index"); err != nil {
		return nil, err
	}
	return m.loadIndex(m.mergedPath(), oid)
}

// loadMerged reads the merged index. It first makes it a separate file, because it is modified later.
func (m *Move) loadMerged(oid string) error {
	merged, err := nodeOf(m.mergedPath())
	if err != nil {
		return err
	}
	kept, err := nodeOf(m.keptPath())
	if err != nil {
		return err
	}
	if merged == kept {
		raw, err := os.ReadFile(m.keptPath())
		if err == nil {
			err = errors.Join(os.Remove(m.mergedPath()), os.WriteFile(m.mergedPath(), raw, 0o644))
		}
		if err != nil {
			return err
		}
	}
	m.merged, err = m.loadIndex(m.mergedPath(), oid)
	return err
}

// duplicate links a file, or copies it with its modification time if links are not supported. git needs the
// modification time of an index to detect changed entries.
func duplicate(file, as string) error {
	err := os.Link(file, as)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(as, raw, info.Mode().Perm()), os.Chtimes(as, info.ModTime(), info.ModTime()))
}

func (m *Move) loadIndex(file, oid string) (*index, error) {
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return &index{}, nil
	}
	if err != nil {
		return nil, err
	}
	x, err := readIndex(raw, oid)
	if err != nil {
		return nil, fmt.Errorf("read the index of %s: %w", m.c.top(), err)
	}
	return x, nil
}

// whole returns a git.Repo that writes all entries into one index.
func (m *Move) whole() git.Repo {
	g := m.git()
	g.Settings = append(slices.Clone(g.Settings),
		git.Setting{Key: "core.splitIndex", Value: "false"}, git.Setting{Key: "index.sparse", Value: "false"})
	return g
}

// check makes git compare the files to be changed with the index.
func (m *Move) check(ctx context.Context, from, to string) error {
	g := m.whole()
	g.Index = filepath.Join(m.c.State, "index.check")
	_ = os.Remove(g.Index)
	if err := duplicate(m.mergedPath(), g.Index); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return g.Run(ctx, "read-tree", "-m", from, to)
}

// untouched reports whether all files to be changed have the bytes of their blobs and no file is in the way. If it
// returns false, git must check.
func (m *Move) untouched(x *index, changes []object.Change) bool {
	if x.split || x.sparse || x.unmerged {
		return false
	}
	added := map[string]bool{}
	for _, c := range changes {
		if !m.asBefore(x, c) {
			return false
		}
		if c.Status == 'A' {
			added[c.Path] = true
		}
	}
	return len(added) == 0 || !x.clashes(added)
}

// asBefore reports whether the index and the checkout have the old state of a change.
func (m *Move) asBefore(x *index, c object.Change) bool {
	if _, blocked := m.c.blocked(c.Path); blocked {
		return false
	}
	e, tracked := x.entries[c.Path]
	path := filepath.Join(m.c.top(), c.Path)
	if c.Status == 'A' {
		_, err := os.Lstat(path)
		return !tracked && errors.Is(err, fs.ErrNotExist)
	}
	return tracked && e.Mode == c.OldMode && e.Oid == c.OldOid && !e.skip && e.isAt(path)
}

// compared makes git compare the files to be changed with the index, byte for byte, and returns their fingerprints.
// If one of them is edited, the error lists the files in the way.
func (m *Move) compared(ctx context.Context, units []string, from, to string, before *index, changes []object.Change) (map[string]fingerprint, error) {
	if err := m.distrust(before, changes); err != nil {
		return nil, err
	}
	have, err := m.fingerprints(units)
	if err != nil {
		return nil, err
	}
	err = m.whole().Run(ctx, "update-index", "-q", "--refresh")
	if err != nil && git.ExitCode(err) != 1 { // exit code 1 means that some files have changed
		return nil, err
	}
	if err := m.check(ctx, from, to); err != nil {
		return nil, m.refused(ctx, from, before, changes, err)
	}
	return have, nil
}

// refused returns an error that lists the files in the way: modified files, untracked files, or files with
// other staged changes.
func (m *Move) refused(ctx context.Context, from string, before *index, changes []object.Change, cause error) error {
	dirty, err := m.git().Fields(ctx, "ls-files", "-z", "-m", "-d")
	if err != nil {
		return errors.Join(cause, err)
	}
	var files []string
	for _, change := range changes {
		if touches(dirty, change.Path) && !m.deletedByBoth(change) {
			files = append(files, change.Path)
		}
		if _, tracked := before.entries[change.Path]; !tracked && change.Status != 'D' {
			files = append(files, m.untracked(change.Path, before)...)
		}
	}
	if len(files) == 0 {
		staged, err := m.git().Fields(ctx, git.DiffArgs("diff-index", "--cached", "-z", "--name-only", "--no-renames", from)...)
		if err != nil {
			return errors.Join(cause, err)
		}
		for _, change := range changes {
			if touches(staged, change.Path) {
				files = append(files, change.Path)
			}
		}
	}
	if len(files) > 0 {
		return m.c.inTheWay(files...)
	}
	if isFull(m.c.State) || git.ExitCode(cause) < 0 {
		return cause
	}
	return &Error{Path: m.c.top(), Reason: cause.Error(), Next: "git -C " + shellword.Quote(m.c.top()) + " status", Cause: cause}
}

func (m *Move) deletedByBoth(change object.Change) bool {
	at, err := nodeOf(filepath.Join(m.c.top(), change.Path))
	return change.Status == 'D' && err == nil && at == node{}
}

// touches reports whether a path equals, contains, or is below one of names.
func touches(names []string, p string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return name == p || strings.HasPrefix(name, p+"/") || strings.HasPrefix(p, name+"/")
	})
}

// unitsOf returns the paths that each change in one step: files, and directories that become files or vice
// versa.
func unitsOf(changes []object.Change) []string {
	leaf := map[string]bool{}
	for _, change := range changes {
		leaf[change.Path] = true
	}
	units := map[string]bool{}
	for path := range leaf {
		units[unitOf(leaf, path)] = true
	}
	return sorted(units)
}

// unitOf returns the topmost parent directory of path that is in leaf, or path.
func unitOf(leaf map[string]bool, path string) string {
	for i, r := range path {
		if r == '/' && leaf[path[:i]] {
			return path[:i]
		}
	}
	return path
}

func sorted(set map[string]bool) []string {
	all := make([]string, 0, len(set))
	for item := range set {
		all = append(all, item)
	}
	slices.Sort(all)
	return all
}

// fingerprints returns the fingerprints of the units. Paths behind a symbolic link are not in the checkout.
func (m *Move) fingerprints(units []string) (map[string]fingerprint, error) {
	have := map[string]fingerprint{}
	for _, unit := range units {
		if _, blocked := m.c.blocked(unit); blocked {
			have[unit] = ""
			continue
		}
		is, err := fingerprintOf(filepath.Join(m.c.top(), unit))
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", filepath.Join(m.c.top(), unit), err)
		}
		have[unit] = is
	}
	return have, nil
}

// blocked returns the topmost parent of a path that exists and is not a directory.
func (c *Checkout) blocked(path string) (string, bool) {
	for i, r := range path {
		if r != '/' {
			continue
		}
		info, err := os.Lstat(filepath.Join(c.top(), path[:i]))
		if err != nil {
			return "", false
		}
		if !info.IsDir() {
			return path[:i], true
		}
	}
	return "", false
}

// compare records the index entries that differ. If the sparse-checkout rules have changed, git also
// changes entries outside the move, whose files would have to appear or disappear. Then compare fails.
func (m *Move) compare(before *index, changes []object.Change) error {
	ours := map[string]bool{}
	for _, change := range changes {
		ours[change.Path] = true
	}
	paths := map[string]bool{}
	for path, b := range before.entries {
		if !b.same(m.merged.entries[path]) {
			paths[path] = true
		}
	}
	for path, a := range m.merged.entries {
		if !a.same(before.entries[path]) {
			paths[path] = true
		}
	}
	for _, path := range sorted(paths) {
		if !ours[path] {
			return &Error{
				Path: m.c.top(), Reason: "its sparse checkout is not up to date", Files: []string{path},
				Next: "git -C " + shellword.Quote(m.c.top()) + " sparse-checkout reapply",
			}
		}
		m.rec.Changes = append(m.rec.Changes, change{
			Path: name(path), Old: before.entries[path].text(), New: m.merged.entries[path].text(),
		})
	}
	return nil
}

func (e entry) text() string {
	if e.Mode == "" {
		return ""
	}
	return e.Mode + " " + e.Oid
}
