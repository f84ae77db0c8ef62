package object

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/coven-run/coven/internal/file/regularfile"
)

// The parts of a pack index, version 2: a header, the number of objects whose IDs begin with at most each
// byte, and tables of IDs, checksums, offsets, and offsets of more than 31 bits. See gitformat-pack(5).
const (
	indexHeader = "\xfftOc\x00\x00\x00\x02"
	idSize      = 20
	farOffset   = 1 << 31 // marks the number of an offset in the last table
	maxOffset   = 1 << 48 // larger ones are damage
)

// A pack is a pack of objects. go-git would read the whole index of each pack into memory, although most
// processes need few objects.
type pack struct {
	index, content *os.File
	upTo           [257]uint32 // upTo[b+1] is the number of objects whose IDs begin with at most the byte b
	objects        *packfile.Scanner
	bases          *cache.BufferLRU              // contents of objects by number and offset
	kinds          map[int64]plumbing.ObjectType // their kinds by offset
	number         int64
}

// openPacks opens the packs in a git directory.
func openPacks(dir string, bases *cache.BufferLRU) ([]*pack, error) {
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
		p, err := openPack(dir, filepath.Join("objects", "pack", name))
		if err != nil {
			return nil, errors.Join(err, closePacks(all))
		}
		p.bases, p.number = bases, int64(len(all))
		all = append(all, p)
	}
	return all, nil
}

func openPack(dir, name string) (*pack, error) {
	p := &pack{kinds: map[int64]plumbing.ObjectType{}}
	var err error
	if p.index, err = regularfile.Open(filepath.Join(dir, name+".idx")); err != nil {
		return nil, err
	}
	if p.content, err = regularfile.Open(filepath.Join(dir, name+".pack")); err != nil {
		return nil, errors.Join(err, p.index.Close())
	}
	p.objects = packfile.NewScanner(p.content)
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

// offset returns the position of an object in the pack. The error is plumbing.ErrObjectNotFound if the pack does not have the object.
func (p *pack) offset(oid plumbing.Hash) (int64, error) {
	ids, offsets := p.tables()
	first, end := p.upTo[oid[0]], p.upTo[int(oid[0])+1]
	var failed error
	i, found := sort.Find(int(end-first), func(i int) int {
		var id [idSize]byte
		if _, err := p.index.ReadAt(id[:], ids+(int64(first)+int64(i))*idSize); err != nil {
			failed = err
		}
		return bytes.Compare(oid[:], id[:])
	})
	if failed == nil && !found {
		failed = plumbing.ErrObjectNotFound
	}
	if failed != nil {
		return 0, failed
	}
	near, err := p.uint32(offsets + (int64(first)+int64(i))*4)
	if err != nil || near < farOffset {
		return int64(near), err
	}
	var far [8]byte
	if _, err := p.index.ReadAt(far[:], offsets+int64(p.upTo[256])*4+int64(near-farOffset)*8); err != nil {
		return 0, err
	}
	offset := binary.BigEndian.Uint64(far[:])
	if offset >= maxOffset {
		return 0, ErrUnsupported
	}
	return int64(offset), nil
}

func (p *pack) uint32(at int64) (uint32, error) {
	var raw [4]byte
	_, err := p.index.ReadAt(raw[:], at)
	return binary.BigEndian.Uint32(raw[:]), err
}

// A packedObject is an object that was read from a pack.
type packedObject struct {
	kind plumbing.ObjectType
	body []byte
}

// size returns the size of an object without reading those from which it differs.
func (p *pack) size(oid plumbing.Hash) (int64, error) {
	offset, err := p.offset(oid)
	if err != nil {
		return 0, err
	}
	header, err := p.objects.SeekObjectHeader(offset)
	if err != nil {
		return 0, err
	}
	if !header.Type.IsDelta() {
		return header.Length, nil
	}
	delta, err := p.inflate(header)
	if err != nil {
		return 0, err
	}
	return patchedSize(delta)
}

// patchedSize returns the size of the object that a delta makes. The delta begins with the sizes of its base and of that object.
func patchedSize(delta []byte) (int64, error) {
	_, n := binary.Uvarint(delta)
	size, m := binary.Uvarint(delta[max(n, 0):])
	if n <= 0 || m <= 0 || size > math.MaxInt64 {
		return 0, packfile.ErrInvalidDelta
	}
	return int64(size), nil
}

// inflate reads the rest of the object whose header has been read.
func (p *pack) inflate(header *packfile.ObjectHeader) ([]byte, error) {
	if header.Length > maxObject {
		return nil, ErrUnsupported
	}
	content := bytes.NewBuffer(make([]byte, 0, header.Length))
	n, _, err := p.objects.NextObject(content)
	if err == nil && n != header.Length {
		err = fmt.Errorf("the object at %d has %d bytes, not %d", header.Offset, n, header.Length)
	}
	return content.Bytes(), err
}

// at reads the object at an offset. chain is the number of deltas that need it.
func (p *pack) at(offset int64, chain int) (packedObject, error) {
	key := p.number*maxOffset + offset
	if body, ok := p.bases.Get(key); ok {
		return packedObject{p.kinds[offset], body}, nil
	}
	header, err := p.objects.SeekObjectHeader(offset)
	if err != nil {
		return packedObject{}, err
	}
	content, err := p.inflate(header)
	if err != nil {
		return packedObject{}, err
	}
	read := packedObject{header.Type, content}
	switch {
	case header.Type.IsDelta():
		read, err = p.patch(header, content, chain)
	case header.Type > plumbing.TagObject:
		err = ErrUnsupported
	}
	if err == nil {
		p.kinds[offset] = read.kind
		p.bases.Put(key, read.body)
	}
	return read, err
}

// patch returns the object that differs from another by a delta.
func (p *pack) patch(header *packfile.ObjectHeader, delta []byte, chain int) (packedObject, error) {
	if chain == maxChain {
		return packedObject{}, ErrUnsupported
	}
	offset := header.OffsetReference
	if header.Type == plumbing.REFDeltaObject {
		var err error
		if offset, err = p.offset(header.Reference); err != nil {
			return packedObject{}, fmt.Errorf("%s: %s", header.Reference, err) //nolint:errorlint // another object is missing
		}
	}
	size, err := patchedSize(delta)
	if err == nil && size > maxObject {
		err = ErrUnsupported
	}
	if err != nil {
		return packedObject{}, err
	}
	base, err := p.at(offset, chain+1)
	if err != nil {
		return packedObject{}, err
	}
	base.body, err = packfile.PatchDelta(base.body, delta)
	return base, err
}

// object returns an object.
func (p *pack) object(oid plumbing.Hash) (plumbing.EncodedObject, error) {
	offset, err := p.offset(oid)
	if err != nil {
		return nil, err
	}
	read, err := p.at(offset, 0)
	if err != nil {
		return nil, err
	}
	o := &plumbing.MemoryObject{}
	o.SetType(read.kind)
	_, err = o.Write(read.body)
	return o, err
}
