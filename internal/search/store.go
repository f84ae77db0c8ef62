package search

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"

	"github.com/coven-run/coven/internal/regularfile"
)

// header begins the file of an index. Its number changes with the terms, their weights and the encoding.
const header = "coven search index 2\n"

// maxIndex limits the size of that file, in bytes.
const maxIndex = 1 << 30

// A store is an index. Its file has the header, the checksum of all that follows, the manifest
// and the lists. A query reads the whole file, and an update replaces it.
type store struct {
	file     string // it is empty if the index is only in memory
	manifest *manifest
	lists    []byte // terms, each with its list
}

// A storeError means that the index cannot be used, not that the files cannot be read.
type storeError struct{ error }

func (e storeError) Unwrap() error { return e.error }

var errDamaged = storeError{errors.New("the index is damaged, or of another version of coven")}

// openStore reads the index in a file, whose lock the caller holds. A missing file is an empty index.
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

// update replaces the index by one with another manifest, and with more in its lists.
func (s *store) update(next *manifest, c change) error {
	sweep := next.gone > int64(len(next.files)/4)
	if sweep {
		next.gone = 0
	}
	out := make([]byte, len(header)+4, len(s.lists)+len(s.lists)/8+128*len(next.files)+4096) // so that it seldom grows
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

// replace does not wait until the file is on disk: after a power failure it may be damaged, which
// its checksum shows. It writes a file of its own, because one that is there may have other names.
func replace(file string, data []byte) error {
	if len(data) > maxIndex {
		return fmt.Errorf("the index has %d bytes, more than %d", len(data), maxIndex)
	}
	next := file + ".new"
	_ = os.Remove(next) // of a killed process
	err := create(next, data)
	if err == nil {
		err = os.Rename(next, file)
	}
	if err != nil {
		_ = os.Remove(next) // a part of it, on a full disk
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
