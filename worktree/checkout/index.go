package checkout

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"path"

	"golang.org/x/sys/unix"
)

// errIndex means that an index does not have the documented format.
var errIndex = errors.New("the index has an unknown format")

// An entry is one entry of an index.
type entry struct {
	Mode string // in git's format: 100644
	Oid  string
	skip bool // skip-worktree: not in a sparse checkout
	at   int  // offset of its timestamps
}

// file reports whether the checkout contains a file or symbolic link for the entry.
func (e entry) file() bool { return e.Mode != "" && !e.skip && !e.link() }

// link reports whether the entry is a submodule.
func (e entry) link() bool { return e.Mode == "160000" }

func (e entry) same(other entry) bool {
	return e.Mode == other.Mode && e.Oid == other.Oid && e.skip == other.skip
}

// An index is a git index (versions 2 to 4) in memory. Only timestamps are modified; git writes everything
// else.
type index struct {
	raw     []byte
	size    int // of an object ID, in bytes
	entries map[string]entry
	// split and sparse mean that the index does not contain all entries itself.
	split, sparse bool
	unmerged      bool // there are conflicts; entries does not contain them
}

const (
	headerSize  = 12
	statSize    = 40
	extended    = 1 << 14 // flag
	stages      = 3 << 12
	assumedFile = 1 << 15
	skipEntry   = 1 << 14 // extended flag
	nameLength  = 1<<12 - 1
	sha256Chars = 64
)

// readIndex parses an index. oid is any object ID of the repository; its length determines the format.
func readIndex(raw []byte, oid string) (*index, error) {
	x := &index{raw: raw, size: len(oid) / 2, entries: map[string]entry{}}
	if len(raw) < headerSize+x.size || string(raw[:4]) != "DIRC" {
		return nil, errIndex
	}
	version, count := binary.BigEndian.Uint32(raw[4:]), binary.BigEndian.Uint32(raw[8:])
	if version < 2 || version > 4 {
		return nil, fmt.Errorf("%w: version %d", errIndex, version)
	}
	pos, name := headerSize, ""
	for range count {
		var err error
		if pos, name, err = x.entryAt(pos, name, version); err != nil {
			return nil, err
		}
	}
	return x, x.extensions(pos)
}

// entryAt parses the entry at an offset and returns the offset of the next one.
func (x *index) entryAt(pos int, before string, version uint32) (int, string, error) {
	end := len(x.raw) - x.size
	p := pos + statSize + x.size
	if p+4 > end {
		return 0, "", errIndex
	}
	e := entry{
		at:   pos,
		Mode: fmt.Sprintf("%06o", binary.BigEndian.Uint32(x.raw[pos+24:])),
		Oid:  hex.EncodeToString(x.raw[pos+statSize : p]),
	}
	flags := binary.BigEndian.Uint16(x.raw[p:])
	p += 2
	if flags&extended != 0 {
		e.skip = binary.BigEndian.Uint16(x.raw[p:])&skipEntry != 0
		p += 2
	}
	name, next, err := x.nameAt(pos, p, before, version)
	if err != nil {
		return 0, "", err
	}
	if flags&stages == 0 {
		x.entries[name] = e
	} else {
		x.unmerged = true
	}
	return next, name, nil
}

// nameAt parses the name at offset p of the entry at offset pos.
func (x *index) nameAt(pos, p int, before string, version uint32) (string, int, error) {
	if version == 4 {
		strip, size := offset(x.raw[p:])
		p += size
		if size == 0 || strip > uint64(len(before)) {
			return "", 0, errIndex
		}
		before = before[:uint64(len(before))-strip]
	} else {
		before = ""
	}
	length := bytes.IndexByte(x.raw[p:], 0)
	if length < 0 {
		return "", 0, errIndex
	}
	name := before + string(x.raw[p:p+length])
	next := p + length + 1
	if version < 4 { // padded with 1 to 8 NUL bytes
		next = pos + (p+length-pos+8)/8*8
	}
	if next > len(x.raw)-x.size {
		return "", 0, errIndex
	}
	return name, next, nil
}

// offset parses a variable-length number as in packs. size is 0 if it is truncated.
func offset(raw []byte) (n uint64, size int) {
	for i, b := range raw {
		if i > 0 {
			n++
		}
		n = n<<7 | uint64(b&0x7f)
		if b&0x80 == 0 {
			return n, i + 1
		}
		if i == 8 {
			break
		}
	}
	return 0, 0
}

func (x *index) extensions(pos int) error {
	for end := len(x.raw) - x.size; pos < end; {
		if pos+8 > end {
			return errIndex
		}
		switch string(x.raw[pos : pos+4]) {
		case "link":
			x.split = true
		case "sdir":
			x.sparse = true
		}
		pos += 8 + int(binary.BigEndian.Uint32(x.raw[pos+4:]))
	}
	return nil
}

// clashes reports whether the index has an entry above or below one of the paths.
func (x *index) clashes(paths map[string]bool) bool {
	for p := range paths {
		for dir := path.Dir(p); dir != "." && dir != "/"; dir = path.Dir(dir) {
			if _, tracked := x.entries[dir]; tracked {
				return true
			}
		}
	}
	for name := range x.entries {
		for dir := path.Dir(name); dir != "." && dir != "/"; dir = path.Dir(dir) {
			if paths[dir] {
				return true
			}
		}
	}
	return false
}

// stamp sets the timestamps of an entry as git does after writing the file: those of staged, but with the
// current change time, because a rename changes it. They do not match a file that has been edited since.
// Like git, it stores the lower 32 bits of each number.
func (x *index) stamp(path string, staged, now unix.Stat_t) {
	e, ok := x.entries[path]
	if !ok {
		return
	}
	for i, word := range []uint32{
		uint32(now.Ctim.Sec), uint32(now.Ctim.Nsec), uint32(staged.Mtim.Sec), uint32(staged.Mtim.Nsec),
		uint32(staged.Dev), uint32(staged.Ino), 0, staged.Uid, staged.Gid, size(staged.Size),
	} {
		if i != 6 { // the mode is not a timestamp
			binary.BigEndian.PutUint32(x.raw[e.at+4*i:], word)
		}
	}
}

// forget clears the timestamps of an entry, and the flag with which git does not check its file.
func (x *index) forget(e entry) {
	for i := range statSize / 4 {
		if i != 6 { // the mode is not a timestamp
			binary.BigEndian.PutUint32(x.raw[e.at+4*i:], 0)
		}
	}
	x.raw[e.at+statSize+x.size] &^= assumedFile >> 8
}

// size returns the lower 32 bits of a size. It never returns 0 for a nonempty file, because 0 means
// "unknown".
func size(bytes int64) uint32 {
	if low := uint32(bytes); low != 0 || bytes == 0 {
		return low
	}
	return 1 << 31
}

// seal updates the checksum, if the index has one.
func (x *index) seal() {
	body, sum := x.raw[:len(x.raw)-x.size], x.raw[len(x.raw)-x.size:]
	if bytes.Equal(sum, make([]byte, x.size)) {
		return // index.skipHash
	}
	h := sha1.New()
	if 2*x.size == sha256Chars {
		h = sha256.New()
	}
	h.Write(body)
	copy(sum, h.Sum(nil))
}
