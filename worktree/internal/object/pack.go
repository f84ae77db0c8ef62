package object

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// The parts of a pack index, version 2: a header, the number of objects whose IDs begin with at most each byte, and tables of IDs, checksums, offsets, and offsets
// of more than 31 bits. See gitformat-pack(5).
const (
	indexHeader = "\xfftOc\x00\x00\x00\x02"
	idSize      = 20
	farOffset   = 1 << 31 // marks the number of an offset in the last table
)

// A pack is a pack of objects. go-git would read the whole index of each pack into memory, while most processes need few objects.
type pack struct {
	index, content *os.File
	upTo           [257]uint32 // upTo[b+1] is the number of objects whose IDs begin with at most the byte b
	objects        *packfile.Packfile
}

// openPacks opens the packs in a git directory.
func openPacks(dir string, shared cache.Object) ([]*pack, error) {
	entries, err := gitFiles{dir}.ReadDir("objects/pack")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var all []*pack
	for _, e := range entries {
		name, isIndex := strings.CutSuffix(e.Name(), ".idx")
		if !isIndex {
			continue
		}
		if len(all) == maxPacks {
			return nil, errors.Join(ErrUnsupported, closePacks(all))
		}
		p, err := openPack(dir, filepath.Join("objects", "pack", name), shared)
		if err != nil {
			return nil, errors.Join(err, closePacks(all))
		}
		all = append(all, p)
	}
	return all, nil
}

func openPack(dir, name string, shared cache.Object) (*pack, error) {
	p := &pack{}
	var err error
	if p.index, err = openIn(dir, name+".idx"); err != nil {
		return nil, err
	}
	if p.content, err = openIn(dir, name+".pack"); err != nil {
		return nil, errors.Join(err, p.index.Close())
	}
	p.objects = packfile.NewPackfileWithCache(p, nil, unlocked{p.content}, shared, 0)
	head := make([]byte, len(indexHeader)+4*256)
	if _, err = p.index.ReadAt(head, 0); err == nil && !bytes.HasPrefix(head, []byte(indexHeader)) {
		err = ErrUnsupported
	}
	for b := range 256 {
		p.upTo[b+1] = binary.BigEndian.Uint32(head[len(indexHeader)+4*b:])
		if p.upTo[b+1] < p.upTo[b] && err == nil {
			err = fmt.Errorf("%s.idx: damaged", name)
		}
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func openIn(dir, name string) (*os.File, error) {
	f, err := gitFiles{dir}.Open(name)
	if err != nil {
		return nil, err
	}
	return f.(unlocked).File, nil //nolint:forcetypeassert // see gitFiles
}

// Close closes the files.
func (p *pack) Close() error { return errors.Join(p.index.Close(), p.content.Close()) }

func closePacks(all []*pack) error {
	var failed error
	for _, p := range all {
		failed = errors.Join(failed, p.Close())
	}
	return failed
}

// tables returns the positions of the tables of IDs and of offsets.
func (p *pack) tables() (ids, offsets int64) {
	ids = int64(len(indexHeader) + 4*256)
	return ids, ids + int64(p.upTo[256])*(idSize+4)
}

// FindOffset implements idxfile.Index. The error is plumbing.ErrObjectNotFound if the pack does not have the object.
func (p *pack) FindOffset(oid plumbing.Hash) (int64, error) {
	ids, offsets := p.tables()
	first, end := p.upTo[oid[0]], p.upTo[int(oid[0])+1]
	var failed error
	at := int(first) + sort.Search(int(end-first), func(i int) bool {
		var id [idSize]byte
		if _, err := p.index.ReadAt(id[:], ids+int64(int(first)+i)*idSize); err != nil {
			failed = err
		}
		return bytes.Compare(id[:], oid[:]) >= 0
	})
	if failed == nil && at == int(end) {
		return 0, plumbing.ErrObjectNotFound
	}
	var id [idSize]byte
	if failed == nil {
		_, failed = p.index.ReadAt(id[:], ids+int64(at)*idSize)
	}
	if failed == nil && id != oid {
		failed = plumbing.ErrObjectNotFound
	}
	if failed != nil {
		return 0, failed
	}
	near, err := p.number(offsets + int64(at)*4)
	if err != nil || near < farOffset {
		return int64(near), err
	}
	var far [8]byte
	if _, err := p.index.ReadAt(far[:], offsets+int64(p.upTo[256])*4+int64(near-farOffset)*8); err != nil {
		return 0, err
	}
	return int64(binary.BigEndian.Uint64(far[:])), nil //nolint:gosec // a wrong one is not in the file
}

func (p *pack) number(at int64) (uint32, error) {
	var raw [4]byte
	_, err := p.index.ReadAt(raw[:], at)
	return binary.BigEndian.Uint32(raw[:]), err
}

// Contains implements idxfile.Index.
func (p *pack) Contains(oid plumbing.Hash) (bool, error) {
	_, err := p.FindOffset(oid)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return false, nil
	}
	return err == nil, err
}

// FindHash implements idxfile.Index. packfile needs it for the objects from which others differ, as the key of its cache only. So it returns a key that no object has.
func (p *pack) FindHash(offset int64) (key plumbing.Hash, err error) {
	copy(key[:], fmt.Sprintf("%p", p)[:12])
	binary.BigEndian.PutUint64(key[12:], uint64(offset)) //nolint:gosec // not negative
	return key, nil
}

// Count implements idxfile.Index.
func (p *pack) Count() (int64, error) { return int64(p.upTo[256]), nil }

// FindCRC32 implements idxfile.Index.
func (p *pack) FindCRC32(plumbing.Hash) (uint32, error) { return 0, ErrUnsupported }

// Entries implements idxfile.Index.
func (p *pack) Entries() (idxfile.EntryIter, error) { return nil, ErrUnsupported }

// EntriesByOffset implements idxfile.Index.
func (p *pack) EntriesByOffset() (idxfile.EntryIter, error) { return nil, ErrUnsupported }

var _ idxfile.Index = (*pack)(nil)

// size returns the size of an object.
func (p *pack) size(oid plumbing.Hash) (int64, error) {
	offset, err := p.FindOffset(oid)
	if err != nil {
		return 0, err
	}
	return p.objects.GetSizeByOffset(offset)
}

// object returns an object, whose content is in memory.
func (p *pack) object(oid plumbing.Hash) (plumbing.EncodedObject, error) {
	size, err := p.size(oid)
	if err == nil && size > maxObject {
		err = ErrUnsupported
	}
	if err != nil {
		return nil, err
	}
	return p.objects.Get(oid)
}
