package search

import (
	"encoding/binary"
	"hash/crc32"
	"maps"
	"math"
	"os"
	"slices"
	"testing"
)

// A damaged index with a correct checksum can be read and updated, or returns an error that makes
// coven replace it.
func FuzzStore(f *testing.F) {
	s := &store{manifest: emptyManifest()}
	first := &manifest{
		directories: map[string]stamp{".": {inode: 1}}, depends: map[string]stamp{"/x": {}},
		files: map[string]entry{"a": {document: 1, length: 2}, "b": {document: 2, length: 1}, "c": {}}, last: 2,
	}
	c := change{}
	c.add(1, document{counts: map[string]uint64{"apple": 1, "pear": 200}})
	c.add(2, document{counts: map[string]uint64{"apple": 7}})
	if err := s.update(first, c); err != nil {
		f.Fatal(err)
	}
	content := append(first.appendTo(nil), s.lists...)
	for i := range content {
		for _, b := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			changed := slices.Clone(content)
			changed[i] = b
			f.Add(changed)
		}
		f.Add(content[:i])
		f.Add(slices.Insert(slices.Clone(content), i, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f)) // a large number
	}
	f.Add(content)
	f.Fuzz(func(t *testing.T, content []byte) {
		file := binary.BigEndian.AppendUint32([]byte(header), crc32.ChecksumIEEE(content))
		s, err := decodeStore(append(file, content...))
		if err == nil {
			err = use(t, s)
		}
		if err != nil && !isStoreError(err) {
			t.Errorf("the error is %v", err)
		}
	})
}

// use queries an index, replaces a document, and queries it again.
func use(t *testing.T, s *store) error {
	ask := func() error {
		files := s.manifest.documents()
		found, err := s.find([]string{"apple", "pear"}, files)
		for _, h := range best(found, files, QueryOptions{Limit: 10}) {
			if math.IsNaN(h.Score) || math.IsInf(h.Score, 0) {
				t.Errorf("the score of %q is %v", h.Path, h.Score)
			}
		}
		return err
	}
	if err := ask(); err != nil {
		return err
	}
	next := s.manifest
	next.last++
	next.files["a"] = entry{document: next.last, length: 1}
	c := change{}
	c.add(next.last, document{counts: map[string]uint64{"apple": 1}})
	if err := s.update(next, c); err != nil {
		return err
	}
	return ask()
}

// An index is read as it was written.
func TestStore(t *testing.T) {
	s := &store{file: t.TempDir() + "/index", manifest: emptyManifest()}
	next := emptyManifest()
	next.last = 300
	next.files["a"] = entry{stamp: unsettled, hash: hashOf([]byte("a")), document: 300, length: 2}
	c := change{}
	c.add(300, document{counts: map[string]uint64{"apple": 1, "pear": 200}})
	if err := s.update(next, c); err != nil {
		t.Fatal(err)
	}
	s, err := openStore(s.file)
	if err != nil {
		t.Fatal(err)
	}
	if s.manifest.files["a"] != next.files["a"] || s.manifest.last != 300 {
		t.Errorf("the manifest is %+v", s.manifest)
	}
	found, err := s.find([]string{"pear", "plum"}, s.manifest.documents())
	if err != nil || !slices.Equal(found["pear"], []posting{{300, 200}}) || len(found["plum"]) > 0 {
		t.Errorf("found %v, %v", found, err)
	}
}

// A truncated index file, or one with any byte changed, is rejected.
func TestChecksum(t *testing.T) {
	s := &store{file: t.TempDir() + "/index", manifest: emptyManifest()}
	next := emptyManifest()
	next.files["a"] = entry{document: 1, length: 2}
	if err := s.update(next, change{"apple": {data: []byte{1, 1}, last: 1}}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		changed := slices.Clone(data)
		changed[i] ^= 1
		if _, err := decodeStore(changed); !isStoreError(err) {
			t.Errorf("byte %d is another: %v", i, err)
		}
		if _, err := decodeStore(data[:i]); !isStoreError(err) {
			t.Errorf("cut off at %d: %v", i, err)
		}
	}
}

// An update merges its lists with those of the index, and a sweep removes dead documents.
func TestUpdates(t *testing.T) {
	s := &store{manifest: emptyManifest()}
	for i := int64(1); i <= 3; i++ {
		next := &manifest{files: maps.Clone(s.manifest.files), last: i}
		next.files[string(rune('a'+i))] = entry{document: i, length: 1}
		c := change{}
		c.add(i, document{counts: map[string]uint64{"apple": uint64(i)}}) //nolint:gosec // small
		if err := s.update(next, c); err != nil {
			t.Fatal(err)
		}
	}
	want := []posting{{1, 1}, {2, 2}, {3, 3}}
	if found, err := s.find([]string{"apple"}, s.manifest.documents()); err != nil || !slices.Equal(found["apple"], want) {
		t.Errorf("found %v, %v", found, err)
	}
	next := &manifest{files: map[string]entry{"d": {document: 3, length: 1}}, last: 3, gone: 2}
	if err := s.update(next, change{}); err != nil || s.manifest.gone != 0 {
		t.Errorf("%d documents are gone, %v", s.manifest.gone, err)
	}
	all := map[int64]indexed{1: {length: 1}, 2: {length: 1}, 3: {length: 1}}
	if found, err := s.find([]string{"apple"}, all); err != nil || !slices.Equal(found["apple"], want[2:]) {
		t.Errorf("found %v, %v", found, err)
	}
	if _, err := decodeLists(all, []byte{1, 1, 0, 1}); !isStoreError(err) {
		t.Errorf("a document twice in a list: %v", err)
	}
}
