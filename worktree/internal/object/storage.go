package object

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/objfile"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"

	"github.com/coven-run/coven/internal/file/regularfile"
)

// Limits for reading in process.
const (
	// maxPacks is the maximum number of packs of a git directory. Their files stay open.
	maxPacks = 200
	// maxCached is the maximum total size of each cache, in bytes.
	maxCached = 4 << 20
	// maxChain is the maximum number of objects in a pack that each differ from the next.
	maxChain = 4095
	// maxObject is the maximum size of an object to read into memory, in bytes.
	maxObject = 8 << 20
	// maxAlternates is the maximum number of object directories to search.
	maxAlternates = 16
)

const alternatesFile = "objects/info/alternates"

// Storage is a git directory and its alternate object directories.
type Storage struct {
	refs  *filesystem.Storage
	dirs  []*directory
	cache cache.Object // small objects
}

// openStorage opens a git directory and its alternates. It follows alternates itself, because go-git reads
// the indexes of their packs again for each object, and interprets relative paths differently from git.
func openStorage(dir string) (*Storage, error) {
	dirs, err := withAlternates(nil, dir)
	if err != nil {
		return nil, err
	}
	s := &Storage{cache: cache.NewObjectLRU(maxCached)}
	bases := cache.NewBufferLRU(maxCached)
	s.refs = filesystem.NewStorageWithOptions(gitFiles{dir}, s.cache, filesystem.Options{AlternatesFS: nowhere{}})
	for _, d := range dirs {
		packs, err := openPacks(d, bases)
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
		s.dirs = append(s.dirs, &directory{dotgit.New(gitFiles{d}), packs})
	}
	return s, nil
}

// close closes the files of all packs.
func (s *Storage) close() error {
	var failed error
	for _, d := range s.dirs {
		failed = errors.Join(failed, closePacks(d.packs))
	}
	return failed
}

// withAlternates appends a git directory and its alternates to dirs, recursively.
func withAlternates(dirs []string, dir string) ([]string, error) {
	if len(dirs) == maxAlternates {
		return nil, ErrUnsupported
	}
	dirs = append(dirs, dir)
	content, err := readRegular(filepath.Join(dir, alternatesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return dirs, nil
	}
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(content)) {
		path := strings.TrimSuffix(line, "\n")
		switch {
		case path == "" || path[0] == '#':
			continue
		case path[0] == '"' || filepath.Base(path) != "objects":
			return nil, ErrUnsupported
		case !filepath.IsAbs(path):
			path = filepath.Join(dir, "objects", path)
		}
		if dirs, err = withAlternates(dirs, filepath.Dir(path)); err != nil {
			return nil, err
		}
	}
	return dirs, nil
}

// readRegular reads a small regular file. It fails for any other file.
func readRegular(file string) ([]byte, error) {
	raw, err := regularfile.Read(file, maxObject)
	if errors.Is(err, regularfile.ErrNotFile) || errors.As(err, new(*regularfile.SizeError)) {
		return nil, ErrUnsupported
	}
	return raw, err
}

// find looks for an object in each object directory.
func find[T any](s *Storage, oid ID, unpacked func(*objfile.Reader) (T, error), packed func(*pack) (T, error)) (value T, err error) {
	for _, d := range s.dirs {
		if value, err = loose(d, oid, unpacked); !errors.Is(err, plumbing.ErrObjectNotFound) {
			return value, err
		}
		for _, p := range d.packs {
			if value, err = packed(p); !errors.Is(err, plumbing.ErrObjectNotFound) {
				return value, err
			}
		}
	}
	return value, err
}

func (s *Storage) size(oid ID) (int64, error) {
	return find(s, oid, func(r *objfile.Reader) (int64, error) {
		_, size, err := r.Header()
		return size, err
	}, func(p *pack) (int64, error) { return p.size(oid) })
}

// Sizes returns the size in bytes of each object.
func (s *Storage) Sizes(oids []ID) (map[string]int64, error) {
	sizes := make(map[string]int64, len(oids))
	for _, oid := range oids {
		size, err := s.size(oid)
		if err != nil {
			return nil, err
		}
		sizes[oid.String()] = size
	}
	return sizes, nil
}

func (s *Storage) object(oid ID) (plumbing.EncodedObject, error) {
	if known, ok := s.cache.Get(oid); ok {
		return known, nil
	}
	found, err := find(s, oid, inMemory, func(p *pack) (plumbing.EncodedObject, error) { return p.object(oid) })
	if err == nil {
		s.cache.Put(found)
	}
	return found, err
}

// Kind returns the kind of an object that exists now: it may have been removed since it was read.
func (s *Storage) Kind(oid ID) (string, error) {
	if _, err := s.size(oid); err != nil {
		return "", err
	}
	found, err := s.object(oid)
	if err != nil {
		return "", err
	}
	return found.Type().String(), nil
}

// body reads an object into memory.
func (s *Storage) body(oid ID) (plumbing.ObjectType, []byte, error) {
	object, err := s.object(oid)
	if err != nil {
		return plumbing.InvalidObject, nil, err
	}
	if object.Size() > maxObject {
		return object.Type(), nil, ErrUnsupported
	}
	in, err := object.Reader()
	if err != nil {
		return object.Type(), nil, err
	}
	defer func() { _ = in.Close() }()
	content, err := io.ReadAll(io.LimitReader(in, maxObject+1))
	if err == nil && int64(len(content)) != object.Size() {
		err = fmt.Errorf("%s: its size is wrong", oid)
	}
	return object.Type(), content, err
}

// An InMemory is an object with its content.
type InMemory struct {
	Object
	Body []byte
}

// Bodies reads objects whose total size is small.
func (s *Storage) Bodies(oids []ID) ([]InMemory, error) {
	var all []InMemory
	size := 0
	for _, oid := range oids {
		kind, content, err := s.body(oid)
		if err != nil {
			return nil, err
		}
		if size += len(content); size > maxObject {
			return nil, ErrUnsupported
		}
		all = append(all, InMemory{Object{Oid: oid.String(), Kind: kind.String(), Size: int64(len(content))}, content})
	}
	return all, nil
}

// ID is the ID of an object.
type ID = plumbing.Hash

// hash parses a full SHA-1 object ID.
func hash(oid string) (ID, error) {
	if len(oid) != 40 || !plumbing.IsHash(oid) {
		return plumbing.ZeroHash, ErrUnsupported
	}
	return plumbing.NewHash(oid), nil
}
