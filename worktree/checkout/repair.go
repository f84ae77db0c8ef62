package checkout

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/worktree/internal/git"
	"golang.org/x/sys/unix"
)

// Repair restores a checkout to from after git was killed while it moved the checkout
// to another commit: versions of coven until November 2026 let git write the files in
// place. It restores files that are missing or contain a beginning of their new
// content, which the user cannot have written. Other files do not change.
func (c *Checkout) Repair(ctx context.Context, from, to string) error {
	changes, err := c.Git.Changes(ctx, from, to)
	if err != nil {
		return err
	}
	m, err := c.run(ctx, record{From: from, To: to, ByGit: true}, func(m *Move) error { return m.repair(ctx, changes) })
	if err != nil {
		return err
	}
	return m.Settle(ctx)
}

func (m *Move) repair(ctx context.Context, changes []git.Change) error {
	before, err := m.copyIndex(ctx, m.rec.From)
	if err != nil {
		return err
	}
	for _, c := range changes {
		m.rec.Changes = append(m.rec.Changes, change{
			Path: name(c.Path), Old: entryText(c.OldMode, c.OldOid), New: entryText(c.Mode, c.Oid),
		})
	}
	if err := revert(ctx, m.git(), m.rec); err != nil {
		return err
	}
	if err := m.loadMerged(m.rec.From); err != nil {
		return err
	}
	broken, err := m.broken(ctx, before)
	if err != nil {
		return err
	}
	var files []string
	for path := range broken {
		if m.merged.entries[path].file() {
			files = append(files, path)
		}
	}
	if err := m.write(ctx, m.mergedPath(), m.fresh(), files); err != nil {
		return err
	}
	if err := m.know(files); err != nil {
		return err
	}
	return m.planRepair(broken, before)
}

func (m *Move) planRepair(broken map[string]fingerprint, before *index) error {
	leaf, units := map[string]bool{}, map[string]bool{}
	for _, c := range m.rec.Changes {
		leaf[string(c.Path)] = true
	}
	for path := range broken {
		units[unitOf(leaf, path)] = true
	}
	p := &planning{m: m, have: broken, before: before}
	for _, unit := range sorted(units) {
		if !m.allBroken(unit, broken) {
			continue // it contains a user's file
		}
		staged := filepath.Join(m.fresh(), unit)
		have, err1 := take(filepath.Join(m.c.top(), unit))
		want, err2 := take(staged)
		at, err3 := nodeOf(staged)
		if err := errors.Join(err1, err2, err3); err != nil {
			return err
		}
		if have != want {
			p.steps = append(p.steps, step{Path: name(unit), Have: have, Want: want, Node: at})
		}
	}
	m.rec.Steps, m.rec.Dirs = p.ordered(), p.missing()
	var err error
	m.rec.Index, err = nodeOf(m.mergedPath())
	return err
}

// allBroken reports whether all files at or below a path are broken.
func (m *Move) allBroken(unit string, broken map[string]fingerprint) bool {
	top := filepath.Join(m.c.top(), unit)
	err := filepath.WalkDir(top, func(file string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && entry.IsDir() {
			return nil
		}
		if _, ok := broken[unit+filepath.ToSlash(strings.TrimPrefix(file, top))]; err == nil && !ok {
			err = fs.ErrExist
		}
		return err
	})
	return err == nil
}

// broken returns the content of the paths that git has changed, completely or
// partially.
func (m *Move) broken(ctx context.Context, before *index) (map[string]fingerprint, error) {
	if err := m.stageOther(ctx); err != nil {
		return nil, err
	}
	broken := map[string]fingerprint{}
	for _, c := range m.rec.Changes {
		path := string(c.Path)
		present := filepath.Join(m.c.top(), path)
		have, err := take(present)
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(c.Old, "160000") || before.entries[path].skip {
			continue
		}
		partial, err := begins(present, filepath.Join(m.other(), path))
		if err != nil {
			return nil, err
		}
		wanted := m.merged.entries[path].file()
		if partial || wanted && (have == "" || isDir(have)) {
			broken[path] = have
		}
	}
	return broken, nil
}

func (m *Move) other() string { return filepath.Join(m.c.State, "other") }

// stageOther lets git write the files of To for comparison.
func (m *Move) stageOther(ctx context.Context) error {
	var paths []string
	for _, c := range m.rec.Changes {
		if c.New != "" && !strings.HasPrefix(c.New, "160000") {
			paths = append(paths, string(c.Path))
		}
	}
	if err := os.MkdirAll(m.other(), 0o777); err != nil || len(paths) == 0 {
		return err
	}
	g := m.git()
	g.Index = filepath.Join(m.c.State, "index.other")
	if err := g.Run(ctx, "read-tree", m.rec.To); err != nil {
		return err
	}
	return m.write(ctx, g.Index, m.other(), paths)
}

// begins reports whether the content of a file is a prefix of that of another file.
func begins(file, whole string) (bool, error) {
	info, err := os.Lstat(file)
	if gone(err) {
		return false, nil
	}
	if err != nil || !info.Mode().IsRegular() {
		is, err1 := take(file)
		other, err2 := take(whole)
		return is != "" && is == other, errors.Join(err, err1, err2)
	}
	part, err := os.ReadFile(file)
	if err != nil {
		return false, err
	}
	all, err := os.ReadFile(whole)
	if gone(err) || errors.Is(err, unix.EISDIR) {
		return false, nil
	}
	return bytes.HasPrefix(all, part), err
}

func entryText(mode, oid string) string {
	if strings.Trim(mode, "0") == "" {
		return ""
	}
	return mode + " " + oid
}
