// Package trust stores which items of a repository a user allows to run outside the sandbox, such as
// plugins.
//
// Rules:
//   - Trust applies to content: an item has a kind, a name and one SHA-256, for one
//     repository, which is identified by its resolved common git directory. Different
//     content with the same name is not trusted.
//   - The store is a file of the user, trust.json in the directory of the user's
//     settings. A store inside the repository that it covers, or reached through it, is
//     refused: the repository could trust itself.
//   - The store is replaced atomically, by one writer at a time, and only the user may
//     have write permission. A store that is damaged, writable by others or written by
//     a newer coven is an error. Then nothing is trusted and the store is not
//     overwritten.
//   - COVEN_TRUST=1 in the environment trusts everything, for one process. The store is
//     then neither read nor written.
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
	"slices"
	"time"

	"github.com/rogpeppe/go-internal/lockedfile"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// Variable is the environment variable that trusts everything if it is 1.
const Variable = "COVEN_TRUST"

// The kinds of items.
const (
	KindPlugin   = "plugin"   // named after its file
	KindVariable = "variable" // of the user's environment, which the repository's env.pass names
	KindServer   = "server"   // an MCP server, for agents
	KindSecret   = "secret"   // GRIMOIRE:NAME:HASH: taken from the user's environment by a grimoire of the repository
)

const (
	fileName = "trust.json"
	lockName = "trust.lock"
	format   = 1
	maxFile  = 4 << 20
	dirMode  = 0o700
)

// Item is a trusted item, identified by its kind and name.
type Item struct {
	Kind   string    `json:"kind"`
	Name   string    `json:"name"`
	What   string    `json:"what"`   // description for the user: the file, the command
	SHA256 string    `json:"sha256"` // of its bytes, in hex
	Since  time.Time `json:"since"`
}

// file is the format of the store on disk.
type file struct {
	Version      int               `json:"version"`
	Repositories map[string][]Item `json:"repositories"` // by common git directory
}

// Error is the reason that the store cannot be used.
type Error struct {
	File   string
	Reason string
	Next   string // suggested command
}

// Error implements error. It returns "FILE: REASON".
func (e *Error) Error() string { return e.File + ": " + e.Reason }

// Options configures a Store.
type Options struct {
	UserDir        string         // directory of the user's settings
	GitDir         string         // the repository's common git directory
	UntrustedPaths UntrustedPaths // of the repository
	Getenv         func(string) string
	Stop           <-chan struct{} // ends the wait for the lock; optional
}

// Store holds the items that a user trusts in one repository. It is safe for concurrent use, even by
// several processes.
type Store struct{ options Options }

// New returns the store of a repository. It reads nothing.
func New(o Options) *Store { return &Store{o} }

// Everything reports whether this process trusts everything.
func (s *Store) Everything() bool { return s.options.Getenv(Variable) == "1" }

// Items returns the trusted items, sorted by kind and name. The error is an *Error if
// the store cannot be used.
func (s *Store) Items() ([]Item, error) {
	path, repo, err := s.where()
	if err != nil {
		return nil, err
	}
	f, err := read(path)
	return f.Repositories[repo], err
}

// Find returns the item with a kind and name.
func (s *Store) Find(kind, name string) (Item, bool, error) {
	items, err := s.Items()
	i := slices.IndexFunc(items, func(it Item) bool { return it.Kind == kind && it.Name == name })
	if err != nil || i < 0 {
		return Item{}, false, err
	}
	return items[i], true, nil
}

// Add adds items. It replaces those with the same kind and name.
func (s *Store) Add(items ...Item) error {
	return s.change(func(known []Item) []Item {
		known = slices.DeleteFunc(known, func(k Item) bool {
			return slices.ContainsFunc(items, func(it Item) bool { return it.Kind == k.Kind && it.Name == k.Name })
		})
		return append(known, items...)
	})
}

// Remove removes and returns the items for which gone returns true.
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

// change reads, changes and writes the items of the repository under the lock.
func (s *Store) change(do func([]Item) []Item) error {
	path, repo, err := s.where()
	if err != nil {
		return err
	}
	return s.Alone(func() error { return rewrite(path, repo, do) })
}

// Alone calls do under the lock of the store. do must not write the store.
func (s *Store) Alone(do func() error) error {
	path, _, err := s.where()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), dirMode); err != nil {
		return fmt.Errorf("write the trust store: %w", err)
	}
	unlock, err := s.lock(filepath.Join(filepath.Dir(path), lockName))
	if err != nil {
		return fmt.Errorf("write the trust store: %w", err)
	}
	defer unlock()
	return do()
}

// errStopped means that waiting for the lock was stopped.
var errStopped = errors.New("interrupted while another process writes it")

// lock waits for the lock of a file until Options.Stop.
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
		go func() { // Lock cannot be interrupted: unlock when it returns
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
		return fmt.Errorf("write the trust store: %w", err)
	}
	if err := regularfile.Replace(path, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("write the trust store: %w", err)
	}
	return nil
}

// where returns the resolved path of the file, and the key of the repository in it.
func (s *Store) where() (path, repo string, err error) {
	path = filepath.Join(s.options.UserDir, fileName)
	if !filepath.IsAbs(path) {
		return "", "", &Error{path, "neither XDG_CONFIG_HOME nor HOME is set to a directory", "export HOME=DIR"}
	}
	if s.options.UntrustedPaths.Contains(path) {
		return "", "", &Error{path, "it is inside the repository that it covers", "export XDG_CONFIG_HOME=DIR, outside of the repository"}
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
	return "", "", fmt.Errorf("find the trust store: %w", err)
}

var hashRE = lazyregexp.New(`^[0-9a-f]{64}$`)

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
		return empty, fmt.Errorf("read the trust store: %w", err)
	}
	defer opened.Close() //nolint:errcheck // read only
	info, err := opened.Stat()
	switch {
	case err != nil:
		return empty, fmt.Errorf("read the trust store: %w", err)
	case info.Mode()&0o022 != 0:
		return empty, &Error{path, "other users can write it", "check it, then chmod 600 " + path}
	}
	data, err := io.ReadAll(io.LimitReader(opened, maxFile+1))
	if err != nil {
		return empty, fmt.Errorf("read the trust store: %w", err)
	}
	f, reason := decode(data)
	if reason != "" {
		return empty, &Error{path, reason, "rm " + path + ", and trust again: coven trust"}
	}
	return f, nil
}

// decode parses a store. It returns the problem if it cannot.
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
