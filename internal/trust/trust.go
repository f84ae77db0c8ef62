// Package trust keeps what a person lets a repository make run outside of the
// fence: plugins, and later other kinds of things.
//
// Rules:
//   - What is trusted is bytes: an item has a kind, a name and one SHA-256, for one
//     repository, which is known by its common git directory without links. Other
//     bytes under the same name are not trusted.
//   - The store is a file of the person's, trust.json beside their settings. One
//     that is in the repository it is about, or is reached through it, is refused:
//     a repository would vouch for itself.
//   - It is written whole, by one writer at a time, and nobody else may write it.
//     One that is damaged, that others can write, or that a newer coven wrote is an
//     error. Then nothing is trusted, and it is not written over.
//   - COVEN_TRUST=1 in the environment trusts everything, for one process. The store
//     is not even read then, and nothing is added to it.
package trust

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/google/renameio/v2"
	"github.com/rogpeppe/go-internal/lockedfile"

	"github.com/coven-run/coven/internal/regularfile"
)

// Variable is what trusts everything when it is 1.
const Variable = "COVEN_TRUST"

// The kinds of items.
const (
	KindPlugin   = "plugin"   // named as its file
	KindVariable = "variable" // of the user's environment, which the repository's env.pass names
	KindSecret   = "secret"   // GRIMOIRE:NAME:HASH: taken from the user's environment by a grimoire of the repository
)

const (
	fileName = "trust.json"
	lockName = "trust.lock"
	format   = 1
	maxFile  = 4 << 20
	dirMode  = 0o700
)

// Item is something that is trusted. Of each kind and name there is one.
type Item struct {
	Kind   string    `json:"kind"`
	Name   string    `json:"name"`
	What   string    `json:"what"`   // for people: the file, the command
	SHA256 string    `json:"sha256"` // of its bytes, in hex
	Since  time.Time `json:"since"`
}

// file is the store as it is on disk.
type file struct {
	Version      int               `json:"version"`
	Repositories map[string][]Item `json:"repositories"` // by common git directory
}

// Error says why the store cannot be used.
type Error struct {
	File   string
	Reason string
	Next   string // what helps
}

// Error returns "FILE: REASON".
func (e *Error) Error() string { return e.File + ": " + e.Reason }

// Options say whose trust it is, and in what.
type Options struct {
	UserDir        string         // where the person's settings for coven are
	GitDir         string         // the repository's common git directory
	UntrustedPaths UntrustedPaths // of the repository
	Getenv         func(string) string
	Stop           <-chan struct{} // ends the wait for somebody else's lock; nil: nothing does
}

// Store is what a person trusts of one repository. It may be used by several
// goroutines and processes.
type Store struct{ options Options }

// New returns the store of a repository. It reads nothing.
func New(o Options) *Store { return &Store{o} }

// Everything reports whether everything is trusted, for this process.
func (s *Store) Everything() bool { return s.options.Getenv(Variable) == "1" }

// Items returns what is trusted, by kind and name. The error is an *Error when
// the store cannot be used.
func (s *Store) Items() ([]Item, error) {
	path, repo, err := s.where()
	if err != nil {
		return nil, err
	}
	f, err := read(path)
	return f.Repositories[repo], err
}

// Find returns the item of a kind and name.
func (s *Store) Find(kind, name string) (Item, bool, error) {
	items, err := s.Items()
	i := slices.IndexFunc(items, func(it Item) bool { return it.Kind == kind && it.Name == name })
	if err != nil || i < 0 {
		return Item{}, false, err
	}
	return items[i], true, nil
}

// Add trusts items, in the place of those of the same kinds and names.
func (s *Store) Add(items ...Item) error {
	return s.change(func(known []Item) []Item {
		known = slices.DeleteFunc(known, func(k Item) bool {
			return slices.ContainsFunc(items, func(it Item) bool { return it.Kind == k.Kind && it.Name == k.Name })
		})
		return append(known, items...)
	})
}

// Remove ends the trust in those items that gone says, and returns them.
func (s *Store) Remove(gone func(Item) bool) ([]Item, error) {
	var removed []Item
	err := s.change(func(known []Item) []Item {
		return slices.DeleteFunc(known, func(it Item) bool {
			if !gone(it) {
				return false
			}
			removed = append(removed, it)
			return true
		})
	})
	return removed, err
}

// change reads, changes and writes the items of the repository. Nobody else does
// meanwhile.
func (s *Store) change(do func([]Item) []Item) error {
	path, repo, err := s.where()
	if err != nil {
		return err
	}
	return s.Alone(func() error { return rewrite(path, repo, do) })
}

