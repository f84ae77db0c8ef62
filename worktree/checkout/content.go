package checkout

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/worktree/internal/object"
)

// distrust clears the timestamps of those entries in the merged index whose files have other bytes than their
// blobs, so that git reads the files. They are edited, or git converts them. Timestamps alone prove nothing:
// each program of the user can set them.
func (m *Move) distrust(x *index, changes []object.Change) error {
	found := false
	for _, c := range changes {
		if e := x.entries[c.Path]; e.file() && !e.isAt(filepath.Join(m.c.top(), c.Path)) {
			x.forget(e)
			found = true
		}
	}
	if !found {
		return nil
	}
	x.seal()
	return m.replaceMerged(x.raw)
}

// replaceMerged replaces the merged index, and keeps its modification time: git reads files that are as new.
func (m *Move) replaceMerged(raw []byte) error {
	info, err := os.Stat(m.mergedPath())
	if err != nil {
		return err
	}
	fresh := m.mergedPath() + ".new"
	if err := os.WriteFile(fresh, raw, 0o644); err != nil {
		return err
	}
	return errors.Join(os.Chtimes(fresh, info.ModTime(), info.ModTime()), os.Rename(fresh, m.mergedPath()))
}

// isAt reports whether the file at a path has the type, the executable bit and the bytes of the entry.
func (e entry) isAt(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || e.Mode != modeOf(info) {
		return false
	}
	sum := sha1.New()
	if len(e.Oid) == sha256Chars {
		sum = sha256.New()
	}
	return hashBlob(sum, path, info) == nil && hex.EncodeToString(sum.Sum(nil)) == e.Oid
}

// modeOf returns the mode that git gives a file.
func modeOf(info fs.FileInfo) string {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return "120000"
	case !info.Mode().IsRegular():
		return ""
	case info.Mode()&0o100 != 0:
		return "100755"
	}
	return "100644"
}

// hashBlob writes the blob of a file or symbolic link to sum.
func hashBlob(sum hash.Hash, path string, info fs.FileInfo) error {
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(path)
		_, _ = fmt.Fprintf(sum, "blob %d\x00%s", len(target), target)
		return err
	}
	file, err := regularfile.Open(path, syscall.O_NOFOLLOW)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	_, _ = fmt.Fprintf(sum, "blob %d\x00", info.Size())
	_, err = io.Copy(sum, file)
	return err
}
