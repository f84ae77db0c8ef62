package checkout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/object"
)

// A Move is a move in progress. It ends with Finish or Undo.
type Move struct {
	c      *Checkout
	rec    record
	merged *index                 // the new index
	staged map[string]unix.Stat_t // the staged files
}

// Advance moves the index and the files from one commit to another. It keeps the index locked, so that the
// caller can move the branch. If it fails, nothing has changed. If the checkout prevents the move, the
// error is an *Error.
func (c *Checkout) Advance(ctx context.Context, from, to string) (*Move, error) {
	changes, err := c.Git.Changes(ctx, from, to)
	if err != nil || len(changes) == 0 {
		return &Move{c: c}, err
	}
	merge := func(m *Move) error { return m.merge(ctx, from, to, changes) }
	m, err := c.run(ctx, record{From: from, To: to}, merge)
	if errors.Is(err, unix.EXDEV) && !c.stageAtTop { // bind mounts of the same device
		c.stageAtTop = true
		m, err = c.run(ctx, record{From: from, To: to}, merge)
	}
	if errors.Is(err, unix.EXDEV) {
		err = &Error{
			Path: c.top(), Reason: "one of its directories is on another file system", Cause: err,
			Next: "git -C " + shellword.Quote(c.top()) + " switch --detach, and resume",
		}
	}
	return m, err
}

// run begins a move, calls plan to prepare it, and applies it. If anything fails, it undoes the move.
func (c *Checkout) run(ctx context.Context, rec record, plan func(*Move) error) (*Move, error) {
	m := &Move{c: c, rec: rec, staged: map[string]unix.Stat_t{}}
	m.rec.Checkout, m.rec.Ref, m.rec.Task, m.rec.Token = c.top(), c.Ref, c.Task, cmp.Or(c.Token, newToken())
	err := m.begin(ctx)
	if err == nil {
		err = plan(m)
	}
	if err == nil {
		failpoint.Point("checkout.staged")
		if err = m.sync(); err == nil {
			err = m.save()
		}
		if err == nil {
			failpoint.Point("checkout.recorded")
			err = m.apply()
		}
	}
	if err != nil {
		err = c.explain(err)
		return nil, errors.Join(err, m.Undo(context.WithoutCancel(ctx)))
	}
	return m, nil
}

// begin records the move, then locks the index.
func (m *Move) begin(ctx context.Context) error {
	if left, _, err := m.c.Left(); err != nil || left != nil {
		return errors.Join(err, errors.New("coven was killed while it updated "+m.c.top()))
	}
	m.rec.Stage = m.c.State
	apart, err := m.c.apart()
	if err != nil {
		return err
	}
	if apart {
		m.rec.Stage = filepath.Join(m.c.top(), ".coven-"+strings.ToLower(m.rec.Token[len(m.rec.Token)-8:]))
	}
	if err := errors.Join(os.RemoveAll(m.c.State), os.RemoveAll(m.done())); err != nil {
		return err
	}
	if err := m.save(); err != nil {
		return err
	}
	failpoint.Point("checkout.begun")
	if err := errors.Join(os.MkdirAll(m.c.State, 0o755), m.makeStage()); err != nil {
		return fmt.Errorf("allocate space for new files of %s: %w", m.c.top(), err)
	}
	if err := m.lock(ctx); err != nil {
		return err
	}
	failpoint.Point("checkout.locked")
	return m.c.onBranch()
}

// onBranch checks, while the index is locked, that the checkout is still on the branch.
func (c *Checkout) onBranch() error {
	file := filepath.Join(c.Git.Dir, "HEAD")
	info, err := os.Lstat(file)
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	head, err := regularfile.Read(file, object.MaxGitFile)
	if err == nil && strings.TrimSpace(string(head)) != "ref: "+c.Ref {
		return &Error{Path: c.top(), Reason: "HEAD was just switched to another branch", Next: "git -C " + shellword.Quote(c.top()) + " status"}
	}
	return err
}

// apply executes all steps, then publishes the index.
func (m *Move) apply() error {
	for _, dir := range m.rec.Dirs {
		if err := m.c.makeDir(string(dir)); err != nil {
			return err
		}
	}
	for i, s := range m.rec.Steps {
		failpoint.Point("checkout.step.before")
		if err := m.do(i, s); err != nil {
			return err
		}
		failpoint.Point("checkout.step.after")
	}
	return m.publish()
}

// do executes one step. It reverts the step if the displaced content was edited in the meantime.
func (m *Move) do(i int, s step) error {
	path := string(s.Path)
	switch {
	case s.Have == "":
		err := between(m.fresh(), path, m.c.top(), path, move)
		if errors.Is(err, fs.ErrExist) || gone(err) {
			return m.c.inTheWay(path)
		}
		return err
	case s.Want == "":
		return m.remove(i, s)
	}
	err := between(m.fresh(), path, m.c.top(), path, m.c.swap)
	if errors.Is(err, errNoExchange) {
		return m.replace(i, s)
	}
	if gone(err) {
		return m.c.inTheWay(path)
	}
	if err != nil {
		return err
	}
	failpoint.Point("checkout.exchanged")
	if is, err := fingerprintOf(filepath.Join(m.fresh(), path)); err == nil && is == s.Have {
		return nil
	}
	err = between(m.fresh(), path, m.c.top(), path, m.c.swap)
	return errors.Join(m.c.inTheWay(path), err)
}

