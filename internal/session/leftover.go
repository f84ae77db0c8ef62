package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// leftoverAge is the minimum age of an abandoned file. Files in use are locked, or
// renamed shortly after their creation.
const leftoverAge = time.Minute

// Leftover is a file or directory of a killed process that no session needs.
type Leftover struct {
	Path string // absolute
	Text string // description for users

	root, id string // the project and the session
	alone    bool   // remove only this file, not a directory tree
}

// temporary matches the names of temporary files in a session's directory.
var temporary = lazyregexp.New(`^\.(plan\.yaml|metadata\.json|working\.json|[a-z0-9][a-z0-9_-]*\.md)-?[0-9]+$`)

// FindLeftovers lists the leftovers in a project: requests to ended or
// missing sessions, sessions that never started, and unfinished files.
func FindLeftovers(root string, now time.Time) ([]Leftover, error) {
	var all []Leftover
	inboxes, err := names(filepath.Join(root, inboxDir))
	if err != nil {
		return nil, err
	}
	for _, id := range inboxes {
		if !needsInbox(root, id) {
			all = append(all, Leftover{Path: filepath.Join(root, inboxDir, id), Text: "requests to a session that is over", root: root, id: id})
		}
	}
	sessions, err := names(filepath.Join(root, Dir))
	if err != nil {
		return nil, err
	}
	for _, id := range sessions {
		all = append(all, leftoversOf(root, id, now)...)
	}
	return all, nil
}

// leftoversOf lists the leftovers in a session's directory.
func leftoversOf(root, id string, now time.Time) []Leftover {
	dir := filepath.Join(root, Dir, id)
	if held(dir) {
		return nil
	}
	if NeverStarted(root, id) && old(dir, now) {
		return []Leftover{{Path: dir, Text: "a session that never began", root: root, id: id}}
	}
	files, err := names(dir)
	if err != nil {
		return nil // not a session, or removed concurrently
	}
	var found []Leftover
	for _, name := range files {
		file := filepath.Join(dir, name)
		if temporary.MatchString(name) && old(file, now) {
			found = append(found, Leftover{Path: file, Text: "a file that was never finished", root: root, id: id, alone: true})
		}
	}
	return found
}

// needsInbox reports whether a process may still read requests to a session.
func needsInbox(root, id string) bool {
	return Exists(root, id) && !IsOver(root, id) && !NeverStarted(root, id)
}

// Remove removes the leftover. It returns ErrBusy if a process is running the session again.
func (l Leftover) Remove() error {
	free, err := reserve(filepath.Join(l.root, Dir, l.id))
	if err != nil {
		return fmt.Errorf("session %s: %w", l.id, err)
	}
	defer free()
	if l.needed() {
		return fmt.Errorf("session %s: %w", l.id, ErrBusy)
	}
	remove := os.RemoveAll
	if l.alone {
		remove = os.Remove
	}
	if err := remove(l.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the rest of session %s: %w", l.id, err)
	}
	return nil
}

// needed reports whether the leftover has become part of a session since the search.
// The caller holds the session's lock.
func (l Leftover) needed() bool {
	dir := filepath.Join(l.root, Dir, l.id)
	v, err := Load(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return !l.alone // keep the files of a damaged record, except for unfinished ones
	}
	if l.alone || v.Started.IsZero() {
		return false
	}
	return l.Path == dir || v.Status != Completed && v.Status != Failed && v.Status != Cancelled
}

// reserve locks the session in dir against other writers. A session without a journal
// needs no lock.
func reserve(dir string) (free func(), err error) {
	f, err := regularfile.OpenFileIn(dir, eventsFile, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return func() {}, nil
	}
	if err != nil {
		return nil, err
	}
	if err := acquire(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil
}

// old reports whether a file is old enough to be abandoned.
func old(file string, now time.Time) bool {
	info, err := os.Lstat(file)
	return err == nil && now.Sub(info.ModTime()) >= leftoverAge
}

// names returns the names of a directory's entries. A missing directory is empty.
func names(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look for leftovers: %w", err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all, nil
}
