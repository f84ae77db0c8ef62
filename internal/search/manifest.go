package search

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"maps"
	"slices"
)

// A manifest says which state of which files an index has.
type manifest struct {
	directories map[string]stamp // of the listed files, and those in which a file may appear
	depends     map[string]stamp // Listing.Depends
	files       map[string]entry // all regular files of the listing
	last        int64            // the highest document so far
}

// An entry is a file of a manifest.
type entry struct {
	stamp    stamp
	hash     [16]byte // of the content
	document int64    // its row in the index; 0: its text is not searched
}

func emptyManifest() *manifest {
	return &manifest{directories: map[string]stamp{}, depends: map[string]stamp{}, files: map[string]entry{}}
}

// paths returns the path of each document.
func (m *manifest) paths() map[int64]string {
	paths := make(map[int64]string, len(m.files))
	for path, e := range m.files {
		paths[e.document] = path
	}
	return paths
}

func hashOf(text []byte) (hash [16]byte) {
	sum := sha256.Sum256(text)
	copy(hash[:], sum[:])
	return hash
}

var errManifest = errors.New("the manifest is damaged")

// encode returns the manifest as bytes, with their checksum first. One value is read much
// faster than a row for each file.
func (m *manifest) encode() []byte {
	out := make([]byte, 4, 64*(len(m.files)+len(m.directories)+1))
	out = binary.AppendVarint(out, m.last)
	for _, stamps := range []map[string]stamp{m.directories, m.depends} {
		out = binary.AppendVarint(out, int64(len(stamps)))
		for _, path := range slices.Sorted(maps.Keys(stamps)) {
			out = appendStamp(appendText(out, path), stamps[path])
		}
	}
	out = binary.AppendVarint(out, int64(len(m.files)))
	for _, path := range slices.Sorted(maps.Keys(m.files)) {
		e := m.files[path]
		out = appendStamp(appendText(out, path), e.stamp)
		out = binary.AppendVarint(append(out, e.hash[:]...), e.document)
	}
	binary.BigEndian.PutUint32(out, crc32.ChecksumIEEE(out[4:]))
	return out
}

func appendText(out []byte, text string) []byte {
	return append(binary.AppendVarint(out, int64(len(text))), text...)
}

func appendStamp(out []byte, s stamp) []byte {
	for _, n := range [...]int64{s.inode, s.size, s.mtime, s.change, int64(s.mode)} {
		out = binary.AppendVarint(out, n)
	}
	return out
}

func decodeManifest(data []byte) (*manifest, error) {
	if len(data) < 4 || binary.BigEndian.Uint32(data) != crc32.ChecksumIEEE(data[4:]) {
		return nil, errManifest
	}
	r := reader{text: string(data[4:]), data: data[4:]}
	m := emptyManifest()
	m.last = r.number()
	for _, stamps := range []map[string]stamp{m.directories, m.depends} {
		for range r.number() {
			path := r.take(r.number())
			stamps[path] = r.stamp()
		}
	}
	n := r.number()
	m.files = make(map[string]entry, max(0, min(n, int64(len(data)))))
	for range n {
		path := r.take(r.number())
		e := entry{stamp: r.stamp()}
		copy(e.hash[:], r.take(int64(len(e.hash))))
		e.document = r.number()
		m.files[path] = e
	}
	return m, r.err
}

// A reader reads what encode wrote. After an error it returns zeros.
type reader struct {
	data []byte
	text string // data, so that paths are parts of one string
	err  error
}

func (r *reader) number() int64 {
	n, size := binary.Varint(r.data)
	if size <= 0 {
		r.err = errManifest
		return 0
	}
	r.data, r.text = r.data[size:], r.text[size:]
	return n
}

func (r *reader) take(n int64) string {
	if n < 0 || n > int64(len(r.text)) {
		r.err = errManifest
		return ""
	}
	taken := r.text[:n]
	r.data, r.text = r.data[n:], r.text[n:]
	return taken
}

func (r *reader) stamp() stamp {
	return stamp{r.number(), r.number(), r.number(), r.number(), uint32(r.number())} //nolint:gosec // written from a uint32
}
