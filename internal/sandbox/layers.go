package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/coven-run/coven/internal/file/tempdir"
	"github.com/coven-run/coven/internal/process/overlay"
)

// layers stores the changes of a task's programs to the caches of the user that it shows them. Programs that run at the
// same time must not write to the same directory of an overlay, nor to one that another reads. Therefore each has a
// layer of its own on top of the base, which does not change while programs run. When none runs, the layers are merged
// into the base, so that later programs see all changes.
//
// Only one process of coven runs programs of a task at a time, and they do not outlive it, so the lock is in memory. The
// programs can change the directories only through the overlays.
type layers struct {
	dir string // with a directory for the base, and one for each layer

	mu      sync.Mutex
	running int
	next    int // number of the next layer
}

// LayersSuffix distinguishes the directory of a task's layers from that of its other caches.
const LayersSuffix = ".layers"

// Directories of a layer, and the base.
const (
	baseName    = "base"
	changesName = "changes"
	workName    = "work"
	maskName    = "mask"
)

// baseOf returns the base of a cache. dir is that of the layers.
func baseOf(dir, key string) string { return filepath.Join(dir, baseName, key) }

// begin makes a layer for a program that starts, and returns the caches that it sees and a function for its end.
func (l *layers) begin(caches []shownCache) (dirs []overlay.Dir, end func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running == 0 {
		l.merge() // what an earlier process left
	}
	l.next++
	layer := filepath.Join(l.dir, strconv.Itoa(l.next))
	for _, c := range caches {
		d, err := c.in(layer, baseOf(l.dir, c.key))
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("prepare the cache %s: %w", c.user, err), tempdir.Remove(layer))
		}
		dirs = append(dirs, d)
	}
	l.running++
	return dirs, l.end, nil
}

// end merges the layers if no other program runs.
func (l *layers) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running--; l.running == 0 {
		l.merge()
	}
}

// merge merges all layers into the base. A layer that cannot be merged is lost: its programs ended, and caches can be
// filled again.
func (l *layers) merge() {
	for _, layer := range l.present() {
		dir := filepath.Join(l.dir, strconv.Itoa(layer))
		entries, _ := os.ReadDir(dir) // none if it is gone
		for _, entry := range entries {
			_ = mergeDir(filepath.Join(dir, entry.Name(), changesName), baseOf(l.dir, entry.Name()))
		}
		_ = tempdir.Remove(dir)
		l.next = max(l.next, layer)
	}
}

// present returns the numbers of the existing layers in order.
func (l *layers) present() (numbers []int) {
	entries, _ := os.ReadDir(l.dir) // there are none at first
	for _, entry := range entries {
		if n, err := strconv.Atoi(entry.Name()); err == nil {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers
}

// mergeDir moves the files of an overlay's upper directory to the directory below it, with the kernel's marks for files
// and directories of the user that are deleted or replaced. It follows no links. Programs choose the modes.
func mergeDir(from, to string) error {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if err := errors.Join(os.Chmod(from, 0o700), os.Chmod(to, 0o700)); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	for _, entry := range entries {
		err = errors.Join(err, mergeEntry(filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name()), entry.IsDir()))
	}
	return errors.Join(err, os.Chmod(to, info.Mode().Perm()))
}

func mergeEntry(from, to string, isDir bool) error {
	old, err := os.Lstat(to)
	if err == nil && isDir && old.IsDir() && !replaces(from) {
		return mergeDir(from, to)
	}
	if err == nil && (isDir || old.IsDir()) {
		err = tempdir.Remove(to)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !isDir {
		return os.Rename(from, to)
	}
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	// A directory that moves must be writable.
	return errors.Join(os.Chmod(from, 0o700), os.Rename(from, to), os.Chmod(to, info.Mode().Perm()))
}

// replaces reports whether a directory of an overlay hides the one of the same name below it.
func replaces(dir string) bool {
	var value [1]byte
	n, err := unix.Lgetxattr(dir, "user.overlay.opaque", value[:])
	return err == nil && n == 1 && value[0] == 'y'
}

// in returns the cache as a program sees it, and makes the directories of its layer.
func (c shownCache) in(layer, base string) (overlay.Dir, error) {
	own := filepath.Join(layer, c.key)
	d := overlay.Dir{
		Places: c.places, Plain: base,
		Lower: []string{base}, Upper: filepath.Join(own, changesName), Work: filepath.Join(own, workName),
	}
	if len(c.hidden) > 0 {
		mask := filepath.Join(own, maskName)
		if c.mask(mask) != nil { // the file system has no whiteouts
			return overlay.Dir{Places: c.places, Plain: base}, os.MkdirAll(base, 0o700)
		}
		d.Lower = append(d.Lower, mask)
	}
	d.Lower = append(d.Lower, c.user)
	return d, errors.Join(os.MkdirAll(base, 0o700), os.MkdirAll(d.Upper, 0o700), os.MkdirAll(d.Work, 0o700))
}

// mask makes a directory that hides paths of the user's directory: the kernel shows no file below a whiteout.
func (c shownCache) mask(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, path := range c.hidden {
		at := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil && !errors.Is(err, unix.ENOTDIR) {
			return err
		}
		err := unix.Mknod(at, unix.S_IFCHR, 0)
		if err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, unix.ENOTDIR) { // below another hidden one
			return err
		}
	}
	return nil
}
