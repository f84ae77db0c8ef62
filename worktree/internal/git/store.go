package git

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/config"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"
)

// errAsk means that the caller must run git instead.
var errAsk = errors.New("this repository is not read in process")

// A Store reads refs and objects of a repository in process, with go-git. The methods of Repo use it, and
// run git whenever it fails. Unsupported repositories are therefore only slower: those with other formats
// than SHA-1 objects and refs in files, shallow or partial clones, grafts, large packs, or damage. A Store
// is safe for concurrent use.
type Store struct {
	dir string // the common git directory

	mu     sync.Mutex
	opened *storage // nil if it must be opened
	read   layout   // the layout of dir when opened was opened

	config configList
	refs   refWriter

	writeOut func(*os.File) error // starts writing the content of a new object to disk
}

// OpenStore returns the Store of a common git directory. It reads nothing yet.
func OpenStore(dir string) *Store { return &Store{dir: dir, writeOut: writeOut} }

// ReadInProcess reports whether the repository has the common format, so that it is read in process.
func (r Repo) ReadInProcess() bool {
	return r.Store != nil && r.Store.dir == r.Dir && r.Store.use(func(*storage) error { return nil }) == nil
}

// use calls f with the storage. If f does not find an object, a repack may have moved it. Then use opens
// the storage again and repeats the call.
func (s *Store) use(f func(*storage) error) error {
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
		s.opened = nil
	}
}

// safely calls f and turns a panic into an error, so that git handles damaged data.
func safely(f func(*storage) error, opened *storage) (err error) {
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

func (s *Store) open() (*storage, error) {
	now := readLayout(s.dir)
	if s.opened != nil && now == s.read {
		return s.opened, nil
	}
	s.opened = nil
	if !now.readable(s.dir) {
		return nil, errAsk
	}
	opened, err := openStorage(s.dir)
	if err == nil {
		s.opened, s.read = opened, now
	}
	return opened, err
}

// layout is the state of the files that determine how a git directory is read. If it changes, everything is
// read again.
type layout struct{ config, shallow, grafts, alternates, packs seen }

// seen identifies the state of a file. It is zero if the file does not exist.
type seen struct {
	inode uint64
	size  int64
	mtime int64 // nanoseconds since 1970
}

func look(file string) seen {
	info, err := os.Stat(file)
	if err != nil {
		return seen{}
	}
	s := seen{size: info.Size(), mtime: info.ModTime().UnixNano()}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		s.inode = stat.Ino
	}
	return s
}

func readLayout(dir string) layout {
	at := func(name string) seen { return look(filepath.Join(dir, name)) }
	return layout{config: at("config"), shallow: at("shallow"), grafts: at("info/grafts"), alternates: at(alternatesFile), packs: at("objects/pack")}
}

// readable reports whether go-git reads this git directory in the same way as git.
func (l layout) readable(dir string) bool {
	return l.config != seen{} && l.shallow == seen{} && l.grafts == seen{} && plainFormat(filepath.Join(dir, "config"))
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

// ref returns the object ID of a ref, or ErrNoRef. A Store does not contain the refs of single worktrees.
func (s *Store) ref(name string) (oid string, err error) {
	for _, own := range []string{"refs/bisect/", "refs/worktree/", "refs/rewritten/"} {
		if strings.HasPrefix(name, own) {
			return "", errAsk
		}
	}
	if !strings.HasPrefix(name, "refs/") {
		return "", errAsk
	}
	err = s.use(func(opened *storage) error {
		oid, err = s.resolve(opened, name)
		return err
	})
	return oid, err
}

// maxSymbolic is the maximum number of symbolic refs to follow, as in git.
const maxSymbolic = 5

func (s *Store) resolve(opened *storage, name string) (string, error) {
	for range maxSymbolic {
		_, looseErr := os.Lstat(filepath.Join(s.dir, name))
		ref, err := opened.refs.Reference(plumbing.ReferenceName(name))
		switch {
		case errors.Is(err, plumbing.ErrReferenceNotFound) && looseErr != nil && isAbsent(looseErr):
			return "", fmt.Errorf("%s: %w", name, ErrNoRef)
		case err != nil:
			return "", err
		case looseErr == nil && !s.isLoose(name, ref):
			return "", errAsk // the file could not be read, and packed-refs has an old value
		case ref.Type() == plumbing.HashReference:
			return ref.Hash().String(), nil
		}
		name = ref.Target().String()
	}
	return "", errAsk
}

func isAbsent(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// isLoose reports whether the file of a ref has this value. It also returns true if there is no such file.
func (s *Store) isLoose(name string, ref *plumbing.Reference) bool {
	info, err := os.Lstat(filepath.Join(s.dir, name))
	if err != nil || info.IsDir() {
		return true
	}
	content, err := os.ReadFile(filepath.Join(s.dir, name))
	words := ref.Strings()
	return err == nil && strings.TrimSpace(string(content)) == words[1]
}

// named returns the object ID for a name: an ID, HEAD of a git directory, or the full name of a ref.
func (s *Store) named(dir, name string) (plumbing.Hash, error) {
	if name == "HEAD" {
		branch, err := s.branch(dir)
		if err != nil {
			return plumbing.ZeroHash, err
		}
		name = branch
	}
	if strings.HasPrefix(name, "refs/") {
		oid, err := s.ref(name)
		if err != nil {
			return plumbing.ZeroHash, err
		}
		name = oid
	}
	return hash(name)
}

func (s *Store) branch(dir string) (branch string, err error) {
	err = s.use(func(*storage) error {
		head := filepath.Join(dir, "HEAD")
		if info, err := os.Lstat(head); err != nil || !info.Mode().IsRegular() {
			return errAsk // a symbolic link is an old format
		}
		content, err := readRegular(head)
		if err != nil {
			return err
		}
		name, attached := strings.CutPrefix(string(content), "ref: ")
		branch = strings.TrimSpace(name)
		if !attached || !strings.HasPrefix(branch, "refs/heads/") {
			return errAsk
		}
		return nil
	})
	return branch, err
}
