package search

import (
	"crypto/sha256"
	"encoding/binary"
)

// A manifest describes the indexed files and their states.
type manifest struct {
	directories map[string]stamp // directories of listed files, or in which a listed file may appear
	depends     map[string]stamp // Listing.Depends
	files       map[string]entry // all regular files in the listing
	last        int64            // highest document number so far
	gone        int64            // upper bound for the dead documents in the lists
}

// An entry is a file of a manifest.
type entry struct {
	stamp    stamp
	hash     [16]byte // of the content
	document int64    // number in the index; 0 if its text is not searched
	length   int64    // number of terms
}

func emptyManifest() *manifest {
	return &manifest{directories: map[string]stamp{}, depends: map[string]stamp{}, files: map[string]entry{}}
}

// An indexed is the file of a document.
type indexed struct {
	path   string
	length int64
}

// documents maps document numbers to their files.
func (m *manifest) documents() map[int64]indexed {
	files := make(map[int64]indexed, len(m.files))
	for path, e := range m.files {
		if e.document != 0 {
			files[e.document] = indexed{path, e.length}
		}
	}
	return files
}

func hashOf(text []byte) (hash [16]byte) {
	sum := sha256.Sum256(text)
	copy(hash[:], sum[:])
	return hash
}

// appendTo appends the encoded manifest to out.
func (m *manifest) appendTo(out []byte) []byte {
	out = binary.AppendVarint(binary.AppendVarint(out, m.last), m.gone)
	for _, stamps := range []map[string]stamp{m.directories, m.depends} {
		out = binary.AppendVarint(out, int64(len(stamps)))
		for path, s := range stamps {
			out = appendStamp(appendText(out, path), s)
		}
	}
	out = binary.AppendVarint(out, int64(len(m.files)))
	for path, e := range m.files {
		out = appendStamp(appendText(out, path), e.stamp)
		out = binary.AppendVarint(append(out, e.hash[:]...), e.document)
		out = binary.AppendVarint(out, e.length)
	}
	return out
}

func appendText[T string | []byte](out []byte, text T) []byte {
	return append(binary.AppendVarint(out, int64(len(text))), text...)
}

func appendStamp(out []byte, s stamp) []byte {
	for _, n := range [...]int64{s.inode, s.size, s.mtime, s.change, int64(s.mode)} {
		out = binary.AppendVarint(out, n)
	}
	return out
}

// A reader decodes an index. After an error it returns zeros.
type reader struct {
	data []byte
	err  error
}

func (r *reader) manifest() *manifest {
	m := emptyManifest()
	m.last, m.gone = r.number(), r.number()
	for _, stamps := range []map[string]stamp{m.directories, m.depends} {
		for n := r.number(); n > 0 && r.err == nil; n-- {
			path := string(r.text())
			stamps[path] = r.stamp()
		}
	}
	n := r.number()
	m.files = make(map[string]entry, max(0, min(n, int64(len(r.data)/24)))) // minimum size of an entry
	for ; n > 0 && r.err == nil; n-- {
		path := string(r.text())
		e := entry{stamp: r.stamp()}
		copy(e.hash[:], r.take(int64(len(e.hash))))
		e.document, e.length = r.number(), r.number()
		if e.length < 0 {
			r.err = errDamaged
		}
		m.files[path] = e
	}
	return m
}

func (r *reader) number() int64 {
	n, size := binary.Varint(r.data)
	if size <= 0 {
		r.err, r.data = errDamaged, nil
		return 0
	}
	r.data = r.data[size:]
	return n
}

func (r *reader) take(n int64) []byte {
	if n < 0 || n > int64(len(r.data)) {
		r.err, r.data = errDamaged, nil
		return nil
	}
	taken := r.data[:n]
	r.data = r.data[n:]
	return taken
}

func (r *reader) text() []byte { return r.take(r.number()) }

func (r *reader) stamp() stamp {
	return stamp{r.number(), r.number(), r.number(), r.number(), uint32(r.number())} //nolint:gosec // written from a uint32
}