func (m *Move) remove(i int, s step) error {
	path := string(s.Path)
	err := between(m.c.top(), path, m.old(), strconv.Itoa(i), move)
	if gone(err) {
		return nil // the user has already removed it
	}
	if err != nil {
		return err
	}
	if is, err := fingerprintOf(filepath.Join(m.old(), strconv.Itoa(i))); err == nil && is == s.Have {
		return nil
	}
	err = between(m.old(), strconv.Itoa(i), m.c.top(), path, move)
	if errors.Is(err, fs.ErrExist) {
		err = nil // end will rescue it
	}
	return errors.Join(m.c.inTheWay(path), err)
}

// replace exchanges files on a file system without an atomic exchange.
func (m *Move) replace(i int, s step) error {
	path, aside := string(s.Path), strconv.Itoa(i)
	if isDir(s.Have) || isDir(s.Want) {
		return m.c.unable("a directory is exchanged", path)
	}
	to, done, err := at(m.old(), aside)
	if err != nil {
		return err
	}
	defer done()
	err = between(m.fresh(), path, m.c.top(), path, func(from, there place) error { return replace(from, there, to) })
	switch {
	case gone(err):
		return m.c.inTheWay(path)
	case errors.Is(err, unix.EPERM), errors.Is(unsupported(err), errNoExchange):
		return m.c.unable("has no hard links", path)
	case err != nil:
		return err
	}
	if is, err := fingerprintOf(filepath.Join(m.old(), aside)); err == nil && is == s.Have {
		return nil
	}
	return errors.Join(m.c.inTheWay(path), m.bringBack(i, s))
}

// unable returns the error for a file system without an operation that the landing needs. If the user
// switches the checkout to another branch, the landing does not need the operation.
func (c *Checkout) unable(why, path string) *Error {
	return &Error{
		Path: c.top(), Reason: errNoExchange.Error() + ", and " + why, Files: []string{path},
		Next: "git -C " + shellword.Quote(c.top()) + " switch --detach, and resume",
	}
}

// bringBack restores a file that replace linked to its aside name.
func (m *Move) bringBack(i int, s step) error {
	return between(m.old(), strconv.Itoa(i), m.c.top(), string(s.Path), func(from, to place) error {
		return unix.Renameat(from.dir, from.name, to.dir, to.name)
	})
}

// gone reports whether err means that a path, or one of its parent directories, does not exist.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

func (c *Checkout) inTheWay(files ...string) *Error {
	slices.Sort(files)
	return &Error{
		Path: c.top(), Reason: "files are in the way", Files: slices.Compact(files),
		Next: "commit them or move them out of the way in " + c.top(),
	}
}

// makeDir creates a directory whose parents exist. It may already exist.
func (c *Checkout) makeDir(path string) error {
	p, done, err := at(c.top(), path)
	if gone(err) {
		return c.inTheWay(path)
	}
	if err != nil {
		return err
	}
	defer done()
	if err := unix.Mkdirat(p.dir, p.name, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return &os.PathError{Op: "mkdir", Path: path, Err: err}
	}
	return nil
}

// removeDir removes a directory if it is empty. It reports whether it did.
func (c *Checkout) removeDir(path string) bool {
	p, done, err := at(c.top(), path)
	if err != nil {
		return false
	}
	defer done()
	return unix.Unlinkat(p.dir, p.name, unix.AT_REMOVEDIR) == nil
}

// publish sets the timestamps of the new files in the merged index and renames the index into place. The
// file does not grow, so this needs no disk space.
//
// git compares timestamps with a resolution of a second, and reads files that were written in the same
// second as the index. Therefore the files are checked again after writing the index: earlier edits are
// detected here, later ones by git.
func (m *Move) publish() error {
	for edited := m.stampAll(); ; {
		if err := m.writeIndex(); err != nil {
			return err
		}
		before := edited
		if edited = m.stampAll(); edited == before {
			break
		}
	}
	if err := m.syncIndex(); err != nil {
		return err
	}
	failpoint.Point("checkout.index.before")
	if err := os.Rename(m.mergedPath(), filepath.Join(m.c.Git.Dir, "index")); err != nil {
		return err
	}
	failpoint.Point("checkout.index.after")
	return nil
}

// sync waits until the staged files are on disk.
func (m *Move) sync() error {
	if m.c.NoSync {
		return nil
	}
	err := regularfile.SyncFS(m.c.State)
	if m.rec.Stage != m.c.State {
		err = errors.Join(err, regularfile.SyncFS(m.rec.Stage))
	}
	return err
}

func (m *Move) syncIndex() error {
	if m.c.NoSync {
		return nil
	}
	file, err := os.OpenFile(m.mergedPath(), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// stampAll sets the timestamps in the entries of new files. It returns the number of files that were edited
// since they were staged, which git must read again.
func (m *Move) stampAll() (edited int) {
	for path, staged := range m.staged {
		now, err := statOf(filepath.Join(m.c.top(), path))
		if err != nil || identity(now) != identity(staged) || now.Mtim != staged.Mtim || now.Size != staged.Size {
			staged, now = unix.Stat_t{}, unix.Stat_t{}
			edited++
		}
		m.merged.stamp(path, staged, now)
	}
	m.merged.seal()
	return edited
}

func (m *Move) writeIndex() error {
	file, err := os.OpenFile(m.mergedPath(), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(m.merged.raw, 0)
	return errors.Join(err, file.Close())
}

func (m *Move) mergedPath() string { return filepath.Join(m.c.State, "index") }
func (m *Move) keptPath() string   { return filepath.Join(m.c.State, "index.old") }
func (m *Move) fresh() string      { return filepath.Join(m.rec.Stage, "new") }
func (m *Move) old() string        { return filepath.Join(m.rec.Stage, "old") }
func (m *Move) done() string       { return m.c.State + ".done" }

// git returns a git.Repo that uses the merged index.
func (m *Move) git() git.Repo {
	g := m.c.Git
	g.Index = m.mergedPath()
	return g
}
