package checkout

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/worktree/internal/git"
)

// Finish completes a move after the branch has moved.
func (m *Move) Finish(ctx context.Context) error {
	if m.rec.Token == "" {
		return nil // nothing was moved
	}
	failpoint.Point("checkout.settle")
	for i := range m.rec.Steps {
		m.removeParents(m.rec.Steps[i])
	}
	return m.end(ctx)
}

// Undo reverts a move at any stage. It does not change files that have been edited since.
func (m *Move) Undo(ctx context.Context) error {
	if m.rec.Token == "" {
		return nil
	}
	if m.finished() || len(m.rec.Changes) == 0 {
		return m.end(ctx)
	}
	if err := m.lock(ctx); err != nil {
		return err
	}
	failpoint.Point("checkout.undo.locked")
	for i, s := range slices.Backward(m.rec.Steps) {
		if err := m.back(i, s); err != nil {
			return err
		}
		failpoint.Point("checkout.undo.step")
	}
	for _, dir := range slices.Backward(m.rec.Dirs) {
		m.c.removeDir(string(dir))
	}
	if err := m.restoreIndex(ctx); err != nil {
		return err
	}
	failpoint.Point("checkout.undo.index")
	return m.end(ctx)
}

// finished reports whether the move has ended, so that only its files must be removed: see end.
func (m *Move) finished() bool {
	_, err := os.Lstat(m.c.State)
	return errors.Is(err, fs.ErrNotExist)
}

// back reverts one step, if it was executed and the file has not been edited since.
func (m *Move) back(i int, s step) error {
	path := string(s.Path)
	if s.Want == "" {
		return m.unremove(i, path)
	}
	present := filepath.Join(m.c.top(), path)
	here, err := nodeOf(present)
	if err != nil || !here.is(s.Node) {
		return err // not executed, or replaced by another file
	}
	is, err := fingerprintOf(present)
	if err != nil || is != s.Want {
		return err // edited since
	}
	if s.Have == "" {
		return between(m.c.top(), path, m.fresh(), path, move)
	}
	if n, err := nodeOf(m.aside(i)); err != nil || n != (node{}) { // the step used replace
		return errors.Join(err, m.bringBack(i, s))
	}
	return m.unexchange(s)
}

func (m *Move) unremove(i int, path string) error {
	if n, err := nodeOf(m.aside(i)); err != nil || n == (node{}) {
		return err
	}
	if err := m.makeParents(path); err != nil {
		return err
	}
	return ignore(between(m.old(), strconv.Itoa(i), m.c.top(), path, move), fs.ErrExist)
}

func (m *Move) unexchange(s step) error {
	path := string(s.Path)
	staged := filepath.Join(m.fresh(), path)
	if n, err := nodeOf(staged); err != nil || n == (node{}) {
		return err
	}
	if err := between(m.fresh(), path, m.c.top(), path, m.c.swap); err != nil {
		return err
	}
	if is, err := fingerprintOf(staged); err != nil || is == s.Want {
		return err
	}
	return between(m.fresh(), path, m.c.top(), path, m.c.swap) // edited just now
}

func (m *Move) aside(i int) string { return filepath.Join(m.old(), strconv.Itoa(i)) }

func ignore(err, known error) error {
	if errors.Is(err, known) {
		return nil
	}
	return err
}

