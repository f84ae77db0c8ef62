package search

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"

	"github.com/coven-run/coven/internal/file/regularfile"
)

// header is the beginning of an index file. Its number changes with the terms, their weights and the encoding.
const header = "coven search index 2\n"

// maxIndex limits the size of an index file in bytes.
const maxIndex = 1 << 30

// A store is an index. Its file has the header, the checksum of the rest, the manifest
// and the lists. A query reads the whole file, and an update replaces it.
type store struct {
	file     string // empty if the index is only in memory
	manifest *manifest
	lists    []byte // terms, each followed by its list
}

// A storeError means that the index, rather than a searched file, is unusable.
type storeError struct{ error }

func (e storeError) Unwrap() error { return e.error }

var errDamaged = storeError{errors.New("the index is damaged, or of another version of coven")}

// openStore reads the index in a file. The caller holds its lock. A missing file is an empty index.
func openStore(file string) (*store, error) {
	data, err := regularfile.Read(file, maxIndex)
	if errors.Is(err, fs.ErrNotExist) {
		return &store{file: file, manifest: emptyManifest()}, nil
	}
	if err != nil {
		return nil, storeError{err}
	}
	s, err := decodeStore(data)
	if err != nil {
		return nil, err
	}
	s.file = file
	return s, nil
}

func decodeStore(data []byte) (*store, error) {
	data, ok := bytes.CutPrefix(data, []byte(header))
	if !ok || len(data) < 4 || binary.BigEndian.Uint32(data) != crc32.ChecksumIEEE(data[4:]) {
		return nil, errDamaged
	}
	r := reader{data: data[4:]}
	m := r.manifest()
	return &store{manifest: m, lists: r.data}, r.err
}

// update replaces the index by one with a new manifest and merged lists.
func (s *store) update(next *manifest, c change) error {
	sweep := next.gone > int64(len(next.files)/4)
	if sweep {
		next.gone = 0
	}
	out := make([]byte, len(header)+4, len(s.lists)+len(s.lists)/8+128*len(next.files)+4096) // usually large enough
	copy(out, header)
	out = next.appendTo(out)
	from := len(out)
	out, err := c.merge(out, s.lists, next.documents(), sweep)
	if err != nil {
		return err
	}
	binary.BigEndian.PutUint32(out[len(header):], crc32.ChecksumIEEE(out[len(header)+4:]))
	if s.file != "" {
		if err := replace(s.file, out); err != nil {
			return storeError{err}
		}
	}
	s.manifest, s.lists = next, out[from:]
	return nil
}

// replace replaces a file without syncing it to disk. After a power failure the file may be damaged, which
// its checksum reveals. It writes a new file, because the existing one may have hard links.
func replace(file string, data []byte) error {
	if len(data) > maxIndex {
		return fmt.Errorf("the index has %d bytes, more than %d", len(data), maxIndex)
	}
	next := file + ".new"
	_ = os.Remove(next) // left by a killed process
	err := create(next, data)
	if err == nil {
		err = os.Rename(next, file)
	}
	if err != nil {
		_ = os.Remove(next) // incomplete, for example on a full disk
	}
	return err
}

func create(file string, data []byte) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