// Alone runs do while nobody else writes this store, or is in Alone. do may not
// write it either.
func (s *Store) Alone(do func() error) error {
	path, _, err := s.where()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), dirMode); err != nil {
		return fmt.Errorf("write down what is trusted: %w", err)
	}
	unlock, err := s.lock(filepath.Join(filepath.Dir(path), lockName))
	if err != nil {
		return fmt.Errorf("write down what is trusted: %w", err)
	}
	defer unlock()
	return do()
}

// errStopped ends the wait for a lock.
var errStopped = errors.New("interrupted while somebody else writes it")

// lock waits for the lock in a file until the store's user is stopped.
func (s *Store) lock(file string) (unlock func(), err error) {
	type result struct {
		unlock func()
		err    error
	}
	got := make(chan result, 1)
	go func() {
		unlock, err := lockedfile.MutexAt(file).Lock()
		got <- result{unlock, err}
	}()
	select {
	case r := <-got:
		return r.unlock, r.err
	case <-s.options.Stop:
		go func() { // it cannot be interrupted: let go of it when it comes
			if r := <-got; r.err == nil {
				r.unlock()
			}
		}()
		return nil, errStopped
	}
}

func rewrite(path, repo string, do func([]Item) []Item) error {
	f, err := read(path)
	if err != nil {
		return err
	}
	items := do(f.Repositories[repo])
	slices.SortFunc(items, func(a, b Item) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	if f.Repositories[repo] = items; len(items) == 0 {
		delete(f.Repositories, repo)
	}
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("write down what is trusted: %w", err)
	}
	if err := renameio.WriteFile(path, append(text, '\n'), 0o600, renameio.WithTempDir(filepath.Dir(path))); err != nil {
		return fmt.Errorf("write down what is trusted: %w", err)
	}
	return nil
}

// where returns the file without links and the name of the repository in it.
func (s *Store) where() (path, repo string, err error) {
	path = filepath.Join(s.options.UserDir, fileName)
	if !filepath.IsAbs(path) {
		return "", "", &Error{path, "nobody knows whose it is: neither XDG_CONFIG_HOME nor HOME names a directory", "export HOME=DIR"}
	}
	if s.options.UntrustedPaths.Contains(path) {
		return "", "", &Error{path, "it is inside of the repository that it would be about", "export XDG_CONFIG_HOME=DIR, outside of the repository"}
	}
	if repo, err = filepath.EvalSymlinks(s.options.GitDir); err != nil {
		return "", "", fmt.Errorf("find the git directory: %w", err)
	}
	real, err := filepath.EvalSymlinks(path)
	switch {
	case err == nil:
		return real, repo, nil
	case errors.Is(err, fs.ErrNotExist):
		return path, repo, nil
	}
	return "", "", fmt.Errorf("find what is trusted: %w", err)
}

var hashRE = regexp.MustCompile(`^[0-9a-f]{64}$`)

func read(path string) (file, error) {
	empty := file{Version: format, Repositories: map[string][]Item{}}
	opened, err := regularfile.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return empty, nil
	}
	if errors.Is(err, regularfile.ErrNotFile) {
		return empty, &Error{path, err.Error(), ""}
	}
	if err != nil {
		return empty, fmt.Errorf("read what is trusted: %w", err)
	}
	defer opened.Close() //nolint:errcheck // read only
	info, err := opened.Stat()
	switch {
	case err != nil:
		return empty, fmt.Errorf("read what is trusted: %w", err)
	case info.Mode()&0o022 != 0:
		return empty, &Error{path, "others than you can write it", "look at it, then chmod 600 " + path}
	}
	data, err := io.ReadAll(io.LimitReader(opened, maxFile+1))
	if err != nil {
		return empty, fmt.Errorf("read what is trusted: %w", err)
	}
	f, reason := decode(data)
	if reason != "" {
		return empty, &Error{path, reason, "rm " + path + ", and trust again: coven trust"}
	}
	return f, nil
}

// decode reads a store, or says what is wrong with it.
func decode(data []byte) (file, string) {
	var version struct{ Version int }
	if err := json.Unmarshal(data, &version); err != nil || len(data) > maxFile {
		return file{}, "it is damaged"
	}
	if version.Version != format {
		return file{}, fmt.Sprintf("it has version %d, this coven reads version %d", version.Version, format)
	}
	f := file{Repositories: map[string][]Item{}}
	strict := json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&f); err != nil || f.Repositories == nil {
		return file{}, "it is damaged"
	}
	for _, items := range f.Repositories {
		for _, it := range items {
			if it.Kind == "" || it.Name == "" || !hashRE.MatchString(it.SHA256) {
				return file{}, "it is damaged"
			}
		}
	}
	return f, ""
}
