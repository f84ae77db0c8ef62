// Package object reads refs and objects of repositories in process, with go-git, if the result is the same as
// git's (see Store). Its only user is package git, which runs git otherwise.
package object

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/config"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"

	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/ref"
)

// ErrUnsupported means that only git can answer.
var ErrUnsupported = errors.New("this repository is not read in process")

// A Store reads refs and objects of a repository in process. Every method fails if git must be run instead:
// for other formats than SHA-1 objects and refs in files, shallow or partial clones, grafts, large packs, or
// damage. A Store is safe for concurrent use.
type Store struct {
	dir string // the common git directory

	mu     sync.Mutex
	opened *Storage // nil if it must be opened
	read   layout   // the layout of dir when opened was opened
}

// Open returns the Store of a common git directory. It reads nothing yet.
func Open(dir string) *Store { return &Store{dir: dir} }

// IsReadable reports whether the repository has the common format.
func (s *Store) IsReadable() bool { return s.use(func(*Storage) error { return nil }) == nil }

// Read calls read with the storage and the IDs of the named objects. A name is an ID, HEAD of the git
// directory dir, or the full name of a ref.
func Read[T any](s *Store, dir string, names []string, read func(*Storage, []ID) (T, error)) (value T, err error) {
	ids := make([]ID, len(names))
	for i, name := range names {
		if ids[i], err = s.named(dir, name); err != nil {
			return value, err
		}
	}
	err = s.use(func(opened *Storage) error {
		value, err = read(opened, ids)
		return err
	})
	return value, err
}

// use calls f with the storage. If f does not find an object, a repack may have moved it. Then use opens
// the storage again and repeats the call.
func (s *Store) use(f func(*Storage) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for again := false; ; again = true {
		opened, err := s.open()
		if err != nil {
			return err
		}
		if err = safely(f, opened); err == nil || again || !isMissing(err) {
			return err
		}
		s.read = layout{} // it opens the storage again
	}
}

// safely calls f and turns a panic into an error, so that git handles damaged data.
func safely(f func(*Storage) error, opened *Storage) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("go-git: %v", p)
		}
	}()
	return f(opened)
}

func isMissing(err error) bool {
	return errors.Is(err, plumbing.ErrObjectNotFound) || errors.Is(err, dotgit.ErrPackfileNotFound) || errors.Is(err, fs.ErrNotExist)
}

func (s *Store) open() (*Storage, error) {
	now := readLayout(s.dir)
	if s.opened != nil && now == s.read {
		return s.opened, nil
	}
	if s.opened != nil {
		_ = s.opened.close() // read only
		s.opened = nil
	}
	if !now.readable(s.dir) {
		return nil, ErrUnsupported
	}
	opened, err := openStorage(s.dir)
	if err == nil {
		s.opened, s.read = opened, now
	}
	return opened, err
}

// layout is the state of the files that determine how a git directory is read. If it changes, everything is
// read again.
type layout struct{ config, shallow, grafts, alternates, packs file.Stamp }

func readLayout(dir string) layout {
	at := func(name string) file.Stamp { return file.StampOf(filepath.Join(dir, name)) }
	return layout{config: at("config"), shallow: at("shallow"), grafts: at("info/grafts"), alternates: at(alternatesFile), packs: at("objects/pack")}
}

// readable reports whether go-git reads this git directory in the same way as git.
func (l layout) readable(dir string) bool {
	return l.config != file.Stamp{} && l.shallow == file.Stamp{} && l.grafts == file.Stamp{} && plainFormat(filepath.Join(dir, "config"))
}

// plainFormat reports whether a repository has SHA-1 objects, refs in files, and no other extension, so
// that every implementation finds its objects and refs.
func plainFormat(file string) bool {
	content, err := readRegular(file)
	settings := config.New()
	if err != nil || config.NewDecoder(bytes.NewReader(content)).Decode(settings) != nil {
		return false
	}
	if version := settings.Section("core").Option("repositoryformatversion"); version != "0" && version != "1" && version != "" {
		return false
	}
	for _, o := range settings.Section("extensions").Options {
		plain := map[string]string{"objectformat": "sha1", "refstorage": "files"}[strings.ToLower(o.Key)]
		if plain == "" || o.Value != plain {
			return false
		}
	}
	return true
}

// Ref returns the object ID of a ref, or ErrNoRef. A Store does not contain the refs of single worktrees.
func (s *Store) Ref(name string) (oid string, err error) {
	for _, own := range []string{"refs/bisect/", "refs/worktree/", "refs/rewritten/"} {
		if strings.HasPrefix(name, own) {
			return "", ErrUnsupported
		}
	}
	if !strings.HasPrefix(name, "refs/") {
		return "", ErrUnsupported
	}
	err = s.use(func(opened *Storage) error {
		oid, err = s.resolve(opened, name)
		return err
	})
	return oid, err
}

// maxSymbolic is the maximum number of symbolic refs to follow, as in git.
const maxSymbolic = 5

func (s *Store) resolve(opened *Storage, name string) (string, error) {
	for range maxSymbolic {
		_, looseErr := os.Lstat(filepath.Join(s.dir, name))
		found, err := opened.refs.Reference(plumbing.ReferenceName(name))
		switch {
		case errors.Is(err, plumbing.ErrReferenceNotFound) && looseErr != nil && isAbsent(looseErr):
			return "", fmt.Errorf("%s: %w", name, ref.ErrNoRef)
		case err != nil:
			return "", err
		case looseErr == nil && !s.isLoose(name, found):
			return "", ErrUnsupported // the file could not be read, and packed-refs has an old value
		case found.Type() == plumbing.HashReference:
			return found.Hash().String(), nil
		}
		name = found.Target().String()
	}
	return "", ErrUnsupported
}

func isAbsent(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// isLoose reports whether the file of a ref has this value. It also returns true if there is no such file.
func (s *Store) isLoose(name string, ref *plumbing.Reference) bool {
	info, err := os.Lstat(filepath.Join(s.dir, name))
	if err != nil || info.IsDir() {
		return true
	}
	content, err := readRegular(filepath.Join(s.dir, name))
	words := ref.Strings()
	return err == nil && strings.TrimSpace(string(content)) == words[1]
}

// named returns the object ID for a name: an ID, HEAD of a git directory, or the full name of a ref.
func (s *Store) named(dir, name string) (plumbing.Hash, error) {
	if name == "HEAD" {
		branch, err := s.Branch(dir)
		if err != nil {
			return plumbing.ZeroHash, err
		}
		name = branch
	}
	if strings.HasPrefix(name, "refs/") {
		oid, err := s.Ref(name)
		if err != nil {
			return plumbing.ZeroHash, err
		}
		name = oid
	}
	return hash(name)
}

// Branch returns the full name of the branch that HEAD of a git directory is attached to.
func (s *Store) Branch(dir string) (branch string, err error) {
	err = s.use(func(*Storage) error {
		head := filepath.Join(dir, "HEAD")
		if info, err := os.Lstat(head); err != nil || !info.Mode().IsRegular() {
			return ErrUnsupported // a symbolic link is an old format
		}
		content, err := readRegular(head)
		if err != nil {
			return err
		}
		name, attached := strings.CutPrefix(string(content), "ref: ")
		branch = strings.TrimSpace(name)
		if !attached || !strings.HasPrefix(branch, "refs/heads/") {
			return ErrUnsupported
		}
		return nil
	})
	return branch, err
}