// makeParents creates the missing parent directories of a path.
func (m *Move) makeParents(p string) error {
	for i, r := range p {
		if r == '/' {
			if err := m.c.makeDir(p[:i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeParents removes parent directories that a removal has left empty.
func (m *Move) removeParents(s step) {
	if s.Want != "" {
		return
	}
	for dir := path.Dir(string(s.Path)); dir != "." && !m.isLink(dir); dir = path.Dir(dir) {
		if !m.c.removeDir(dir) {
			return
		}
	}
}

func (m *Move) isLink(dir string) bool {
	return slices.ContainsFunc(m.rec.Changes, func(c change) bool {
		return string(c.Path) == dir && strings.HasPrefix(c.New, "160000")
	})
}

// restoreIndex restores the old index. If another git process has written the index since, it restores only
// the entries of the move.
func (m *Move) restoreIndex(ctx context.Context) error {
	index := filepath.Join(m.c.Git.Dir, "index")
	now, err := nodeOf(index)
	if err != nil {
		return err
	}
	kept, err := nodeOf(m.keptPath())
	if err != nil || kept == now || kept == (node{}) {
		return err
	}
	if now.is(m.rec.Index) {
		return os.Rename(m.keptPath(), index)
	}
	if err := m.revertEntries(ctx, index); err != nil {
		return err
	}
	return os.Remove(m.keptPath())
}

func (m *Move) revertEntries(ctx context.Context, index string) error {
	g := m.c.Git
	g.Index = filepath.Join(m.c.State, "index.reverted")
	_ = os.Remove(g.Index)
	if err := duplicate(index, g.Index); err != nil {
		return ignore(err, fs.ErrNotExist)
	}
	if err := revert(ctx, g, m.rec); err != nil {
		return err
	}
	if err := g.Run(ctx, "update-index", "-q", "--refresh"); err != nil && git.ExitCode(err) != 1 {
		return err // exit code 1 means that some files have changed
	}
	return os.Rename(g.Index, index)
}

// staged returns the entries of an index by path, in the form of change.Old.
func staged(ctx context.Context, g git.Repo) (map[string]string, error) {
	fields, err := g.Fields(ctx, "ls-files", "-z", "-s")
	entries := map[string]string{}
	for _, field := range fields {
		if meta, path, ok := strings.Cut(field, "\t"); ok {
			entries[path], _ = strings.CutSuffix(meta, " 0")
		}
	}
	return entries, err
}

// Has reports whether the index has the content of the commit from at all paths that differ between two commits.
func (c *Checkout) Has(ctx context.Context, from, to string) (bool, error) {
	changes, err := c.Git.Changes(ctx, from, to)
	if err != nil || len(changes) == 0 {
		return false, err
	}
	entries, err := staged(ctx, c.Git)
	if err != nil {
		return false, err
	}
	for _, change := range changes {
		want := ""
		if change.Status != 'A' {
			want = change.OldMode + " " + change.OldOid
		}
		if entries[change.Path] != want {
			return false, nil
		}
	}
	return true, nil
}

// revert restores the entries that still have the content that the move gave them.
func revert(ctx context.Context, g git.Repo, rec record) error {
	present, err := staged(ctx, g)
	if err != nil {
		return err
	}
	var lines []string
	for _, c := range rec.Changes {
		if c.New == c.Old || present[string(c.Path)] != c.New {
			continue
		}
		text := c.Old
		if text == "" {
			text = "0 " + strings.Repeat("0", len(rec.From))
		}
		lines = append(lines, text+"\t"+string(c.Path))
	}
	if len(lines) == 0 {
		return nil
	}
	_, err = g.Feed(ctx, git.Join(lines), "update-index", "-z", "--add", "--replace", "--index-info")
	return err
}

// end unlocks the index, rescues content that exists nowhere else, and removes the files of the move. Once
// State has been renamed, the move cannot be undone.
func (m *Move) end(ctx context.Context) error {
	if err := m.unlock(); err != nil {
		return err
	}
	failpoint.Point("checkout.unlocked")
	if !m.finished() {
		if err := m.rescue(ctx); err != nil {
			return err
		}
		if err := os.Rename(m.c.State, m.done()); err != nil {
			return err
		}
	}
	failpoint.Point("checkout.ended")
	if m.rec.Stage != m.c.State {
		if err := os.RemoveAll(m.rec.Stage); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(m.done()); err != nil {
		return err
	}
	return ignore(os.Remove(m.c.recordPath()), fs.ErrNotExist)
}

// rescue stores displaced files whose content is neither the old nor the new one: an editor may have
// written to an open file after it was displaced.
func (m *Move) rescue(ctx context.Context) error {
	files := map[string]string{}
	for i, s := range m.rec.Steps {
		for _, file := range []string{filepath.Join(m.fresh(), string(s.Path)), m.aside(i)} {
			is, err := fingerprintOf(file)
			if err != nil {
				return err
			}
			if is == "" || is == s.Have || is == s.Want {
				continue
			}
			if err := listFiles(files, string(s.Path), file); err != nil {
				return err
			}
		}
	}
	if len(files) == 0 {
		return nil
	}
	return m.c.Rescue(ctx, files)
}

// listFiles adds a file, or all files in a directory, to files. as is its path in the checkout.
func listFiles(files map[string]string, as, file string) error {
	return filepath.WalkDir(file, func(found string, entry fs.DirEntry, err error) error {
		if err == nil && (entry.Type().IsRegular() || entry.Type() == fs.ModeSymlink) {
			files[as+filepath.ToSlash(strings.TrimPrefix(found, file))] = found
		}
		return err
	})
}
